//! An open file whose bytes go through the ring.

use super::in_flight::InFlight;
use crate::disk::{Allocate, AppendSyncError, File, LocalFuture};
use crate::error::{IoError, Op, Result};
use crate::portable::sys;
use bytes::{Buf, Bytes, BytesMut};
use rustix::fd::BorrowedFd;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio_uring::buf::BoundedBuf;

/// The ring's lengths have 32 bits, and the kernel moves less than 2 GiB at a time anyway.
const READ_BYTES_MAX: usize = 1 << 30;

pub(super) struct UringFile {
    file: Rc<tokio_uring::fs::File>,
    path: PathBuf,
    in_flight: Rc<InFlight>,
}

impl UringFile {
    pub(super) fn new(file: std::fs::File, path: &Path, in_flight: &Rc<InFlight>) -> UringFile {
        let file = Rc::new(tokio_uring::fs::File::from_std(file));
        UringFile { file, path: path.to_path_buf(), in_flight: Rc::clone(in_flight) }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: `self.file` owns the descriptor and closes it only when it is dropped (`close` takes
        // it by value, and nobody else can get it out of the `Rc`), so it is open while `self` is.
        unsafe { BorrowedFd::borrow_raw(self.file.as_raw_fd()) }
    }

    /// The ring reads -1 as "where the file stands"; the system calls of the portable back end refuse
    /// it, and so does this.
    fn check_position(&self, op: Op, position: u64) -> Result<()> {
        match i64::try_from(position) {
            Ok(_) => Ok(()),
            Err(_) => Err(IoError::new(op, &self.path, rustix::io::Errno::INVAL)),
        }
    }

    /// What the ring says of a write, with the path. Runs to its end also when it is dropped.
    async fn write(&self, position: u64, bufs: Vec<Bytes>) -> Result<()> {
        self.check_position(Op::Write, position)?;
        let written = self.in_flight.run(write_all(Rc::clone(&self.file), position, bufs)).await;
        match written {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::WriteZero => Err(sys::write_of_nothing(&self.path)),
            Err(e) => Err(IoError::new(Op::Write, &self.path, e)),
        }
    }

    /// What the ring says of a sync, with the path. A sync is never tried again, whatever it answers:
    /// `EINTR` and `ECANCELED` are unknown outcomes, and the caller takes them for failures.
    async fn sync(&self, content_only: bool) -> Result<()> {
        let file = Rc::clone(&self.file);
        let synced = self
            .in_flight
            .run(async move { if content_only { file.sync_data().await } else { file.sync_all().await } });
        synced.await.map_err(|e| IoError::new(Op::Sync, &self.path, e))
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
                let begin = buf.len();
                let now = (end - begin).min(READ_BYTES_MAX);
                let (read, slice) = self.file.read_at(buf.slice(begin..begin + now), at).await;
                buf = slice.into_inner();
                match read {
                    Ok(0) => break,
                    Ok(n) => at = at.saturating_add(n as u64),
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

    // The place of linked entries (write and sync pushed together, the write's completion calls
    // `written`) and of one `RWF_DSYNC` write when nobody waits for `written`. Both need entries of our
    // own (`tokio_uring::UnsubmittedOneshot`), and a short write or `ECANCELED` then finishes as below.
    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, std::result::Result<(), AppendSyncError>> {
        Box::pin(async move {
            self.write(position, bufs).await.map_err(AppendSyncError::Write)?;
            if let Some(written) = written {
                written();
            }
            self.sync(true).await.map_err(AppendSyncError::Sync)
        })
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

/// Writes all of `bufs`, going on after short and interrupted writes.
async fn write_all(file: Rc<tokio_uring::fs::File>, position: u64, mut bufs: Vec<Bytes>) -> io::Result<()> {
    let mut at = position;
    advance(&mut bufs, 0);
    while !bufs.is_empty() {
        let mut rest = bufs.split_off(bufs.len().min(sys::BUFFERS_PER_WRITE_MAX));
        let (written, buffers) = file.writev_at(bufs, at).await;
        bufs = buffers;
        match written {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                at += n as u64;
                advance(&mut bufs, n);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        bufs.append(&mut rest);
        // What was cut off above may begin with empty buffers.
        advance(&mut bufs, 0);
    }
    Ok(())
}

/// Takes the first `n` bytes off a list of buffers, and empty buffers off its front.
fn advance(bufs: &mut Vec<Bytes>, n: usize) {
    let mut left = n;
    let mut done = 0;
    for buf in bufs.iter_mut() {
        if left < buf.len() {
            buf.advance(left);
            left = 0;
            break;
        }
        left -= buf.len();
        done += 1;
    }
    assert!(left == 0, "a write of fewer bytes reported {n}");
    bufs.drain(..done);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bufs(parts: &[&'static str]) -> Vec<Bytes> {
        parts.iter().map(|p| Bytes::from_static(p.as_bytes())).collect()
    }

    #[test]
    fn a_short_write_leaves_exactly_the_bytes_behind_it() {
        for (n, rest) in [
            (0, vec!["ab", "", "cde"]),
            (1, vec!["b", "", "cde"]),
            (2, vec!["cde"]),
            (4, vec!["e"]),
            (5, vec![]),
        ] {
            let mut left = bufs(&["", "ab", "", "cde"]);
            advance(&mut left, n);
            assert_eq!(left, bufs(&rest), "after {n} bytes");
        }
    }
}
