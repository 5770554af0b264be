//! What an append gives back at once, and what it says when the bytes are durable.

use crate::error::{ErrorKind, Fenced, io_kind};
use crate::lane::oneshot::Receiver;
use crate::lane::queue::QueueClosed;
use crate::types::{Epoch, Offset};
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::{IoError, Rt};
use std::sync::Arc;

/// An append that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// Offset of the first record.
    pub first: Offset,
    /// Offset of the last record.
    pub last: Offset,
    /// Leader epoch of the last batch.
    pub epoch: Epoch,
}

/// Offsets that an append has, and the wait until they are durable.
///
/// Dropping a ticket changes nothing: the batch becomes durable, or fails, all the same.
#[must_use = "nothing is durable before the ticket says so"]
pub struct Ticket {
    pub(crate) appended: Appended,
    pub(crate) answer: Receiver<Result<Appended, AppendError>>,
    pub(crate) rt: Arc<dyn Rt>,
}

impl Ticket {
    /// First and last offset, assigned when the append was queued. They are final unless the ticket
    /// fails.
    pub fn offsets(&self) -> std::ops::RangeInclusive<i64> {
        self.appended.first.0..=self.appended.last.0
    }

    /// Waits until the batch is on stable storage. Tickets resolve in the order of the appends.
    ///
    /// # Errors
    /// [`AppendError::NoSpace`] and other I/O errors before a sync: this batch and all queued behind it
    /// are not in the log, which can be used on. [`AppendError::Fenced`]: the outcome is unknown.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: call again. The batch may become durable anyway.
    pub async fn durable(&self) -> Result<Appended, AppendError> {
        self.answer.get().await.unwrap_or(Err(AppendError::Closed))
    }

    /// As [`durable`](Ticket::durable), blocking this thread.
    ///
    /// # Errors
    /// Those of [`durable`](Ticket::durable).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn durable_blocking(&self) -> Result<Appended, AppendError> {
        crate::handle::block_on(&*self.rt, self.durable())
    }

    /// True when [`durable`](Ticket::durable) would answer at once.
    pub fn is_settled(&self) -> bool {
        self.answer.is_settled()
    }
}

/// Why an append was not done. Unless its kind is `Fenced`, nothing of it is in the log.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// No bytes were given.
    #[error("no batch was given")]
    Empty,
    /// The bytes are not one whole batch with a good checksum.
    #[error("the batch at byte {position} of the append is not valid")]
    BadBatch {
        /// Where in the bytes given.
        position: usize,
        /// What is wrong with it.
        #[source]
        cause: DecodeError,
    },
    /// The batch is larger than a leader may write.
    #[error(
        "batch of {bytes} bytes and {records} records is too large, the limits are {bytes_max} bytes and {records_max} records"
    )]
    BatchTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit ([`LogConfig::batch_bytes_max`](crate::LogConfig::batch_bytes_max)).
        bytes_max: usize,
        /// Its number of records.
        records: i32,
        /// The limit ([`LogConfig::batch_records_max`](crate::LogConfig::batch_records_max)).
        records_max: i32,
    },
    /// The append is larger than a segment can be.
    #[error("batch of {bytes} bytes does not fit a segment of {segment_bytes_max}")]
    LargerThanSegment {
        /// Size of the batch.
        bytes: usize,
        /// The limit ([`LogConfig::segment_bytes_max`](crate::LogConfig::segment_bytes_max)).
        segment_bytes_max: u64,
    },
    /// This handle has not begun the epoch as leader.
    #[error("epoch {given} is not the one this log leads ({})", begun.map_or("none begun".to_string(), |epoch| epoch.to_string()))]
    WrongEpoch {
        /// The epoch of the call.
        given: Epoch,
        /// The epoch last begun by `initialize_leader_epoch`.
        begun: Option<Epoch>,
    },
    /// The epoch is below that of the log's last batch.
    #[error("epoch {given} at offset {offset} is below {last}, the last one in the log")]
    EpochGoesDown {
        /// The epoch given.
        given: Epoch,
        /// The newest in the log.
        last: Epoch,
        /// Where it would have been.
        offset: Offset,
    },
    /// A batch that brings its own offsets begins behind the end of the log.
    #[error("batch begins at {given}, the log ends at {end}: offsets between would be missing")]
    Gap {
        /// Base offset of the batch.
        given: Offset,
        /// Where the log ends, with all that waits.
        end: Offset,
    },
    /// A batch that brings its own offsets begins before the end of the log.
    #[error("batch begins at {given}, the log ends at {end}: the offsets are taken")]
    Overlap {
        /// Base offset of the batch.
        given: Offset,
        /// Where the log ends, with all that waits.
        end: Offset,
    },
    /// Offsets would pass 2^63.
    #[error("the log has no offsets left behind {end}")]
    OffsetsUsedUp {
        /// Where the log ends.
        end: Offset,
    },
    /// Too many bytes wait for the disk.
    #[error("{waiting} bytes wait for the disk, the limit is {limit}: wait with `reserve`, or try later")]
    QueueFull {
        /// Bytes that wait.
        waiting: usize,
        /// The limit ([`LogConfig::queue_bytes_max`](crate::LogConfig::queue_bytes_max)).
        limit: usize,
    },
    /// The disk is full. The log is as it was before this batch; make room and append again.
    #[error("no space for {bytes} bytes")]
    NoSpace {
        /// Bytes of the group that found no place.
        bytes: usize,
        /// The failed operation, with its path.
        #[source]
        cause: IoError,
    },
    /// A write failed before anything was synced; the log is as it was before this batch.
    #[error("write failed before anything was synced")]
    Io(#[source] IoError),
    /// An append queued earlier failed, so this one has lost its place.
    #[error("an append queued earlier failed")]
    Behind(#[source] Arc<AppendError>),
    /// A sync failed, now or earlier.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl AppendError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            AppendError::QueueFull { .. } | AppendError::NoSpace { .. } => ErrorKind::Retry,
            AppendError::Io(cause) => io_kind(cause),
            AppendError::Behind(cause) => cause.kind(),
            AppendError::BadBatch { .. } => ErrorKind::Corrupt,
            AppendError::Fenced(_) | AppendError::Closed => ErrorKind::Fenced,
            AppendError::WrongEpoch { .. } | AppendError::EpochGoesDown { .. } => ErrorKind::Refused,
            AppendError::Empty
            | AppendError::BatchTooLarge { .. }
            | AppendError::LargerThanSegment { .. }
            | AppendError::Gap { .. }
            | AppendError::Overlap { .. }
            | AppendError::OffsetsUsedUp { .. } => ErrorKind::Invalid,
        }
    }
}

impl From<QueueClosed> for AppendError {
    fn from(_: QueueClosed) -> AppendError {
        AppendError::Closed
    }
}
