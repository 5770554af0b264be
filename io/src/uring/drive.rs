//! Drives a lane's future: parks the thread itself while nothing is in flight, and waits in tokio's
//! epoll, which watches the ring, while something is.
//!
//! A lane that waits for its queue needs no ring, and waking a parked thread is cheaper than waking an
//! epoll through an eventfd. While the thread is parked nothing of tokio runs, and nothing has to: all
//! that a lane does on its ring is counted by [`InFlight`].
//!
//! No wake-up is lost. A waker sets `notified` and then looks whether the lane is parked; the lane says
//! that it parks and then looks at `notified` (both in one order for all threads): either the waker
//! sees the lane parked and unparks it, or the lane sees `notified` and does not sleep. A lane that is
//! not parked is woken through its task, also when it was about to return to tokio.

use super::in_flight::InFlight;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Signal {
    thread: Thread,
    /// Wakes the lane's task, whose waker stays the same for its life.
    task: Waker,
    parked: AtomicBool,
    notified: AtomicBool,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.notified.swap(true, Ordering::SeqCst) {
            // Who set it first wakes.
            return;
        }
        if self.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        } else {
            self.task.wake_by_ref();
        }
    }
}

impl Signal {
    /// Sleeps until somebody notifies.
    fn park(&self) {
        self.parked.store(true, Ordering::SeqCst);
        while !self.notified.load(Ordering::SeqCst) {
            std::thread::park();
        }
        self.parked.store(false, Ordering::SeqCst);
    }
}

/// Runs `future` as a task of its own on a tokio-uring runtime.
pub(super) async fn drive<F: Future>(future: F, in_flight: &InFlight) -> F::Output {
    let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let thread = std::thread::current();
    let (parked, notified) = (AtomicBool::new(false), AtomicBool::new(false));
    let signal = Arc::new(Signal { thread, task, parked, notified });
    let waker = Waker::from(Arc::clone(&signal));
    let mut future = pin!(future);
    poll_fn(|_| {
        loop {
            signal.notified.store(false, Ordering::SeqCst);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(output);
            }
            // Whoever notified since has woken the task as well, for the lane was not parked.
            if in_flight.count() > 0 {
                return Poll::Pending;
            }
            signal.park();
        }
    })
    .await
}
