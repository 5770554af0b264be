//! What all errors of this crate have in common: [`ErrorKind`] tells the caller what to do, and
//! [`Fenced`] carries the first failure of a directory to everyone who asks later.
//!
//! Each operation has its own enum, beside the operation.

use kraftlog_io::{IoError, IoErrorKind};

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing was changed; the same call may work later (queue or disk full, no file handles).
    Retry,
    /// The call is wrong and will stay wrong.
    Invalid,
    /// The call is understood and refused, because it could lose or mix data.
    Refused,
    /// Bytes on disk are damaged.
    Corrupt,
    /// A sync failed earlier, or the log is closed: this handle writes no more. Open again.
    Fenced,
    /// Another process, or another handle in this one, has the directory.
    Locked,
    /// This build or this machine cannot do it.
    Unsupported,
}

/// The directory is fenced: a sync failed, or nobody knows whether it did. The first cause is kept.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "nothing more is written in this directory after a failed or unknown sync; open it again to find out what is durable"
)]
pub struct Fenced {
    /// The failure that came first.
    #[source]
    pub cause: IoError,
}

/// The kind of an I/O error that did not fence the directory.
pub(crate) fn io_kind(error: &IoError) -> ErrorKind {
    match error.kind() {
        IoErrorKind::NoSpace | IoErrorKind::TooManyOpenFiles => ErrorKind::Retry,
        IoErrorKind::PermissionDenied | IoErrorKind::ReadOnly => ErrorKind::Refused,
        IoErrorKind::NotFound | IoErrorKind::AlreadyExists | IoErrorKind::NotADirectory => ErrorKind::Invalid,
        _ => ErrorKind::Corrupt,
    }
}

/// True if this failure leaves the disk unknown, so that the directory must be fenced.
pub(crate) fn fences(error: &IoError) -> bool {
    matches!(error.op, kraftlog_io::Op::Sync | kraftlog_io::Op::SyncDir)
}
