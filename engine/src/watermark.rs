//! Where the log starts and ends, what is durable and what is committed, and who waits for a change.
//!
//! Invariants: `start <= high_watermark`, `durable_end <= end`. Each value has one writer: `end` and
//! `durable_end` the log lane, `high_watermark` the caller's consensus, `start` open and the removal of
//! segments. Nothing here survives a restart; open finds it again.

use crate::sync::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Mutex, Ordering, fence};
use crate::types::Offset;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The four borders of a log at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ends {
    /// First offset that the log offers.
    pub start: Offset,
    /// The next offset to be written: everything below can be read uncommitted.
    pub end: Offset,
    /// Everything below is on stable storage.
    pub durable_end: Offset,
    /// Everything below is committed, as far as the caller said.
    pub high_watermark: Offset,
}

/// The borders, shared by the lanes and all handles.
pub(crate) struct Watermark {
    start: AtomicI64,
    end: AtomicI64,
    durable_end: AtomicI64,
    high_watermark: AtomicI64,
    /// Number of entries in `waiting`, so that a change that nobody waits for takes no lock.
    waiters: AtomicUsize,
    waiting: Mutex<Vec<(u64, Waker)>>,
    closed: AtomicBool,
    next_id: AtomicU64,
    /// Number of watches that live.
    watches: AtomicUsize,
}

impl Watermark {
    pub(crate) fn new(start: Offset, end: Offset) -> Watermark {
        Watermark {
            start: AtomicI64::new(start.0),
            end: AtomicI64::new(end.0),
            durable_end: AtomicI64::new(end.0),
            high_watermark: AtomicI64::new(start.0),
            waiters: AtomicUsize::new(0),
            waiting: Mutex::new(Vec::new()),
            closed: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            watches: AtomicUsize::new(0),
        }
    }

    /// Whether somebody may act on an end that is not durable yet.
    pub(crate) fn is_watched(&self) -> bool {
        // A watch that begins a moment later sees the group when it is durable, as if it had begun later.
        self.watches.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn ends(&self) -> Ends {
        // Start and durable end first, so that `start <= high_watermark` and `durable_end <= end` in what
        // the caller sees.
        let start = Offset(self.start.load(Ordering::Acquire));
        let durable_end = Offset(self.durable_end.load(Ordering::Acquire));
        let high_watermark = Offset(self.high_watermark.load(Ordering::Acquire));
        let end = Offset(self.end.load(Ordering::Acquire));
        Ends { start, end, durable_end, high_watermark }
    }

    pub(crate) fn start(&self) -> Offset {
        Offset(self.start.load(Ordering::Acquire))
    }

    pub(crate) fn end(&self) -> Offset {
        Offset(self.end.load(Ordering::Acquire))
    }

    pub(crate) fn durable_end(&self) -> Offset {
        Offset(self.durable_end.load(Ordering::Acquire))
    }

    pub(crate) fn high_watermark(&self) -> Offset {
        Offset(self.high_watermark.load(Ordering::Acquire))
    }

    /// For the log lane: bytes up to `end` can be read.
    pub(crate) fn set_end(&self, end: Offset) {
        self.end.store(end.0, Ordering::Release);
        self.changed();
    }

    /// For the log lane: everything below `end` is durable.
    pub(crate) fn set_durable_end(&self, end: Offset) {
        self.durable_end.store(end.0, Ordering::Release);
        self.changed();
    }

    /// For whoever removes segments below a snapshot: the log starts at `start` from now on.
    #[expect(dead_code, reason = "for retention, which is not built yet")]
    pub(crate) fn set_start(&self, start: Offset) {
        // In this order, as `ends` reads them in the other.
        self.high_watermark.fetch_max(start.0, Ordering::AcqRel);
        self.start.store(start.0, Ordering::Release);
        self.changed();
    }

    /// Raises the high watermark; a lower one is ignored. The caller has checked the bounds.
    pub(crate) fn raise_high_watermark(&self, offset: Offset) {
        if self.high_watermark.fetch_max(offset.0, Ordering::AcqRel) < offset.0 {
            self.changed();
        }
    }

    /// Nothing will change any more: wakes everybody who waits.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes everybody who waits, so that they look at what they wait for again.
    pub(crate) fn wake_all(&self) {
        self.changed();
    }

    /// To be called behind the change.
    fn changed(&self) {
        // Either we see the waiter or he sees the change: he enters himself, then looks again, with the
        // other fence in between. Without both each could miss the other.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) == 0 {
            return;
        }
        let woken = {
            let mut waiting = self.waiting.lock();
            self.waiters.store(0, Ordering::Relaxed);
            std::mem::take(&mut *waiting)
        };
        for (_, waker) in woken {
            waker.wake();
        }
    }

    /// Waits until `ready` says something about the borders, or about what else
    /// [`wake_all`](Watermark::wake_all) is called for; `None` when the log was closed first.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) async fn wait<T>(&self, mut ready: impl FnMut(Ends) -> Option<T>) -> Option<T> {
        let interest = Interest { watermark: self, id: self.next_id.fetch_add(1, Ordering::Relaxed) };
        poll_fn(|context| {
            if let Some(answer) = ready(self.ends()) {
                return Poll::Ready(Some(answer));
            }
            {
                let mut waiting = self.waiting.lock();
                match waiting.iter_mut().find(|(id, _)| *id == interest.id) {
                    Some((_, waker)) => waker.clone_from(context.waker()),
                    None => waiting.push((interest.id, context.waker().clone())),
                }
                self.waiters.store(waiting.len(), Ordering::Relaxed);
            }
            // A change between the look above and the entry in the list would be missed: look again, behind
            // the fence that goes with the one in `changed`.
            fence(Ordering::SeqCst);
            if let Some(answer) = ready(self.ends()) {
                return Poll::Ready(Some(answer));
            }
            if self.is_closed() {
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await
    }
}

/// Takes a dropped waiter out of the list.
struct Interest<'a> {
    watermark: &'a Watermark,
    id: u64,
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        let mut waiting = self.watermark.waiting.lock();
        waiting.retain(|(id, _)| *id != self.id);
        self.watermark.waiters.store(waiting.len(), Ordering::Relaxed);
    }
}

/// Waits for changes of a log's borders: for fetchers, and for whoever acts when something is durable.
///
/// While a watch of a log lives, its end moves when bytes can be read and its durable end when they are
/// on stable storage; without one, both may move at the second moment. So a leader that replicates while
/// it syncs keeps one.
pub struct Watch {
    watermark: Arc<Watermark>,
    seen: Ends,
}

impl Watch {
    pub(crate) fn new(watermark: Arc<Watermark>) -> Watch {
        let seen = watermark.ends();
        watermark.watches.fetch_add(1, Ordering::Relaxed);
        Watch { watermark, seen }
    }

    /// The borders as they are now.
    pub fn ends(&self) -> Ends {
        self.watermark.ends()
    }

    /// The borders as soon as they differ from those that this watch gave last (at first: from those
    /// at its making); `None` once the log is closed.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn changed(&mut self) -> Option<Ends> {
        let seen = self.seen;
        let now = self.watermark.wait(|ends| (ends != seen).then_some(ends)).await?;
        self.seen = now;
        Some(now)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watermark.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_watched_as_long_as_a_watch_lives() {
        let watermark = Arc::new(Watermark::new(Offset(3), Offset(9)));
        assert!(!watermark.is_watched());
        let watches = [Watch::new(Arc::clone(&watermark)), Watch::new(Arc::clone(&watermark))];
        assert!(watermark.is_watched());
        drop(watches);
        assert!(!watermark.is_watched());
    }

    #[test]
    fn high_watermark_never_goes_back() {
        let watermark = Watermark::new(Offset(3), Offset(9));
        watermark.raise_high_watermark(Offset(7));
        watermark.raise_high_watermark(Offset(5));
        assert_eq!(watermark.high_watermark(), Offset(7));
    }
}
