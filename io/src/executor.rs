//! One future on one thread: parks while there is nothing to do, never spins.
//!
//! No wake-up is lost: a waker sets `notified` before it unparks, and the thread looks at `notified`
//! before each park. A wake-up that comes between that look and the park leaves the park's token set,
//! so the park returns at once. Code inside the future that eats the token (a channel of std does)
//! cannot hide a wake-up either, because `notified` is still set.

use crate::disk::LocalFuture;
use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Parker {
    thread: Thread,
    notified: AtomicBool,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The swap orders what the waking side did before the poll that follows.
        if !self.notified.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Runs a future to its end on the calling thread.
///
/// # Panics
/// Inside a lane or another `block_on` of this crate: it would block the very executor that has to
/// make the future ready. Other executors cannot be told from plain threads; on tokio, call blocking
/// functions from `spawn_blocking`.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let _inside = Inside::enter();
    let parker = Arc::new(Parker { thread: std::thread::current(), notified: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !parker.notified.swap(false, Ordering::AcqRel) {
            std::thread::park();
        }
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread runs a future of ours, and blocking on another one is a bug.
pub(crate) struct Inside {
    _private: (),
}

impl Inside {
    #[track_caller]
    pub(crate) fn enter() -> Inside {
        assert!(
            !INSIDE.replace(true),
            "blocking inside an async context would stop the executor that it waits for; await instead"
        );
        Inside { _private: () }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// A future whose panic is a value. The inner future is dropped where it panicked or ended, inside
/// of its executor, so that what it owns can still use the executor and its clients are told.
pub(crate) struct CatchPanic<T> {
    inner: Option<LocalFuture<'static, T>>,
}

impl<T> CatchPanic<T> {
    pub(crate) fn new(future: LocalFuture<'static, T>) -> CatchPanic<T> {
        CatchPanic { inner: Some(future) }
    }
}

impl<T> Future for CatchPanic<T> {
    type Output = Result<T, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.inner.as_mut().expect("polled after it was ready");
        let polled = catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(cx)));
        let done = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        let inner = self.inner.take();
        // Dropping what is left may panic too; the first panic is the one to tell of.
        match (done, catch_unwind(AssertUnwindSafe(|| drop(inner)))) {
            (Ok(_), Err(panic)) => Poll::Ready(Err(panic)),
            (done, _) => Poll::Ready(done),
        }
    }
}

/// The text of a panic, if it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "a panic without a text"
    }
}
