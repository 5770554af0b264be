//! What a lane has in flight: operations in the ring, and operations whose futures were dropped.
//!
//! Both are counted. The lane may sleep away from its ring only while the count is zero, ends only when
//! it is zero, and knows by it that entries which must stand together find room in the ring.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub(super) struct InFlight {
    count: Cell<usize>,
    /// Who waits for the end of all of them.
    waiter: RefCell<Option<Waker>>,
}

impl InFlight {
    /// Counts one more for as long as the answer lives.
    pub(super) fn one(self: &Rc<Self>) -> One {
        self.count.set(self.count.get() + 1);
        One(Rc::clone(self))
    }

    /// At least the number of entries that were pushed and have not completed.
    pub(super) fn count(&self) -> usize {
        self.count.get()
    }

    /// An operation that goes on by itself if its future is dropped after the first poll.
    pub(super) fn run<F: Future + 'static>(self: &Rc<Self>, operation: F) -> Operation<F> {
        Operation { operation: Some(Box::pin(operation)), started: false, in_flight: Rc::clone(self) }
    }

    /// Resolves when nothing is in flight.
    pub(super) async fn idle(&self) {
        poll_fn(|cx| {
            if self.count.get() == 0 {
                return Poll::Ready(());
            }
            *self.waiter.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// One that is in flight, until it is dropped.
pub(super) struct One(Rc<InFlight>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        if let Some(waiter) = self.0.waiter.take() {
            waiter.wake();
        }
    }
}

pub(super) struct Operation<F: Future + 'static> {
    operation: Option<Pin<Box<F>>>,
    started: bool,
    in_flight: Rc<InFlight>,
}

impl<F: Future + 'static> Future for Operation<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.started = true;
        let operation = self.operation.as_mut().expect("polled after it was ready");
        let polled = operation.as_mut().poll(cx);
        if polled.is_ready() {
            self.operation = None;
        }
        polled
    }
}

impl<F: Future + 'static> Drop for Operation<F> {
    fn drop(&mut self) {
        if !self.started {
            return;
        }
        if let Some(operation) = self.operation.take() {
            let one = self.in_flight.one();
            tokio_uring::spawn(async move {
                operation.await;
                drop(one);
            });
        }
    }
}
