//! The back end that runs everywhere: positional, blocking system calls on the lane's own thread.
//!
//! Each future does its work at the first poll and is then ready, so that dropping one before that
//! means that nothing was done. No thread pool, no state of its own, nothing to flush at the end.

pub(crate) mod sys;

use crate::disk::{Allocate, AppendSyncError, Disk, Entry, File, LocalFuture, OpenHow};
use crate::error::Result;
use bytes::{Bytes, BytesMut};
use rustix::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The portable disk. It has no state; each lane makes its own.
#[derive(Debug)]
pub struct PortableDisk {
    _private: (),
}

impl PortableDisk {
    /// A disk for the calling thread: a lane, or a tool that has no lanes and drives its futures with
    /// [`block_on`](crate::rt::block_on).
    #[expect(clippy::new_ret_no_self, reason = "a disk is only ever used through the trait")]
    pub fn new() -> Rc<dyn Disk> {
        Rc::new(PortableDisk { _private: () })
    }
}

impl Disk for PortableDisk {
    fn backend(&self) -> &'static str {
        "portable"
    }

    fn open<'a>(&'a self, path: &'a Path, how: OpenHow) -> LocalFuture<'a, Result<Rc<dyn File>>> {
        Box::pin(async move {
            let file = sys::open(path, how)?;
            Ok(Rc::new(PortableFile { file, path: path.to_path_buf() }) as Rc<dyn File>)
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

struct PortableFile {
    file: std::fs::File,
    path: PathBuf,
}

impl PortableFile {
    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl File for PortableFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len<'a>(&'a self) -> LocalFuture<'a, Result<u64>> {
        Box::pin(async move { sys::len(self.fd(), &self.path) })
    }

    fn read_at<'a>(
        &'a self,
        position: u64,
        len: usize,
        mut buf: BytesMut,
    ) -> LocalFuture<'a, Result<BytesMut>> {
        Box::pin(async move {
            sys::read_at(self.fd(), &self.path, position, len, &mut buf)?;
            Ok(buf)
        })
    }

    fn write_at<'a>(&'a self, position: u64, bufs: Vec<Bytes>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::write_at(self.fd(), &self.path, position, &bufs) })
    }

    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, std::result::Result<(), AppendSyncError>> {
        Box::pin(async move {
            sys::write_at(self.fd(), &self.path, position, &bufs).map_err(AppendSyncError::Write)?;
            if let Some(written) = written {
                written();
            }
            sys::sync_data(self.fd(), &self.path).map_err(AppendSyncError::Sync)
        })
    }

    fn sync_data<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::sync_data(self.fd(), &self.path) })
    }

    fn sync_all<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::sync_all(self.fd(), &self.path) })
    }

    fn allocate<'a>(&'a self, how: Allocate, position: u64, len: u64) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::allocate(self.fd(), &self.path, how, position, len) })
    }

    fn set_len<'a>(&'a self, len: u64) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::set_len(self.fd(), &self.path, len) })
    }

    fn set_mode<'a>(&'a self, mode: u32) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { sys::set_mode(self.fd(), &self.path, mode) })
    }
}
