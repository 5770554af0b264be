//! The back end on io_uring, through tokio-uring on the lane's own thread.
//!
//! Reads, writes and syncs go through the ring; opening, names, lengths and reservations are plain
//! system calls on the lane, because they gain nothing from a ring and some kernels lack them there.
//! An append is a write and then a sync, each waited for. Pushing the two as linked entries, or fusing
//! them into one `RWF_DSYNC` write, has its place in `file.rs` (`append_and_sync`).
//!
//! Buffers belong to the operation until the kernel is done with them: tokio-uring keeps them when a
//! future is dropped. A write or sync whose future is dropped still runs to its end: [`InFlight`]
//! takes it over, and the lane's thread ends only when nothing is in flight. So dropping a future
//! cancels interest, never I/O.
//!
//! While the lane has nothing to do it parks in epoll, which watches the ring and tokio's eventfd; a
//! waker from another thread costs one write to that eventfd.

#![expect(unsafe_code, reason = "tokio-uring's file does not lend its descriptor safely")]

mod file;
mod in_flight;

use crate::disk::{Disk, Entry, File, LocalFuture, OpenHow};
use crate::error::Result;
use crate::portable::sys;
use in_flight::InFlight;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Entries of a lane's ring: many more than the few operations that a lane ever has in flight, few
/// enough for the limits on locked memory of old kernels.
const RING_ENTRIES: u32 = 64;

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
        // A bare ring first: where that is refused, tokio-uring's constructor would leak its executor.
        drop(io_uring::IoUring::new(RING_ENTRIES)?);
        let runtime = tokio_uring::Runtime::new(tokio_uring::builder().entries(RING_ENTRIES))?;
        Ok(Ring { runtime })
    }

    /// Runs what `make` makes of a disk to its end, and then what is still in flight.
    pub(crate) fn run<F: Future>(self, make: impl FnOnce(Rc<dyn Disk>) -> F) -> F::Output {
        self.runtime.block_on(async {
            let in_flight = Rc::new(InFlight::default());
            let output = make(Rc::new(UringDisk { in_flight: Rc::clone(&in_flight) })).await;
            in_flight.idle().await;
            output
        })
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
