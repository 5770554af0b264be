//! Many clients at once: as tasks that share one thread, and as threads.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Runs `clients` futures on this thread until all are done, polling only those that were woken.
pub fn tasks<F: Future<Output = ()>>(clients: usize, mut client: impl FnMut(usize) -> F) {
    let ready = Arc::new(Ready { thread: std::thread::current(), woken: Mutex::new((0..clients).collect()) });
    let mut running: Vec<Option<(Pin<Box<F>>, Waker)>> = (0..clients)
        .map(|index| {
            let waker = Waker::from(Arc::new(WakeOne { index, ready: Arc::clone(&ready) }));
            Some((Box::pin(client(index)), waker))
        })
        .collect();
    let mut left = clients;
    let mut woken = Vec::new();
    while left > 0 {
        std::mem::swap(&mut woken, &mut *ready.lock());
        if woken.is_empty() {
            std::thread::park();
        }
        for index in woken.drain(..) {
            // A task may be woken once more after its end.
            let Some((task, waker)) = &mut running[index] else { continue };
            if pin!(task).poll(&mut Context::from_waker(waker)) == Poll::Ready(()) {
                running[index] = None;
                left -= 1;
            }
        }
    }
}

/// Runs `clients` threads until all are done.
pub fn threads(clients: usize, client: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for index in 0..clients {
            let client = &client;
            scope.spawn(move || client(index));
        }
    });
}

struct Ready {
    thread: Thread,
    woken: Mutex<Vec<usize>>,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct WakeOne {
    index: usize,
    ready: Arc<Ready>,
}

impl Wake for WakeOne {
    fn wake(self: Arc<Self>) {
        let was_empty = {
            let mut woken = self.ready.lock();
            woken.push(self.index);
            woken.len() == 1
        };
        // One call for all that are woken before the thread looks.
        if was_empty {
            self.ready.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;

    #[test]
    fn every_task_runs_to_its_end_however_often_it_waits() {
        let done = Cell::new(0);
        tasks(64, |index| {
            let mut waits = index;
            let done = &done;
            poll_fn(move |context| {
                if waits == 0 {
                    done.set(done.get() + 1);
                    return Poll::Ready(());
                }
                waits -= 1;
                let waker = context.waker().clone();
                if waits % 2 == 0 {
                    waker.wake();
                } else {
                    std::thread::spawn(move || waker.wake());
                }
                Poll::Pending
            })
        });
        assert_eq!(done.get(), 64);
    }
}
