//! A bounded queue between one sender and one receiver, for any executor.
//!
//! The reading lane of a snapshot fills it and sleeps when it is full; the consumer empties it and
//! sleeps when it is empty. Dropping either end wakes the other.

use crate::sync::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

struct Shared<T> {
    items: VecDeque<T>,
    capacity: usize,
    sender_gone: bool,
    receiver_gone: bool,
    /// The one end that sleeps: both cannot, as a queue is not full and empty at once.
    asleep: Option<Waker>,
}

/// The filling end.
pub(super) struct Sender<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

/// The emptying end.
pub(super) struct Receiver<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

/// The receiver is gone: nobody wants the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// A queue of at most `capacity` items.
pub(super) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a queue of {capacity} items passes nothing on");
    let shared = Arc::new(Mutex::new(Shared {
        items: VecDeque::with_capacity(capacity),
        capacity,
        sender_gone: false,
        receiver_gone: false,
        asleep: None,
    }));
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

impl<T> Shared<T> {
    fn sleep(&mut self, context: &Context<'_>) {
        self.asleep = Some(context.waker().clone());
    }
}

/// Changes the shared state and wakes the other end outside of the lock.
fn step<T, R>(shared: &Mutex<Shared<T>>, change: impl FnOnce(&mut Shared<T>) -> (R, bool)) -> R {
    let (answer, waker) = {
        let mut shared = shared.lock();
        let (answer, wake) = change(&mut shared);
        (answer, if wake { shared.asleep.take() } else { None })
    };
    if let Some(waker) = waker {
        waker.wake();
    }
    answer
}

impl<T> Sender<T> {
    /// Puts an item in as soon as there is room.
    pub(super) async fn send(&self, item: T) -> Result<(), Gone> {
        let mut item = Some(item);
        poll_fn(|context| {
            step(&self.shared, |shared| {
                if shared.receiver_gone {
                    return (Poll::Ready(Err(Gone)), false);
                }
                if shared.items.len() == shared.capacity {
                    shared.sleep(context);
                    return (Poll::Pending, false);
                }
                shared.items.extend(item.take());
                (Poll::Ready(Ok(())), true)
            })
        })
        .await
    }
}

impl<T> Receiver<T> {
    /// Takes the next item; `None` when the sender is gone and all is taken.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing.
    pub(super) async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| {
            step(&self.shared, |shared| match shared.items.pop_front() {
                Some(item) => (Poll::Ready(Some(item)), true),
                None if shared.sender_gone => (Poll::Ready(None), false),
                None => {
                    shared.sleep(context);
                    (Poll::Pending, false)
                }
            })
        })
        .await
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        step(&self.shared, |shared| {
            shared.sender_gone = true;
            ((), true)
        });
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let items = step(&self.shared, |shared| {
            shared.receiver_gone = true;
            (std::mem::take(&mut shared.items), true)
        });
        drop(items);
    }
}
