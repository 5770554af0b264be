//! What a lane gets from outside: its thread, time and randomness.
//!
//! A **lane** is a future that owns a [`Disk`] and serves a queue. With the portable and the uring
//! back end each lane has a thread of its own; a simulated [`Rt`] runs all lanes and clients on one
//! seeded executor, so that a seed replays a run. Nothing above this crate asks a clock or a random
//! source in any other way.

use crate::disk::{Disk, LocalFuture};
use crate::error::Result;
use crate::lock::{DirId, DirLock, HeldLock, LockError};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

pub use crate::executor::block_on;

/// Makes the lane's future on the lane's own thread, from the disk that its back end gives it.
pub type LaneFn = Box<dyn FnOnce(Rc<dyn Disk>) -> LocalFuture<'static, ()> + Send>;

/// A future that may cross threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a lane gets from outside.
pub trait Rt: Send + Sync {
    /// Starts a lane that will work in `dir`; it ends when its future does.
    ///
    /// A lane that panics ends there, and what it owns is dropped: let that drop tell whoever waits for
    /// an answer of the lane.
    ///
    /// # Errors
    /// If no thread or ring can be had; `lane` was not called then.
    fn spawn_lane(&self, name: &str, dir: &Path, lane: LaneFn) -> Result<()>;

    /// Resolves after `time`, on any executor. Never early; a time that the clock cannot hold never comes.
    ///
    /// # Cancel safety
    /// Dropping it forgets the deadline.
    fn sleep(&self, time: Duration) -> BoxFuture<()>;

    /// Wall clock: time since the Unix epoch.
    fn now(&self) -> Duration;

    /// A clock that never goes back, from an arbitrary start.
    fn monotonic(&self) -> Duration;

    /// 64 random bits; for ids, not for secrets.
    fn random(&self) -> u64;

    /// Runs a future to its end on the calling thread.
    ///
    /// # Panics
    /// Inside an async context, where it would block the executor, if the runtime can tell.
    fn block_on<'a>(&self, future: Pin<Box<dyn Future<Output = ()> + 'a>>);

    /// Which directory a path names, so that two paths to one directory are told to be one.
    ///
    /// The default is for directories of the machine that this runs on. A runtime that wraps another one
    /// must hand this and [`lock_dir`](Rt::lock_dir) on.
    ///
    /// # Errors
    /// If nothing or no directory is there.
    fn dir_id(&self, dir: &Path) -> Result<DirId> {
        DirId::of(dir)
    }

    /// Locks a directory for as long as the answer lives, against other processes and this one; the
    /// default is what keeps a running JVM out: [`DirLock::acquire`].
    ///
    /// # Errors
    /// Those of [`DirLock::acquire`].
    fn lock_dir(&self, dir: &Path) -> std::result::Result<Box<dyn HeldLock>, LockError> {
        Ok(Box::new(DirLock::acquire(dir)?))
    }
}
