//! An open file whose bytes go through the ring.

use super::in_flight::InFlight;
use super::op::{BYTES_MAX, Target};
use super::write::{Failure, append_fused, append_split, write_all};
use crate::disk::{Allocate, AppendSyncError, File, LocalFuture};
use crate::error::{IoError, Op, Result};
use crate::portable::sys;
use bytes::{Bytes, BytesMut};
use rustix::fd::{AsFd, BorrowedFd};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;

pub(super) struct UringFile {
    target: Target,
    path: PathBuf,
}

impl UringFile {
    pub(super) fn new(file: std::fs::File, path: &Path, in_flight: &Rc<InFlight>) -> UringFile {
        let target = Target { file: Rc::new(file), in_flight: Rc::clone(in_flight) };
        UringFile { target, path: path.to_path_buf() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.target.file.as_fd()
    }

    /// The ring reads -1 as "where the file stands"; the system calls of the portable back end refuse
    /// it, and so does this.
    fn check_position(&self, op: Op, position: u64) -> Result<()> {
        match i64::try_from(position) {
            Ok(_) => Ok(()),
            Err(_) => Err(IoError::new(op, &self.path, rustix::io::Errno::INVAL)),
        }
    }

    fn write_error(&self, error: io::Error) -> IoError {
        match error.kind() {
            io::ErrorKind::WriteZero => sys::write_of_nothing(&self.path),
            _ => IoError::new(Op::Write, &self.path, error),
        }
    }

    fn append_error(&self, failure: Failure) -> AppendSyncError {
        match failure {
            Failure::Write(error) => AppendSyncError::Write(self.write_error(error)),
            Failure::Sync(error) => AppendSyncError::Sync(IoError::new(Op::Sync, &self.path, error)),
        }
    }

    /// Runs to its end also when it is dropped.
    async fn write(&self, position: u64, bufs: Vec<Bytes>) -> Result<()> {
        self.check_position(Op::Write, position)?;
        let written = self.target.in_flight.run(write_all(self.target.clone(), position, bufs)).await;
        written.map_err(|e| self.write_error(e))
    }

    /// Write and sync run to their end also when it is dropped.
    async fn append(
        &self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + '_>>,
    ) -> std::result::Result<(), AppendSyncError> {
        self.check_position(Op::Write, position).map_err(AppendSyncError::Write)?;
        let (target, in_flight) = (self.target.clone(), &self.target.in_flight);
        let appended = match written {
            None => in_flight.run(append_fused(target, position, bufs)).await,
            Some(written) => {
                let readable = Rc::new(Cell::new(false));
                let append = append_split(target, position, bufs, Rc::clone(&readable));
                let mut append = pin!(in_flight.run(append));
                let mut written = Some(written);
                // The hook may borrow from the caller and the append outlives him: so it is called here.
                poll_fn(|cx| {
                    let polled = append.as_mut().poll(cx);
                    if readable.get()
                        && let Some(written) = written.take()
                    {
                        written();
                    }
                    polled
                })
                .await
            }
        };
        appended.map_err(|failure| self.append_error(failure))
    }

    /// A sync is never tried again, whatever it answers: `EINTR` and `ECANCELED` are unknown outcomes,
    /// and the caller takes them for failures. Runs to its end also when it is dropped.
    async fn sync(&self, content_only: bool) -> Result<()> {
        let target = self.target.clone();
        let synced = self.target.in_flight.run(async move { target.sync(content_only).await.0 }).await;
        synced.map(drop).map_err(|e| IoError::new(Op::Sync, &self.path, e))
    }
}

impl File for UringFile {
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
            self.check_position(Op::Read, position)?;
            let end = buf.len().checked_add(len).expect("a read fits into memory");
            buf.reserve(len);
            let mut at = position;
            while buf.len() < end {
                let now = (end - buf.len()).min(BYTES_MAX);
                let read;
                (read, buf) = self.target.read(at, now, buf).await;
                match read {
                    Ok(0) => break,
                    Ok(n) => {
                        assert!(n <= now, "a read of {now} bytes reported {n}");
                        at = at.saturating_add(n as u64);
                        // SAFETY: the kernel has put `n` bytes behind the length, into room that was
                        // reserved: `n <= now`, and `Target::read` has checked `now` against the room.
                        unsafe { buf.set_len(buf.len() + n) };
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(IoError::new(Op::Read, &self.path, e)),
                }
            }
            Ok(buf)
        })
    }

    fn write_at<'a>(&'a self, position: u64, bufs: Vec<Bytes>) -> LocalFuture<'a, Result<()>> {
        Box::pin(self.write(position, bufs))
    }

    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, std::result::Result<(), AppendSyncError>> {
        Box::pin(self.append(position, bufs, written))
    }

    fn sync_data<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(self.sync(true))
    }

    fn sync_all<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(self.sync(false))
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
