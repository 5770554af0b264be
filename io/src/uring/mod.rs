//! The back end on io_uring, through tokio-uring on the lane's own thread.
//!
//! Reads, writes and syncs go through the ring; opening, names, lengths and reservations are plain
//! system calls on the lane, because they gain nothing from a ring and some kernels lack them there.
//! An append is a write and a sync as two linked entries, so that the kernel goes from one to the other
//! without the lane; or, when nobody needs the bytes before they are durable, one `RWF_DSYNC` write.
//! `write.rs` has the table of what the kernel may answer.
//!
//! File and buffers belong to an operation until the kernel is done with them, also when its future is
//! dropped. A write, sync or append whose future is dropped still runs to its end: [`InFlight`] takes
//! it over, and the lane's thread ends only when nothing is in flight. So dropping a future cancels
//! interest, never I/O. Nothing is registered with the ring, neither files nor buffers, so that it
//! needs no locked memory beyond itself.
//!
//! While nothing is in flight the lane parks its thread, as a portable one does; otherwise it waits in
//! epoll, which watches the ring (`drive.rs`).

#![expect(unsafe_code, reason = "the kernel works with buffers behind the compiler's back")]

mod drive;
mod file;
mod in_flight;
mod op;
mod write;

use crate::disk::{Disk, Entry, File, LocalFuture, OpenHow};
use crate::error::Result;
use crate::executor::panic_text;
use crate::portable::sys;
use in_flight::InFlight;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::catch_unwind;
use std::path::Path;
use std::rc::Rc;

/// Entries of a lane's ring: many more than the few operations that a lane ever has in flight, few
/// enough for the limits on locked memory of old kernels.
const RING_ENTRIES: u32 = 64;

/// More than the handles (epoll, eventfd, their copies, a pipe for signals) that tokio takes.
const EXECUTOR_HANDLES: usize = 8;

/// A ring with the executor that drives it, for one lane.
pub(crate) struct Ring {
    runtime: tokio_uring::Runtime,
}

impl Ring {
    /// Whether this build has the back end.
    pub(crate) const BUILT: bool = true;

    /// Makes the ring, without any flags: `DEFER_TASKRUN` hangs tokio-uring, and the others gain
    /// nothing with one operation in flight.
    pub(crate) fn new() -> io::Result<Ring> {
        // A bare ring and handles first: where those are refused, tokio-uring's constructor would leak
        // its executor.
        let ring = io_uring::IoUring::new(RING_ENTRIES)?;
        let handles: io::Result<Vec<_>> = (0..EXECUTOR_HANDLES)
            // SAFETY: `ring` owns the descriptor and is dropped below.
            .map(|_| unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned())
            .collect();
        drop((handles?, ring));
        // What it cannot bear it unwraps: no room in an epoll, for one.
        let made = catch_unwind(|| tokio_uring::Runtime::new(tokio_uring::builder().entries(RING_ENTRIES)));
        match made {
            Ok(runtime) => Ok(Ring { runtime: runtime? }),
            Err(panic) => Err(io::Error::other(panic_text(&*panic).to_owned())),
        }
    }

    /// Whether a ring can be had at all and answers: `false` if it was made and does not. Touches no
    /// file and does not wait.
    pub(crate) fn answers() -> io::Result<bool> {
        let mut ring = io_uring::IoUring::new(2)?;
        // SAFETY: an entry that does nothing has no buffers.
        let pushed = unsafe { ring.submission().push(&io_uring::opcode::Nop::new().build()) };
        pushed.map_err(|_| io::Error::other("a new ring has no room for one entry"))?;
        // The kernel does nothing at once, within the call that asks for it.
        ring.submit()?;
        Ok(ring.completion().next().is_some())
    }

    /// Runs what `make` makes of a disk to its end, and then what is still in flight.
    pub(crate) fn run<F>(self, make: impl FnOnce(Rc<dyn Disk>) -> F + 'static) -> F::Output
    where
        F: Future<Output: 'static> + 'static,
    {
        let in_flight = Rc::new(InFlight::default());
        let disk = Rc::new(UringDisk { in_flight: Rc::clone(&in_flight) });
        let lane = async move {
            let served = async {
                let output = make(disk).await;
                in_flight.idle().await;
                output
            };
            drive::drive(served, &in_flight).await
        };
        // A task, because a completion wakes one without a system call.
        match self.runtime.block_on(async { tokio_uring::spawn(lane).await }) {
            Ok(output) => output,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

struct UringDisk {
    in_flight: Rc<InFlight>,
}

impl Disk for UringDisk {
    fn backend(&self) -> &'static str {
        "uring"
    }

    fn open<'a>(&'a self, path: &'a Path, how: OpenHow) -> LocalFuture<'a, Result<Rc<dyn File>>> {
        Box::pin(async move {
            let file = sys::open(path, how)?;
            Ok(Rc::new(file::UringFile::new(file, path, &self.in_flight)) as Rc<dyn File>)
        })
    }

    fn list<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<Vec<Entry>>> {
        Box::pin(async move { sys::list(dir) })
    }

    fn stat<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<Option<Entry>>> {
        Box::pin(async move { sys::stat(path) })
    }

    fn create_dir<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::create_dir(path) })
    }

    fn rename<'a>(&'a self, from: &'a Path, to: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::rename(from, to) })
    }

    fn remove<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::remove(path) })
    }

    fn sync_dir<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::sync_dir(dir) })
    }
}
