//! Leaving a directory clean.
//!
//! Order: everything queued before is durable already; trim and sync the active segment, index files at
//! their exact length, epoch checkpoint, then the side file with the clean mark. A crash in between is
//! an unclean stop like any other.

use crate::error::{ErrorKind, Fenced, fences, io_kind};
use crate::handle::{MetadataLog, block_on};
use crate::lane::log_lane::{LogLane, LogOp};
use crate::lane::oneshot::oneshot;
use crate::lane::queue::QueueClosed;
use crate::types::Offset;
use kraftlog_io::IoError;

/// What close left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseReport {
    /// Everything below is on stable storage.
    pub durable_end: Offset,
    /// Length of the active segment.
    pub segment_bytes: u64,
    /// The next open need not scan the log.
    pub clean: bool,
    /// Why it is not clean, if it is not: what a full disk kept from being written.
    pub not_clean_because: Option<String>,
}

/// Why a log was not left clean. It is closed all the same, and everything acknowledged is durable.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The active segment could not be trimmed.
    #[error("the log could not be trimmed")]
    Io(#[source] IoError),
    /// A sync failed, now or earlier.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// It was closed before.
    #[error("the log is closed")]
    Closed,
}

impl CloseError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CloseError::Io(cause) => io_kind(cause),
            CloseError::Fenced(_) | CloseError::Closed => ErrorKind::Fenced,
        }
    }
}

impl From<QueueClosed> for CloseError {
    fn from(_: QueueClosed) -> CloseError {
        CloseError::Closed
    }
}

impl MetadataLog {
    /// Closes the log: everything queued before becomes durable, the active segment gets its exact
    /// length, and the next open reads the tail only.
    ///
    /// All clones of the handle are closed by it; what is called on them later says `Closed`. When the last
    /// handle of the log and of its [`MetadataDir`](crate::MetadataDir) is gone, the directory is free for
    /// other processes.
    ///
    /// # Errors
    /// [`CloseError`]; everything acknowledged is durable in any case. A disk too full for the small
    /// files is no error: the report says that the log is not clean.
    ///
    /// # Cancel safety
    /// Dropping the future loses the report only.
    pub async fn close(self) -> Result<CloseReport, CloseError> {
        let (answer, closed) = oneshot();
        self.shared().log_queue.push_last(LogOp::Close { answer })?;
        let closed = closed.into_answer().await.unwrap_or(Err(CloseError::Closed));
        // The lock goes with whoever has it last. Without lanes that is a handle, and the caller's own go
        // with this future: nobody is refused who comes after us.
        self.shared().running.ended().await;
        closed
    }

    /// As [`close`](MetadataLog::close), blocking this thread.
    ///
    /// # Errors
    /// Those of [`close`](MetadataLog::close).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn close_blocking(self) -> Result<CloseReport, CloseError> {
        let rt = std::sync::Arc::clone(&self.shared().rt);
        block_on(&*rt, self.close())
    }
}

impl LogLane {
    /// The steps of close, at the end of the lane.
    pub(crate) async fn close(&mut self) -> Result<CloseReport, CloseError> {
        if let Some(fenced) = self.shared.fenced() {
            return Err(CloseError::Fenced(fenced.clone()));
        }
        if let Err(cause) = self.active.trim_and_sync().await {
            return Err(match fences(&cause) {
                true => CloseError::Fenced(self.shared.fence(cause)),
                false => CloseError::Io(cause),
            });
        }
        let mut left = self.active.write_indexes(true).await;
        if left.is_ok() && self.epochs_are_behind() {
            left = self.write_epochs().await;
        }
        if left.is_ok() {
            left = self.write_state(true).await;
        }
        if let Some(fenced) = self.shared.fenced() {
            return Err(CloseError::Fenced(fenced.clone()));
        }
        Ok(CloseReport {
            durable_end: self.shared.watermark.durable_end(),
            segment_bytes: self.active.written,
            clean: left.is_ok(),
            not_clean_because: left.err().map(|cause| format!("{cause}: {}", cause.cause)),
        })
    }
}
