//! The runtime for real disks: a named thread per lane, the clocks and the randomness of the machine.
//!
//! A lane that panics dies alone: the panic is caught and logged, what the lane owned is dropped, and
//! it is for the owner of its queue to tell the clients when that is dropped. Threads are not joined:
//! a lane ends when its future does, and the last handle of a directory may be dropped by a lane.

use crate::disk::Disk;
use crate::error::{IoError, Op, Result};
use crate::executor::{self, CatchPanic, Inside};
use crate::portable::PortableDisk;
use crate::probe::{self, Backend, BackendChoice, BackendError, BackendReport};
use crate::rt::{BoxFuture, LaneFn, Rt};
use crate::timer::{self, Sleep};
use crate::uring::Ring;
use std::any::Any;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Threads, clocks and randomness of this machine, with one back end.
#[derive(Debug)]
pub struct ThreadRt {
    backend: Backend,
    /// Whether a lane that gets no ring may do without one.
    may_fall_back: bool,
}

impl ThreadRt {
    /// Picks the back end for the lanes that will work in `dir`, and says which one and why.
    ///
    /// `choice` is taken as it is; [`BackendChoice::from_env_or`] is what lets `KRAFTLOG_IO` override
    /// one. Where io_uring is tried, a file `kraftlog.probe` is made in `dir` and removed again.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] if io_uring was asked for and cannot be had;
    /// [`BackendError::Io`] with the path if `dir` cannot be looked at or probed.
    pub fn open(
        dir: &Path,
        choice: BackendChoice,
    ) -> std::result::Result<(Arc<dyn Rt>, BackendReport), BackendError> {
        let (backend, report) = probe::choose(dir, choice)?;
        timer::start().map_err(|e| IoError::new(Op::StartLane, dir, e))?;
        let may_fall_back = choice == BackendChoice::Auto;
        Ok((Arc::new(ThreadRt { backend, may_fall_back }), report))
    }
}

impl Rt for ThreadRt {
    fn spawn_lane(&self, name: &str, dir: &Path, lane: LaneFn) -> Result<()> {
        let failed = |e| IoError::new(Op::StartLane, dir, e);
        let (backend, may_fall_back) = (self.backend, self.may_fall_back);
        let lane_name = name.to_owned();
        // Thread and lane are apart until the thread has its disk.
        let (tell_started, started) = sync_channel(1);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || match Engine::start(backend, may_fall_back, &lane_name) {
                Ok(engine) => {
                    // Nobody waits any more only if the caller's thread died.
                    let _ = tell_started.send(Ok(()));
                    if let Err(panic) = engine.run(lane) {
                        let text = executor::panic_text(&*panic);
                        tracing::error!(lane = lane_name, panic = text, "an I/O lane panicked and is gone");
                    }
                }
                Err(error) => drop(tell_started.send(Err(error))),
            })
            .map_err(failed)?;
        match started.recv() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(failed(std::io::Error::other("the lane's thread died while it started"))),
        }
    }

    fn sleep(&self, time: Duration) -> BoxFuture<()> {
        Box::pin(Sleep::new(time))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock that `Rt` hands out")]
    fn now(&self) -> Duration {
        // A clock set before 1970 reads as 1970.
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
    }

    fn monotonic(&self) -> Duration {
        timer::monotonic()
    }

    fn random(&self) -> u64 {
        let mut bytes = [0_u8; 8];
        match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(8) => u64::from_ne_bytes(bytes),
            // No such system call, or a signal: std has keys of its own, good enough for ids.
            _ => RandomState::new().hash_one(std::process::id()),
        }
    }

    fn block_on<'a>(&self, future: Pin<Box<dyn Future<Output = ()> + 'a>>) {
        executor::block_on(future);
    }
}

/// What drives one lane on its thread.
enum Engine {
    Portable,
    Uring(Ring),
}

impl Engine {
    fn start(backend: Backend, may_fall_back: bool, name: &str) -> std::io::Result<Engine> {
        match backend {
            Backend::Portable => Ok(Engine::Portable),
            Backend::Uring => match Ring::new() {
                Ok(ring) => Ok(Engine::Uring(ring)),
                // The probe had a ring, this lane has none: memory or handles ran out in between.
                Err(error) if may_fall_back => {
                    tracing::warn!(lane = name, %error, "no io_uring for this lane; it works without");
                    Ok(Engine::Portable)
                }
                Err(error) => Err(error),
            },
        }
    }

    fn run(self, lane: LaneFn) -> std::result::Result<(), Box<dyn Any + Send>> {
        match self {
            Engine::Portable => executor::block_on(guarded(lane, PortableDisk::new())),
            Engine::Uring(ring) => {
                let _inside = Inside::enter();
                ring.run(|disk| guarded(lane, disk))
            }
        }
    }
}

/// The lane's future, made at its first poll, so that a panic while it is made is caught as well.
fn guarded(lane: LaneFn, disk: Rc<dyn Disk>) -> CatchPanic<()> {
    CatchPanic::new(Box::pin(async move { lane(disk).await }))
}
