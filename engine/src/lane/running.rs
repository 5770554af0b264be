//! How many lanes of one log still run, so that close can wait for them to let go of the directory.

use crate::sync::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The lanes that hold a log's [`Shared`](crate::handle::Shared). Streams of snapshots have lanes of
/// their own, which end with the stream and are not counted.
#[derive(Default)]
pub(crate) struct Running {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    lanes: usize,
    waiting: Vec<Waker>,
}

/// One lane that runs. The lane drops it after everything else that it holds.
pub(crate) struct RunningLane {
    running: Arc<Running>,
}

impl Running {
    pub(crate) fn enter(self: &Arc<Running>) -> RunningLane {
        self.inner.lock().lanes += 1;
        RunningLane { running: Arc::clone(self) }
    }

    /// Resolves when no lane runs.
    pub(crate) async fn ended(&self) {
        poll_fn(|context| {
            let mut inner = self.inner.lock();
            if inner.lanes == 0 {
                return Poll::Ready(());
            }
            inner.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for RunningLane {
    fn drop(&mut self) {
        let waiting = {
            let mut inner = self.running.inner.lock();
            inner.lanes -= 1;
            if inner.lanes == 0 { std::mem::take(&mut inner.waiting) } else { Vec::new() }
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}
