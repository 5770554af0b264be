//! Operations whose futures were dropped, run to their end.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Counts a lane's abandoned operations, so that the lane can wait for them at its end.
#[derive(Default)]
pub(super) struct InFlight {
    abandoned: Cell<usize>,
    waiter: RefCell<Option<Waker>>,
}

impl InFlight {
    /// An operation that goes on by itself if its future is dropped after the first poll.
    pub(super) fn run<F: Future + 'static>(self: &Rc<Self>, operation: F) -> Operation<F> {
        Operation { operation: Some(Box::pin(operation)), started: false, in_flight: Rc::clone(self) }
    }

    /// Resolves when no abandoned operation is left.
    pub(super) async fn idle(&self) {
        poll_fn(|cx| {
            if self.abandoned.get() == 0 {
                return Poll::Ready(());
            }
            *self.waiter.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
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
            let abandoned = Abandoned::new(Rc::clone(&self.in_flight));
            tokio_uring::spawn(async move {
                let _abandoned = abandoned;
                operation.await;
            });
        }
    }
}

/// One abandoned operation, until it ends.
struct Abandoned(Rc<InFlight>);

impl Abandoned {
    fn new(in_flight: Rc<InFlight>) -> Abandoned {
        in_flight.abandoned.set(in_flight.abandoned.get() + 1);
        Abandoned(in_flight)
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandoned.set(self.0.abandoned.get() - 1);
        if let Some(waiter) = self.0.waiter.take() {
            waiter.wake();
        }
    }
}
