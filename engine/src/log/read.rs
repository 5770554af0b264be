//! Reading whole batches from an offset.
//!
//! The newest batches come from memory, without a copy where one batch answers; the rest is read by the
//! read lane. Nothing is given out that ends above the limit: the high watermark for committed reads,
//! the log end for uncommitted ones, and the durable end for all when the directory is fenced.

use crate::error::{ErrorKind, io_kind};
use crate::handle::{MetadataLog, block_on};
use crate::lane::oneshot::oneshot;
use crate::lane::queue::QueueClosed;
use crate::lane::read_lane::ReadOp;
use crate::lane::walk::Wanted;
use crate::log::tail::CachedBatch;
use crate::metrics::Metrics;
use crate::types::Offset;
use bytes::{Bytes, BytesMut};
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::IoError;
use std::path::PathBuf;

/// How far a read may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// To the high watermark.
    Committed,
    /// To the log end offset, also over bytes that are not durable yet: for replication.
    Uncommitted,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Base offset of the first batch: at or below the offset asked for. That offset itself if there is
    /// nothing to read yet.
    pub start: Offset,
    /// The offset to go on with.
    pub next: Offset,
    /// Whole batches back to back, CRC checked; empty if there is nothing to read yet.
    pub bytes: Bytes,
}

/// Why nothing could be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The log does not have this offset.
    #[error("offset {offset} is outside of the log, which goes from {start} to {end}")]
    OutOfRange {
        /// Asked for.
        offset: Offset,
        /// Where the log starts.
        start: Offset,
        /// Where it ends.
        end: Offset,
    },
    /// The bytes on disk are no batch any more.
    #[error("{} is damaged at byte {position}, where offset {offset} should follow; keep the file and look at it with `kraftlog dump`", path.display())]
    CorruptBatch {
        /// The segment.
        path: PathBuf,
        /// Where in it.
        position: u64,
        /// The offset that was looked for.
        offset: Offset,
        /// What is wrong.
        #[source]
        cause: DecodeError,
    },
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl ReadError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ReadError::OutOfRange { .. } => ErrorKind::Invalid,
            ReadError::CorruptBatch { .. } => ErrorKind::Corrupt,
            ReadError::Io(cause) => io_kind(cause),
            ReadError::Closed => ErrorKind::Fenced,
        }
    }
}

impl From<QueueClosed> for ReadError {
    fn from(_: QueueClosed) -> ReadError {
        ReadError::Closed
    }
}

impl MetadataLog {
    /// Reads whole batches, beginning with the one that holds `from` (behaviour.md B-109): at least that
    /// one in full, even above `bytes_max`, else at most `bytes_max` bytes, all from one segment.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] below the log start or above the log end; at the limit of the isolation
    /// the answer is empty.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn read(
        &self,
        from: Offset,
        isolation: Isolation,
        bytes_max: usize,
    ) -> Result<Fetched, ReadError> {
        let shared = self.shared();
        let ends = shared.watermark.ends();
        if from < ends.start || from > ends.end {
            return Err(ReadError::OutOfRange { offset: from, start: ends.start, end: ends.end });
        }
        let mut limit = match isolation {
            Isolation::Committed => ends.high_watermark,
            Isolation::Uncommitted => ends.end,
        };
        if shared.fenced().is_some() {
            limit = limit.min(ends.durable_end);
        }
        if from >= limit {
            return Ok(Fetched { start: from, next: from, bytes: Bytes::new() });
        }
        let cached = shared.tail.lock().read(from, limit, bytes_max);
        if let Some(batches) = cached {
            Metrics::add(&shared.metrics.reads_from_memory, 1);
            return Ok(join(from, batches));
        }
        let (answer, read) = oneshot();
        shared.read_queue.push(ReadOp { wanted: Wanted { from, limit, bytes_max }, answer })?;
        read.into_answer().await.unwrap_or(Err(ReadError::Closed))
    }

    /// As [`read`](MetadataLog::read), blocking this thread.
    ///
    /// # Errors
    /// Those of [`read`](MetadataLog::read).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn read_blocking(
        &self,
        from: Offset,
        isolation: Isolation,
        bytes_max: usize,
    ) -> Result<Fetched, ReadError> {
        block_on(&*self.shared().rt, self.read(from, isolation, bytes_max))
    }
}

/// One batch is handed out as it is; several are copied behind each other.
fn join(from: Offset, batches: Vec<CachedBatch>) -> Fetched {
    let (Some(first), Some(last)) = (batches.first(), batches.last()) else {
        return Fetched { start: from, next: from, bytes: Bytes::new() };
    };
    let (start, next) = (first.base, last.next);
    if batches.len() == 1 {
        return Fetched { start, next, bytes: first.bytes.clone() };
    }
    let mut bytes = BytesMut::with_capacity(batches.iter().map(|batch| batch.bytes.len()).sum());
    for batch in &batches {
        bytes.extend_from_slice(&batch.bytes);
    }
    Fetched { start, next, bytes: bytes.freeze() }
}
