//! How many bytes may wait for the disk. Callers take before they queue, the lane gives back.
//!
//! Waiting callers are served in the order in which they came. A request above the whole limit is
//! granted when nothing else is out, so that it does not wait for ever.

use crate::sync::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// A bounded number of bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    next_id: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    bytes: usize,
    waker: Waker,
}

/// Bytes taken out of a budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { limit, state: Mutex::new(State::default()) }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are out.
    pub(crate) fn used(&self) -> usize {
        self.state.lock().used
    }

    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.used == 0 || state.used.saturating_add(bytes) <= self.limit
    }

    /// Takes `bytes` if they are there and nobody waits for them.
    pub(crate) fn try_take(self: &Arc<Budget>, bytes: usize) -> Option<Share> {
        let mut state = self.state.lock();
        if !state.waiting.is_empty() || !self.fits(&state, bytes) {
            return None;
        }
        state.used += bytes;
        Some(Share { budget: Arc::clone(self), bytes })
    }

    /// Waits for `bytes`.
    ///
    /// # Cancel safety
    /// Dropping it takes nothing and leaves the line.
    pub(crate) async fn take(self: &Arc<Budget>, bytes: usize) -> Share {
        let id = {
            let mut state = self.state.lock();
            state.next_id += 1;
            state.next_id
        };
        let line = Line { budget: self, id };
        poll_fn(|context| {
            let mut state = self.state.lock();
            let first = match state.waiting.front() {
                None => true,
                Some(front) => front.id == id,
            };
            if first && self.fits(&state, bytes) {
                state.waiting.retain(|waiting| waiting.id != id);
                state.used += bytes;
                return Poll::Ready(());
            }
            match state.waiting.iter_mut().find(|waiting| waiting.id == id) {
                Some(waiting) => waiting.waker.clone_from(context.waker()),
                None => state.waiting.push_back(Waiting { id, bytes, waker: context.waker().clone() }),
            }
            Poll::Pending
        })
        .await;
        drop(line);
        Share { budget: Arc::clone(self), bytes }
    }

    fn give_back(&self, bytes: usize) {
        let mut state = self.state.lock();
        assert!(state.used >= bytes, "{bytes} bytes given back, {} are out", state.used);
        state.used -= bytes;
        self.wake_next(&state);
    }

    fn wake_next(&self, state: &State) {
        if let Some(front) = state.waiting.front()
            && self.fits(state, front.bytes)
        {
            front.waker.wake_by_ref();
        }
    }
}

/// Leaves the line when its future is dropped, and lets the next one try.
struct Line<'a> {
    budget: &'a Budget,
    id: u64,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        state.waiting.retain(|waiting| waiting.id != self.id);
        self.budget.wake_next(&state);
    }
}

impl Share {
    /// Number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what is above `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.give_back(self.bytes - bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_until_bytes_come_back() {
        let budget = Arc::new(Budget::new(100));
        let first = budget.try_take(80).expect("fits");
        assert!(budget.try_take(30).is_none());
        drop(first);
        let whole = budget.try_take(500).expect("an oversized request is granted alone");
        assert!(budget.try_take(1).is_none());
        drop(whole);
        assert_eq!(budget.used(), 0);
    }
}
