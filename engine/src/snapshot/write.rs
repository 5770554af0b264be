//! Writing a checkpoint of the state at one offset of the log.
//!
//! The writer packs records into batches on the caller's side and hands complete batches to the
//! bulk lane, which owns the file. At most one batch is open and one on its way: a caller that is
//! faster than the disk waits. Nothing of a snapshot shows before [`SnapshotWriter::freeze`]; a
//! writer that is dropped before takes its `.part` with it.

use super::encode::{EncodeRefusal, Head, SnapshotEncoder};
use super::fault::SnapshotFault;
use crate::error::{ErrorKind, Fenced, io_kind};
use crate::handle::MetadataLog;
use crate::lane::bulk::{BulkOp, PartError, WriterId};
use crate::lane::oneshot::{Receiver, oneshot};
use crate::lane::queue::QueueClosed;
use crate::log::read::ReadError;
use crate::types::{Epoch, Offset, SnapshotId};
use bytes::Bytes;
use kraftlog_io::{IoError, Rt};

/// Why a snapshot was not begun, not written on or not published. Nothing of it is there then.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotWriteError {
    /// There is a snapshot of this id already.
    #[error("snapshot {id} is there already")]
    AlreadyKnown {
        /// The id asked for.
        id: SnapshotId,
    },
    /// The log does not go back that far any more.
    #[error("snapshot {id} does not end behind the log start {log_start}")]
    BelowLogStart {
        /// The id asked for.
        id: SnapshotId,
        /// Where the log starts.
        log_start: Offset,
    },
    /// What it would hold is not committed, as far as the log was told.
    #[error("snapshot {id} ends above the high watermark {high_watermark}")]
    AboveHighWatermark {
        /// The id asked for.
        id: SnapshotId,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// The record before its end has another epoch in this log.
    #[error("the record before the end of snapshot {id} has epoch {found}")]
    WrongEpoch {
        /// The id asked for.
        id: SnapshotId,
        /// Epoch of the batch that holds that record.
        found: Epoch,
    },
    /// Its end lies inside a batch (KAFKA-14619).
    #[error("snapshot {id} ends inside a batch, which ends at {batch_end}")]
    NotBatchAligned {
        /// The id asked for.
        id: SnapshotId,
        /// Next offset behind the batch.
        batch_end: Offset,
    },
    /// The log could not be read to check the id.
    #[error("could not read the log before the end of snapshot {id}")]
    Read {
        /// The id asked for.
        id: SnapshotId,
        /// Why.
        #[source]
        cause: Box<ReadError>,
    },
    /// The records were not taken; the writer is as it was and can be used on.
    #[error(transparent)]
    Records(#[from] EncodeRefusal),
    /// A write failed. The snapshot is thrown away, the log is not concerned.
    #[error(transparent)]
    Io(IoError),
    /// What was written does not read back as a whole checkpoint: the disk or memory is at fault.
    #[error("snapshot {id} was not whole when it was read back, and is thrown away")]
    NotWhole {
        /// The id.
        id: SnapshotId,
        /// What is wrong with it.
        #[source]
        fault: SnapshotFault,
    },
    /// A sync failed, now or earlier.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl SnapshotWriteError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SnapshotWriteError::AlreadyKnown { .. }
            | SnapshotWriteError::BelowLogStart { .. }
            | SnapshotWriteError::AboveHighWatermark { .. } => ErrorKind::Refused,
            SnapshotWriteError::WrongEpoch { .. }
            | SnapshotWriteError::NotBatchAligned { .. }
            | SnapshotWriteError::Records(_) => ErrorKind::Invalid,
            SnapshotWriteError::Read { cause, .. } => cause.kind(),
            SnapshotWriteError::Io(cause) => io_kind(cause),
            SnapshotWriteError::NotWhole { .. } => ErrorKind::Corrupt,
            SnapshotWriteError::Fenced(_) | SnapshotWriteError::Closed => ErrorKind::Fenced,
        }
    }
}

impl From<QueueClosed> for SnapshotWriteError {
    fn from(_: QueueClosed) -> SnapshotWriteError {
        SnapshotWriteError::Closed
    }
}

/// A checkpoint that is durable under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frozen {
    /// Which snapshot.
    pub id: SnapshotId,
    /// Length of the file.
    pub bytes: u64,
    /// Records in it, header and footer records included.
    pub records: u64,
}

/// Writes one checkpoint. It keeps the log open.
#[must_use = "a writer that is dropped before `freeze` leaves nothing"]
pub struct SnapshotWriter {
    log: MetadataLog,
    id: SnapshotId,
    writer: WriterId,
    /// `None` once frozen.
    encoder: Option<SnapshotEncoder>,
    on_its_way: Option<Receiver<Result<(), PartError>>>,
    failed: Option<SnapshotWriteError>,
}

impl SnapshotWriter {
    /// Makes the `.part` and hands the header batch over. The id was checked.
    pub(super) async fn create(
        log: MetadataLog,
        id: SnapshotId,
        head: &Head,
    ) -> Result<SnapshotWriter, SnapshotWriteError> {
        let shared = log.shared();
        let writer = shared.snapshots.next_writer();
        let mut header = Vec::new();
        let encoder = SnapshotEncoder::new(id.epoch, head, now_ms(&*shared.rt), &mut header);
        let (answer, created) = oneshot();
        shared.snapshots.bulk_queue().push(BulkOp::Create { writer, id, answer })?;
        // From here on dropping the writer removes the file, also if this future is dropped.
        let encoder = Some(encoder);
        let mut new = SnapshotWriter { log, id, writer, encoder, on_its_way: None, failed: None };
        new.answered(created.into_answer().await)?;
        new.hand_over(header)?;
        Ok(new)
    }

    /// Which snapshot is being written.
    pub fn id(&self) -> SnapshotId {
        self.id
    }

    /// Adds encoded metadata records (frame, type, version and body each).
    ///
    /// All records of one call land in one batch; hand over lists of about 1,000, as Kafka does.
    /// Nothing is durable on return.
    ///
    /// # Errors
    /// [`SnapshotWriteError::Records`] takes nothing and leaves the writer usable. After any other
    /// error the snapshot is lost, and every later call gives the same error.
    ///
    /// # Cancel safety
    /// A future that is dropped before it resolves has taken none of the records.
    pub async fn append<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<(), SnapshotWriteError> {
        self.check_failed()?;
        if self.encoder().completes_batch(records) {
            self.wait().await?;
        }
        let rt = &self.log.shared().rt;
        let Some(encoder) = &mut self.encoder else { unreachable!("a frozen writer is consumed") };
        if let Some(batch) = encoder.append(records, || now_ms(&**rt))? {
            self.hand_over(batch)?;
        }
        Ok(())
    }

    /// As [`append`](Self::append), blocking this thread.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn append_blocking<R: AsRef<[u8]>>(&mut self, records: &[R]) -> Result<(), SnapshotWriteError> {
        let rt = std::sync::Arc::clone(&self.log.shared().rt);
        crate::handle::block_on(&*rt, self.append(records))
    }

    /// Writes the footer, verifies the file and publishes it under its name.
    ///
    /// On return bytes and name are durable, the snapshot is known to the log and read-only.
    ///
    /// # Errors
    /// [`SnapshotWriteError`]; the snapshot is not there, except after `Fenced`, where the next open
    /// finds out.
    ///
    /// # Cancel safety
    /// A future that is dropped before the footer was handed over throws the snapshot away; later,
    /// it is published anyway.
    pub async fn freeze(mut self) -> Result<Frozen, SnapshotWriteError> {
        self.check_failed()?;
        self.wait().await?;
        let now = now_ms(&*self.log.shared().rt);
        let Some(encoder) = self.encoder.take() else { unreachable!("a frozen writer is consumed") };
        self.hand_over(encoder.finish(now))?;
        let (answer, frozen) = oneshot();
        let writer = self.writer;
        self.log.shared().snapshots.bulk_queue().push(BulkOp::Freeze { writer, answer })?;
        let summary = match frozen.into_answer().await {
            Some(Ok(summary)) => summary,
            Some(Err(error)) => return Err(self.part_error(error)),
            None => return Err(SnapshotWriteError::Closed),
        };
        Ok(Frozen { id: self.id, bytes: summary.bytes, records: summary.records })
    }

    /// As [`freeze`](Self::freeze), blocking this thread.
    ///
    /// # Errors
    /// Those of [`freeze`](Self::freeze).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn freeze_blocking(self) -> Result<Frozen, SnapshotWriteError> {
        let rt = std::sync::Arc::clone(&self.log.shared().rt);
        crate::handle::block_on(&*rt, self.freeze())
    }

    fn encoder(&self) -> &SnapshotEncoder {
        let Some(encoder) = &self.encoder else { unreachable!("a frozen writer is consumed") };
        encoder
    }

    fn check_failed(&self) -> Result<(), SnapshotWriteError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn hand_over(&mut self, batch: Vec<u8>) -> Result<(), SnapshotWriteError> {
        let (answer, written) = oneshot();
        let bytes = Bytes::from(batch);
        let write = BulkOp::Write { writer: self.writer, bytes, answer };
        if let Err(closed) = self.log.shared().snapshots.bulk_queue().push(write) {
            self.failed = Some(closed.into());
            return self.check_failed();
        }
        // The lane keeps the order and remembers a failure, so the last answer speaks for all.
        self.on_its_way = Some(written);
        Ok(())
    }

    /// Waits until the lane has written what it was given.
    async fn wait(&mut self) -> Result<(), SnapshotWriteError> {
        let Some(written) = &self.on_its_way else { return Ok(()) };
        let answer = written.get().await;
        self.on_its_way = None;
        self.answered(answer)
    }

    fn answered(&mut self, answer: Option<Result<(), PartError>>) -> Result<(), SnapshotWriteError> {
        match answer {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => self.failed = Some(self.part_error(error)),
            None => self.failed = Some(SnapshotWriteError::Closed),
        }
        self.check_failed()
    }

    fn part_error(&self, error: PartError) -> SnapshotWriteError {
        match error {
            PartError::Io(cause) => SnapshotWriteError::Io(cause),
            PartError::NotWhole(fault) => SnapshotWriteError::NotWhole { id: self.id, fault },
            PartError::Fenced(fenced) => SnapshotWriteError::Fenced(fenced),
        }
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        // After a freeze there is nothing to throw away and the lane passes this over.
        if self.encoder.is_some() {
            let discard = BulkOp::Discard { writer: self.writer };
            // A closed lane removes what is left by itself.
            let _ = self.log.shared().snapshots.bulk_queue().push(discard);
        }
    }
}

/// Milliseconds since the Unix epoch.
pub(super) fn now_ms(rt: &dyn Rt) -> i64 {
    i64::try_from(rt.now().as_millis()).unwrap_or(i64::MAX)
}
