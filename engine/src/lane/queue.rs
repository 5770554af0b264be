//! The queue in front of a lane: a vector that the lane swaps out, and a waker that is called only
//! when the lane sleeps.
//!
//! `S` is state that callers change in the same step as they queue (for the log lane: which offset
//! comes next), so that the order of calls is the order in the queue.

use crate::sync::Mutex;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A queue with one taker, the lane, and any number of callers.
pub(crate) struct Queue<T, S = ()> {
    inner: Mutex<Inner<T, S>>,
}

struct Inner<T, S> {
    waiting: Vec<T>,
    /// Set while the lane sleeps, and only then.
    lane: Option<Waker>,
    closed: bool,
    state: S,
}

/// The queue was closed: its lane takes nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueClosed;

impl<T, S> Queue<T, S> {
    pub(crate) fn new(state: S) -> Queue<T, S> {
        Queue { inner: Mutex::new(Inner { waiting: Vec::new(), lane: None, closed: false, state }) }
    }

    /// Changes the state and queues what `step` returns, in one step. `Err` of `step` queues nothing.
    pub(crate) fn push_with<R, E: From<QueueClosed>>(
        &self,
        step: impl FnOnce(&mut S) -> Result<(T, R), E>,
    ) -> Result<R, E> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(QueueClosed.into());
        }
        let (op, answer) = step(&mut inner.state)?;
        inner.waiting.push(op);
        let lane = inner.lane.take();
        drop(inner);
        if let Some(lane) = lane {
            lane.wake();
        }
        Ok(answer)
    }

    /// Queues one operation.
    pub(crate) fn push(&self, op: T) -> Result<(), QueueClosed> {
        self.push_with(|_| Ok::<_, QueueClosed>((op, ())))
    }

    /// Queues one last operation and lets nothing more in, in one step.
    pub(crate) fn push_last(&self, op: T) -> Result<(), QueueClosed> {
        let lane = {
            let mut inner = self.inner.lock();
            if inner.closed {
                return Err(QueueClosed);
            }
            inner.closed = true;
            inner.waiting.push(op);
            inner.lane.take()
        };
        if let Some(lane) = lane {
            lane.wake();
        }
        Ok(())
    }

    /// Looks at or changes the state, in one step with what waits: the lane takes operations back
    /// here when a group failed.
    pub(crate) fn with<R>(&self, step: impl FnOnce(&mut S, &mut Vec<T>) -> R) -> R {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        step(&mut inner.state, &mut inner.waiting)
    }

    /// For the lane: waits until something is queued and swaps it into `taken`, which must be empty.
    /// False when the queue is closed and drained.
    pub(crate) async fn take(&self, taken: &mut Vec<T>) -> bool {
        assert!(taken.is_empty(), "lane takes while {} operations are left", taken.len());
        poll_fn(|context| {
            let mut inner = self.inner.lock();
            if !inner.waiting.is_empty() {
                inner.lane = None;
                std::mem::swap(&mut inner.waiting, taken);
                return Poll::Ready(true);
            }
            if inner.closed {
                return Poll::Ready(false);
            }
            inner.lane = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Lets nothing more in. The lane still gets what waits, then ends.
    pub(crate) fn close(&self) {
        let lane = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            inner.lane.take()
        };
        if let Some(lane) = lane {
            lane.wake();
        }
    }
}
