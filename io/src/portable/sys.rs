//! Blocking system calls with typed errors. Both back ends use the ones for names and lengths; the
//! portable one also those for bytes.
//!
//! An interrupted read or write (`EINTR`) goes on where it stopped. A sync does not: whatever a sync
//! answers is final, because after a failed one the kernel may forget what it did not write.

use crate::buf::append_with;
use crate::disk::{Allocate, Entry, EntryKind, OpenHow};
use crate::error::{IoError, Op, Result};
use bytes::{Bytes, BytesMut};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `IOV_MAX` of Linux and the BSDs: more buffers than this in one call are `EINVAL`.
pub(crate) const BUFFERS_PER_WRITE_MAX: usize = 1024;

pub(crate) fn open(path: &Path, how: OpenHow) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    let op = match how {
        OpenHow::Read => Op::Open,
        OpenHow::Write => {
            options.write(true);
            Op::Open
        }
        OpenHow::CreateNew { mode } => {
            options.write(true).create_new(true).mode(mode);
            Op::Create
        }
        OpenHow::CreateOrTruncate { mode } => {
            options.write(true).create(true).truncate(true).mode(mode);
            Op::Create
        }
    };
    options.open(path).map_err(|e| IoError::new(op, path, e))
}

pub(crate) fn list(dir: &Path) -> Result<Vec<Entry>> {
    let failed = |e| IoError::new(Op::List, dir, e);
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Gone between the listing and the look at it: as if it had never been listed.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(IoError::new(Op::Stat, entry.path(), e)),
        };
        entries.push(describe(name, &meta));
    }
    // A directory that changes meanwhile may show a name twice (readdir(3) leaves it open).
    entries.sort_by(|a: &Entry, b| a.name.cmp(&b.name));
    entries.dedup_by(|b, a| a.name == b.name);
    Ok(entries)
}

pub(crate) fn stat(path: &Path) -> Result<Option<Entry>> {
    match fs::metadata(path) {
        Ok(meta) => {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            Ok(Some(describe(name, &meta)))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(IoError::new(Op::Stat, path, e)),
    }
}

fn describe(name: String, meta: &fs::Metadata) -> Entry {
    let (kind, len) = match meta.file_type() {
        t if t.is_file() => (EntryKind::File, meta.len()),
        t if t.is_dir() => (EntryKind::Dir, 0),
        _ => (EntryKind::Other, 0),
    };
    Entry { name, kind, len }
}

pub(crate) fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir(path).map_err(|e| IoError::new(Op::CreateDir, path, e))
}

#[expect(clippy::disallowed_methods, reason = "this is the `Disk` that others are asked to rename through")]
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| IoError::new(Op::Rename, from, e))
}

pub(crate) fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|e| IoError::new(Op::Remove, path, e))
}

pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    use rustix::fs::{Mode, OFlags};
    let failed = |e: Errno| IoError::new(Op::SyncDir, dir, e);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = rustix::fs::open(dir, flags, Mode::empty()).map_err(failed)?;
    rustix::fs::fsync(&handle).map_err(failed)
}

pub(crate) fn len(fd: BorrowedFd<'_>, path: &Path) -> Result<u64> {
    let stat = rustix::fs::fstat(fd).map_err(|e| IoError::new(Op::Stat, path, e))?;
    // A size below zero would be a kernel bug; an empty file is the careful reading of it.
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

pub(crate) fn read_at(
    fd: BorrowedFd<'_>,
    path: &Path,
    position: u64,
    len: usize,
    buf: &mut BytesMut,
) -> Result<()> {
    let mut done = 0;
    while done < len {
        let at = position.saturating_add(done as u64);
        let read =
            append_with(buf, len - done, |spare| rustix::io::pread(fd, spare, at).map(|(filled, _)| filled));
        match read {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(e) => return Err(IoError::new(Op::Read, path, e)),
        }
    }
    Ok(())
}

pub(crate) fn write_at(fd: BorrowedFd<'_>, path: &Path, position: u64, bufs: &[Bytes]) -> Result<()> {
    let mut slices: Vec<IoSlice<'_>> = bufs.iter().map(|b| IoSlice::new(b)).collect();
    let mut rest = &mut slices[..];
    // Leading empty buffers go, here and after each write, so that a write of nothing means trouble.
    IoSlice::advance_slices(&mut rest, 0);
    let mut at = position;
    while !rest.is_empty() {
        let now = rest.len().min(BUFFERS_PER_WRITE_MAX);
        match rustix::io::pwritev(fd, &rest[..now], at) {
            Ok(0) => return Err(write_of_nothing(path)),
            Ok(n) => {
                at += n as u64;
                IoSlice::advance_slices(&mut rest, n);
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(IoError::new(Op::Write, path, e)),
        }
    }
    Ok(())
}

/// The error for a write that took nothing and gave no reason.
pub(crate) fn write_of_nothing(path: &Path) -> IoError {
    IoError::new(Op::Write, path, io::Error::new(io::ErrorKind::WriteZero, "the file took no more bytes"))
}

pub(crate) fn sync_data(fd: BorrowedFd<'_>, path: &Path) -> Result<()> {
    #[cfg(not(target_vendor = "apple"))]
    let synced = rustix::fs::fdatasync(fd);
    // Plain fsync leaves the bytes in the drive's cache there.
    #[cfg(target_vendor = "apple")]
    let synced = rustix::fs::fcntl_fullfsync(fd);
    synced.map_err(|e| IoError::new(Op::Sync, path, e))
}

pub(crate) fn sync_all(fd: BorrowedFd<'_>, path: &Path) -> Result<()> {
    #[cfg(not(target_vendor = "apple"))]
    let synced = rustix::fs::fsync(fd);
    #[cfg(target_vendor = "apple")]
    let synced = rustix::fs::fcntl_fullfsync(fd);
    synced.map_err(|e| IoError::new(Op::Sync, path, e))
}

#[cfg(target_os = "linux")]
pub(crate) fn allocate(
    fd: BorrowedFd<'_>,
    path: &Path,
    how: Allocate,
    position: u64,
    len: u64,
) -> Result<()> {
    use rustix::fs::FallocateFlags;
    let flags = match how {
        Allocate::Extend => FallocateFlags::empty(),
        Allocate::KeepSize => FallocateFlags::KEEP_SIZE,
    };
    loop {
        match rustix::fs::fallocate(fd, flags, position, len) {
            Err(Errno::INTR) => {}
            answer => return answer.map_err(|e| IoError::new(Op::Allocate, path, e)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allocate(
    _fd: BorrowedFd<'_>,
    path: &Path,
    _how: Allocate,
    _position: u64,
    _len: u64,
) -> Result<()> {
    Err(IoError::new(Op::Allocate, path, Errno::OPNOTSUPP))
}

pub(crate) fn set_len(fd: BorrowedFd<'_>, path: &Path, len: u64) -> Result<()> {
    loop {
        match rustix::fs::ftruncate(fd, len) {
            Err(Errno::INTR) => {}
            answer => return answer.map_err(|e| IoError::new(Op::SetLen, path, e)),
        }
    }
}

pub(crate) fn set_mode(fd: BorrowedFd<'_>, path: &Path, mode: u32) -> Result<()> {
    let mode = rustix::fs::Mode::from_raw_mode(mode);
    rustix::fs::fchmod(fd, mode).map_err(|e| IoError::new(Op::SetMode, path, e))
}
