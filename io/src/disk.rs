//! The traits [`Disk`] and [`File`], in whole operations with owned buffers.
//!
//! A disk belongs to one lane: it is made on the lane's thread and need not be `Send` (tokio-uring's
//! is not). Every operation is a future of that lane, and does nothing before its first poll.
//! Dropping one after that loses the answer, never the safety: buffers are owned by the operation until
//! the kernel is done with them, a write or sync that has begun runs to its end, and only the steps
//! that were to follow it may be left out.
//!
//! Every error names the operation and the path that really failed.
//!
//! The orders of syncs that several files need (replace, publish) are built once, in `atomic`,
//! from the single steps here, so that each back end gets the same order and a simulated disk can
//! crash between any two steps.

use crate::error::{IoError, IoErrorKind, Op, Result};
use bytes::{Bytes, BytesMut};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

/// A future that stays on its lane. One box an operation (a whole group of appends, a 256 KiB read),
/// never one a record.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHow {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; it must not exist. The mode is in Unix bits, before the umask.
    CreateNew {
        /// Unix permission bits, such as 0o644.
        mode: u32,
    },
    /// For reading and writing; an old file of that name is emptied.
    CreateOrTruncate {
        /// Unix permission bits, such as 0o644.
        mode: u32,
    },
}

/// How space is reserved behind the end of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocate {
    /// The file grows and reads as zero there.
    Extend,
    /// The length stays.
    KeepSize,
}

/// What stands under a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// Anything else: links, sockets, devices.
    Other,
}

/// One name in a directory, with what a listing can say without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the directory. Names that are not UTF-8 are not ours and are left out.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Length in bytes (0 for anything but files).
    pub len: u64,
}

/// Where a durable append failed. The two call for different answers: bytes that were not written
/// can be cut back and the log goes on; a failed sync leaves the disk unknown and fences the log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendSyncError {
    /// The write failed or came up short; nothing was synced. Some bytes may be there.
    #[error(transparent)]
    Write(IoError),
    /// The sync failed, or its outcome is not known.
    #[error(transparent)]
    Sync(IoError),
}

/// A disk, as one lane sees it.
pub trait Disk {
    /// Name of the back end, for reports: `portable`, `uring`, `sim`.
    fn backend(&self) -> &'static str;

    /// Opens or makes a file. A new name is durable only after [`sync_dir`](Disk::sync_dir).
    fn open<'a>(&'a self, path: &'a Path, how: OpenHow) -> LocalFuture<'a, Result<Rc<dyn File>>>;

    /// All entries of a directory whose names are UTF-8, in no particular order.
    fn list<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<Vec<Entry>>>;

    /// What stands at `path`, following links; `None` if nothing does.
    fn stat<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<Option<Entry>>>;

    /// Makes one directory (mode 0777 before the umask). Its parent must be there.
    fn create_dir<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>>;

    /// Renames within one file system, replacing what has the new name. Durable only after
    /// [`sync_dir`](Disk::sync_dir).
    fn rename<'a>(&'a self, from: &'a Path, to: &'a Path) -> LocalFuture<'a, Result<()>>;

    /// Removes a file. Durable only after [`sync_dir`](Disk::sync_dir).
    fn remove<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>>;

    /// Makes the names in a directory durable: new, renamed and removed ones.
    fn sync_dir<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<()>>;
}

/// An open file. Dropping it closes it; closing syncs nothing.
#[expect(clippy::len_without_is_empty, reason = "asking for the length is a system call, not a property")]
pub trait File {
    /// The path it was opened by.
    fn path(&self) -> &Path;

    /// Length in bytes.
    fn len<'a>(&'a self) -> LocalFuture<'a, Result<u64>>;

    /// Reads up to `len` bytes at `position` and appends them to `buf`; fewer only at end of file.
    /// Gives the buffer back. Room for all of `len` is reserved at once: bound it before, if it comes
    /// from a file.
    fn read_at<'a>(&'a self, position: u64, len: usize, buf: BytesMut) -> LocalFuture<'a, Result<BytesMut>>;

    /// Writes all buffers back to back at `position`. Not durable. If it fails, any part of them may
    /// be there.
    fn write_at<'a>(&'a self, position: u64, bufs: Vec<Bytes>) -> LocalFuture<'a, Result<()>>;

    /// Writes all buffers back to back at `position`, calls `written` when the bytes can be read
    /// back, then makes them durable (as [`sync_data`](File::sync_data)).
    ///
    /// Without `written` nobody needs the bytes before they are durable, and the back end may make them
    /// readable and durable in one step. It may then leave other bytes that no sync has seen yet as they
    /// are, and where it cannot tell a failed write from a failed sync, it is a failed sync.
    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, std::result::Result<(), AppendSyncError>>;

    /// Makes content and length durable (`fdatasync`). After a failure nothing is known of what was
    /// written since the last sync, and another sync may succeed without having written it: never ask
    /// twice.
    fn sync_data<'a>(&'a self) -> LocalFuture<'a, Result<()>>;

    /// Makes content and all metadata durable (`fsync`). A failure means what it means for
    /// [`sync_data`](File::sync_data).
    fn sync_all<'a>(&'a self) -> LocalFuture<'a, Result<()>>;

    /// Reserves `[position, position + len)`; what is there stays. A file system that cannot answers
    /// [`Unsupported`](IoErrorKind::Unsupported). If it fails for want of space, a part may be reserved
    /// and the file longer than it was.
    fn allocate<'a>(&'a self, how: Allocate, position: u64, len: u64) -> LocalFuture<'a, Result<()>>;

    /// Cuts or extends (with zeros) to `len` bytes. Durable after a sync.
    fn set_len<'a>(&'a self, len: u64) -> LocalFuture<'a, Result<()>>;

    /// Sets the Unix permission bits.
    fn set_mode<'a>(&'a self, mode: u32) -> LocalFuture<'a, Result<()>>;
}

/// Reads a whole file of at most `max` bytes; `None` if there is no such file.
///
/// Memory follows the bytes that are really there, never a length that the file claims.
///
/// # Errors
/// Those of the disk; a longer file is one whose cause is `InvalidData`, naming the bound; a pipe, a
/// socket or a device is `InvalidInput`, and is not opened.
///
/// # Cancel safety
/// Reads only; dropping it loses nothing.
pub async fn read_file(disk: &dyn Disk, path: &Path, max: usize) -> Result<Option<Vec<u8>>> {
    /// One small file of ours fits in the first read, and the second one finds the end.
    const READ_BYTES: usize = 64 * 1024;

    // Opening a pipe waits for whoever writes to it, perhaps for ever.
    if let Ok(Some(entry)) = disk.stat(path).await
        && entry.kind == EntryKind::Other
    {
        let cause = std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no regular file");
        return Err(IoError::new(Op::Open, path, cause));
    }
    let file = match disk.open(path, OpenHow::Read).await {
        Ok(file) => file,
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = BytesMut::new();
    loop {
        // One byte more than allowed, so that a file that is too long shows itself.
        let want = READ_BYTES.min(max.saturating_add(1) - bytes.len());
        let before = bytes.len();
        bytes = file.read_at(before as u64, want, bytes).await?;
        if bytes.len() > max {
            let cause = std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!("the file is longer than {max} bytes, the most that it may have"),
            );
            return Err(IoError::new(Op::Read, path, cause));
        }
        // A short read is the end of the file: `read_at` promises it.
        if bytes.len() - before < want {
            return Ok(Some(bytes.into()));
        }
    }
}

/// `dir` of a file path; the current directory for a bare name.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
