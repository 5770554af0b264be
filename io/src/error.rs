//! Errors with the operation and the path.

use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was being done when an I/O error came. `Display` is an infinitive: "could not {op} {path}".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Opening a file that is there.
    Open,
    /// Making a file.
    Create,
    /// Making a directory.
    CreateDir,
    /// Listing a directory.
    List,
    /// Asking for a file's size, kind or mode.
    Stat,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Reserving space.
    Allocate,
    /// Changing a file's length.
    SetLen,
    /// Syncing a file.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Changing a file's mode.
    SetMode,
    /// Taking a lock.
    Lock,
    /// Starting a lane's thread or ring.
    StartLane,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Open => "open",
            Op::Create => "create",
            Op::CreateDir => "create the directory",
            Op::List => "list the directory",
            Op::Stat => "look at",
            Op::Read => "read",
            Op::Write => "write",
            Op::Allocate => "reserve space for",
            Op::SetLen => "set the length of",
            Op::Sync => "sync",
            Op::SyncDir => "sync the directory",
            Op::Rename => "rename",
            Op::Remove => "remove",
            Op::SetMode => "change the mode of",
            Op::Lock => "lock",
            Op::StartLane => "start an I/O lane for",
        })
    }
}

/// What kind of failure an [`IoError`] is, for callers that act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoErrorKind {
    /// No file or directory of that name.
    NotFound,
    /// Something of that name is there already.
    AlreadyExists,
    /// A path component is not a directory, or a file stands where a directory should.
    NotADirectory,
    /// The user that runs this process may not.
    PermissionDenied,
    /// Read-only file system.
    ReadOnly,
    /// No space, no inodes, over quota, or above the file size limit.
    NoSpace,
    /// This process or the machine has no file handles left.
    TooManyOpenFiles,
    /// The file system or kernel has no such operation.
    Unsupported,
    /// The device or file system failed (`EIO` and everything else).
    Failed,
}

/// An I/O operation that failed: which, on what, why. Cheap to clone, so that a fenced log can hand
/// out its first cause again and again.
#[derive(Debug, Clone, thiserror::Error)]
#[error("could not {op} {}", path.display())]
pub struct IoError {
    /// What was being done.
    pub op: Op,
    /// To what.
    pub path: PathBuf,
    /// The error of the operating system.
    #[source]
    pub cause: Arc<io::Error>,
}

impl IoError {
    /// Puts operation and path to an error of the operating system.
    pub fn new(op: Op, path: impl AsRef<Path>, cause: impl Into<io::Error>) -> IoError {
        IoError { op, path: path.as_ref().to_path_buf(), cause: Arc::new(cause.into()) }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> IoErrorKind {
        match self.cause.kind() {
            io::ErrorKind::NotFound => IoErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => IoErrorKind::AlreadyExists,
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => IoErrorKind::NotADirectory,
            io::ErrorKind::PermissionDenied => IoErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem => IoErrorKind::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                IoErrorKind::NoSpace
            }
            io::ErrorKind::Unsupported => IoErrorKind::Unsupported,
            // Not all of these have an `ErrorKind` of std.
            _ => match self.cause.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::MFILE | Errno::NFILE) => IoErrorKind::TooManyOpenFiles,
                Some(Errno::NOSYS | Errno::OPNOTSUPP) => IoErrorKind::Unsupported,
                _ => IoErrorKind::Failed,
            },
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, IoError>;
