//! Deadlines and the wakers that wait for them, on one thread for the whole process.
//!
//! The thread starts with the first [`ThreadRt`](crate::ThreadRt), so that a machine without threads
//! says so there. A sleep that is dropped takes its entry with it: there are never more entries than
//! sleeping futures.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

struct Timer {
    sleepers: Mutex<Sleepers>,
    /// Told when the earliest deadline changes.
    earlier: Condvar,
}

struct Sleepers {
    by_deadline: BTreeMap<(Instant, u64), Waker>,
    next_id: u64,
    thread_runs: bool,
}

fn timer() -> &'static Timer {
    static TIMER: OnceLock<Timer> = OnceLock::new();
    TIMER.get_or_init(|| Timer {
        sleepers: Mutex::new(Sleepers { by_deadline: BTreeMap::new(), next_id: 0, thread_runs: false }),
        earlier: Condvar::new(),
    })
}

/// Starts the timer's thread unless it runs.
pub(crate) fn start() -> io::Result<()> {
    let timer = timer();
    let mut sleepers = timer.sleepers.lock();
    if !sleepers.thread_runs {
        std::thread::Builder::new().name("kraftlog-timer".into()).spawn(|| timer.run())?;
        sleepers.thread_runs = true;
    }
    Ok(())
}

/// The time since an arbitrary moment in the life of this process.
pub(crate) fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let now = now();
    now.saturating_duration_since(*START.get_or_init(|| now))
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that `Rt` hands out")]
fn now() -> Instant {
    Instant::now()
}

impl Timer {
    fn run(&self) {
        let mut due = Vec::new();
        let mut sleepers = self.sleepers.lock();
        loop {
            let now = now();
            while let Some(first) = sleepers.by_deadline.first_entry() {
                if first.key().0 > now {
                    break;
                }
                due.push(first.remove());
            }
            if !due.is_empty() {
                // Wakers are foreign code: never under the lock, and a panic of one is not ours.
                MutexGuard::unlocked(&mut sleepers, || {
                    for waker in due.drain(..) {
                        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                    }
                });
                continue;
            }
            match sleepers.by_deadline.first_key_value() {
                Some((&(deadline, _), _)) => {
                    self.earlier.wait_until(&mut sleepers, deadline);
                }
                None => self.earlier.wait(&mut sleepers),
            }
        }
    }
}

/// Resolves when its deadline has passed, on any executor.
pub(crate) struct Sleep {
    /// `None` for one so far away that the clock cannot name it.
    deadline: Option<Instant>,
    /// The entry that we made, if we were polled before the deadline.
    id: Option<u64>,
}

impl Sleep {
    pub(crate) fn new(time: Duration) -> Sleep {
        Sleep { deadline: now().checked_add(time), id: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        if deadline <= now() {
            return Poll::Ready(());
        }
        let timer = timer();
        // Cloning and dropping a waker is foreign code too.
        let waker = cx.waker().clone();
        let mut sleepers = timer.sleepers.lock();
        let id = match self.id {
            Some(id) => id,
            None => {
                sleepers.next_id += 1;
                sleepers.next_id
            }
        };
        let old = sleepers.by_deadline.insert((deadline, id), waker);
        let earliest =
            sleepers.by_deadline.first_key_value().is_some_and(|(first, _)| *first == (deadline, id));
        drop(sleepers);
        drop(old);
        if earliest {
            timer.earlier.notify_one();
        }
        self.id = Some(id);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(deadline), Some(id)) = (self.deadline, self.id) {
            let waker = timer().sleepers.lock().by_deadline.remove(&(deadline, id));
            drop(waker);
        }
    }
}
