//! One answer from a lane to a caller. Belongs to no runtime.
//!
//! The receiver may be awaited by reference, again and again: the answer stays. A sender that is
//! dropped without an answer leaves `None`, so no caller waits for a lane that is gone.

use crate::sync::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

struct Slot<T> {
    answer: Option<T>,
    gone: bool,
    waker: Option<Waker>,
    /// Only when several futures wait on one receiver.
    more: Vec<Waker>,
}

/// The lane's end.
pub(crate) struct Sender<T> {
    slot: Option<Arc<Mutex<Slot<T>>>>,
}

/// The caller's end.
pub(crate) struct Receiver<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

/// A pair for one answer.
pub(crate) fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Mutex::new(Slot { answer: None, gone: false, waker: None, more: Vec::new() }));
    (Sender { slot: Some(Arc::clone(&slot)) }, Receiver { slot })
}

impl<T> Sender<T> {
    /// Gives the answer. Nobody may be waiting any more; that is fine.
    pub(crate) fn send(mut self, answer: T) {
        if let Some(slot) = self.slot.take() {
            settle(&slot, Some(answer));
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            settle(&slot, None);
        }
    }
}

fn settle<T>(slot: &Mutex<Slot<T>>, answer: Option<T>) {
    let (waker, more) = {
        let mut slot = slot.lock();
        slot.gone = true;
        slot.answer = answer;
        (slot.waker.take(), std::mem::take(&mut slot.more))
    };
    if let Some(waker) = waker {
        waker.wake();
    }
    more.into_iter().for_each(Waker::wake);
}

impl<T: Clone> Receiver<T> {
    /// The answer; `None` if the lane ended without one.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; call again.
    pub(crate) async fn get(&self) -> Option<T> {
        poll_fn(|context| {
            let mut slot = self.slot.lock();
            if slot.gone {
                return Poll::Ready(slot.answer.clone());
            }
            let waker = context.waker();
            match &slot.waker {
                None => slot.waker = Some(waker.clone()),
                Some(old) if old.will_wake(waker) => {}
                // Several futures wait: a finished one's waker is called in vain, once.
                Some(_) if slot.more.iter().any(|old| old.will_wake(waker)) => {}
                Some(_) => slot.more.push(waker.clone()),
            }
            Poll::Pending
        })
        .await
    }
}

impl<T> Receiver<T> {
    /// The answer, moved out; `None` if the lane ended without one.
    pub(crate) async fn into_answer(self) -> Option<T> {
        poll_fn(|context| {
            let mut slot = self.slot.lock();
            if slot.gone {
                return Poll::Ready(slot.answer.take());
            }
            slot.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// True when the answer is there, or never will be.
    pub(crate) fn is_settled(&self) -> bool {
        self.slot.lock().gone
    }
}
