//! One value from a lane or a client to the test, on any executor.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

struct State<T> {
    value: Option<T>,
    is_gone: bool,
    waiting: Option<Waker>,
}

/// Gives the value. Dropped without one, whoever waits panics.
pub(crate) struct Give<T>(Arc<Mutex<State<T>>>);

/// Waits for the value.
pub(crate) struct Answer<T>(Arc<Mutex<State<T>>>);

pub(crate) fn answer<T>() -> (Give<T>, Answer<T>) {
    let state = Arc::new(Mutex::new(State { value: None, is_gone: false, waiting: None }));
    (Give(Arc::clone(&state)), Answer(state))
}

impl<T> Give<T> {
    pub(crate) fn give(self, value: T) {
        self.0.lock().expect("nobody panics in here").value = Some(value);
    }
}

impl<T> Drop for Give<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock().expect("nobody panics in here");
        state.is_gone = true;
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl<T> Answer<T> {
    pub(crate) async fn get(self) -> T {
        poll_fn(|context| {
            let mut state = self.0.lock().expect("nobody panics in here");
            match state.value.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    assert!(!state.is_gone, "whoever was to answer is gone");
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
