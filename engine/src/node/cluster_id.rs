//! The cluster id of a node: known from its directories, or learned once from its cluster.
//!
//! Readers never see an id that is not durable (B-34): [`ClusterId::set`] is called after the files are
//! written. It is set once; what comes later must be equal.

use crate::sync::Mutex;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

/// The cluster id, now or later. Clones share it; any number may wait.
#[derive(Clone, Default)]
pub struct ClusterId {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    id: OnceLock<Arc<str>>,
    waiting: Mutex<Vec<Waker>>,
}

impl std::fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClusterId").field(&self.get()).finish()
    }
}

impl ClusterId {
    pub(super) fn new(id: Option<&str>) -> ClusterId {
        let cell = ClusterId::default();
        if let Some(id) = id {
            let _ = cell.shared.id.set(Arc::from(id));
        }
        cell
    }

    /// The id; `None` until it is discovered.
    pub fn get(&self) -> Option<Arc<str>> {
        self.shared.id.get().cloned()
    }

    /// Waits for the id.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn wait(&self) -> Arc<str> {
        poll_fn(|context| {
            if let Some(id) = self.get() {
                return Poll::Ready(id);
            }
            let mut waiting = self.shared.waiting.lock();
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            drop(waiting);
            // Set between the look and the entry in the list: its waker was not there to be called.
            self.get().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// As [`wait`](ClusterId::wait), blocking this thread.
    pub fn wait_blocking(&self) -> Arc<str> {
        kraftlog_io::rt::block_on(self.wait())
    }

    /// Sets the id, once it is durable, and wakes all who wait. A second call changes nothing.
    pub(super) fn set(&self, id: &str) {
        if self.shared.id.set(Arc::from(id)).is_ok() {
            let waiting = std::mem::take(&mut *self.shared.waiting.lock());
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wait_and_all_are_told() {
        let cell = ClusterId::new(None);
        assert_eq!(cell.get(), None);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| cell.wait_blocking())).collect();
            cell.set("Jk01gj4RQRegVl2GLqYuTg");
            cell.set("another");
            for thread in threads {
                assert_eq!(&*thread.join().unwrap(), "Jk01gj4RQRegVl2GLqYuTg");
            }
        });
    }
}
