//! What a log's handle can do with checkpoints.

use super::encode::Head;
use super::fault::SnapshotError;
use super::read::SnapshotReader;
use super::serve::{ServeOp, SnapshotBytes};
use super::write::{SnapshotWriteError, SnapshotWriter};
use crate::handle::{MetadataLog, block_on};
use crate::lane::oneshot::oneshot;
use crate::log::read::Isolation;
use crate::types::{Epoch, Offset, SnapshotId};
use kraftlog_codecs::batch::Batch;
use kraftlog_io::IoErrorKind;
use std::sync::Arc;

impl MetadataLog {
    /// Begins a checkpoint of the state below `id.end_offset`, as Kafka's `createNewSnapshot`
    /// (behaviour.md B-116): the offset must be committed, the end of a batch, and the batch before
    /// it of the epoch `id.epoch`.
    ///
    /// Waits until everything below `id.end_offset` is durable here, so that a snapshot never knows
    /// more than the log. The header batch, with append time of the last batch covered, kraft.version and
    /// voters as of that offset, is written by itself.
    ///
    /// # Errors
    /// [`SnapshotWriteError`]; nothing was made then.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing.
    pub async fn create_snapshot(&self, id: SnapshotId) -> Result<SnapshotWriter, SnapshotWriteError> {
        let shared = self.shared();
        let ends = self.ends();
        if shared.snapshots.len_of(id).is_some() {
            return Err(SnapshotWriteError::AlreadyKnown { id });
        }
        if id.end_offset > ends.high_watermark {
            let high_watermark = ends.high_watermark;
            return Err(SnapshotWriteError::AboveHighWatermark { id, high_watermark });
        }
        let last_contained_log_timestamp = self.check_end(id).await?;
        self.wait_durable(id.end_offset).await?;

        let last = Offset(id.end_offset.0 - 1);
        let head = {
            let control = shared.control.lock();
            // The offset is below the log end, so what holds there is known.
            let kraft_version = control.kraft_version_at(last).unwrap_or(0);
            let voters = control.voters_at(last).ok().flatten().cloned();
            Head { last_contained_log_timestamp, kraft_version, voters }
        };
        shared.snapshots.start_bulk(shared).map_err(SnapshotWriteError::Io)?;
        SnapshotWriter::create(self.clone(), id, &head).await
    }

    /// As [`create_snapshot`](MetadataLog::create_snapshot), blocking this thread.
    ///
    /// # Errors
    /// Those of [`create_snapshot`](MetadataLog::create_snapshot).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn create_snapshot_blocking(&self, id: SnapshotId) -> Result<SnapshotWriter, SnapshotWriteError> {
        block_on(&*self.shared().rt, self.create_snapshot(id))
    }

    /// The newest checkpoint, the zero checkpoint included.
    pub fn latest_snapshot(&self) -> Option<SnapshotId> {
        self.shared().snapshots.latest()
    }

    /// The oldest checkpoint, the zero checkpoint included.
    pub fn earliest_snapshot(&self) -> Option<SnapshotId> {
        self.shared().snapshots.earliest()
    }

    /// All checkpoints with their lengths in bytes, oldest first.
    pub fn snapshots(&self) -> Vec<(SnapshotId, u64)> {
        self.shared().snapshots.all()
    }

    /// Opens a checkpoint for reading, from its first batch, on a lane of its own.
    ///
    /// # Errors
    /// [`SnapshotError::Unknown`], also if the file has vanished; [`SnapshotError::Invalid`] if it does
    /// not begin with a header.
    ///
    /// # Cancel safety
    /// Dropping the future ends the lane.
    pub async fn open_snapshot(&self, id: SnapshotId) -> Result<SnapshotReader, SnapshotError> {
        let shared = self.shared();
        let len = shared.snapshots.len_of(id).ok_or(SnapshotError::Unknown { id })?;
        match SnapshotReader::open(Arc::clone(&shared.rt), &shared.part_dir, id, len).await {
            Err(SnapshotError::Io(cause)) if cause.kind() == IoErrorKind::NotFound => {
                tracing::warn!(%cause, path = %cause.path.display(), "snapshot has vanished");
                shared.snapshots.forget(id);
                Err(SnapshotError::Unknown { id })
            }
            opened => opened,
        }
    }

    /// As [`open_snapshot`](MetadataLog::open_snapshot), blocking this thread.
    ///
    /// # Errors
    /// Those of [`open_snapshot`](MetadataLog::open_snapshot).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn open_snapshot_blocking(&self, id: SnapshotId) -> Result<SnapshotReader, SnapshotError> {
        block_on(&*self.shared().rt, self.open_snapshot(id))
    }

    /// Up to `bytes_max` bytes of a checkpoint from `position` on, for a follower that fetches it
    /// (behaviour.md B-156, B-157). Positions need not be those of batches.
    ///
    /// # Errors
    /// [`SnapshotError::Unknown`], also for the zero checkpoint, which no follower ever gets;
    /// [`SnapshotError::PositionOutOfRange`] at or behind the end of the file.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn snapshot_bytes(
        &self,
        id: SnapshotId,
        position: u64,
        bytes_max: usize,
    ) -> Result<SnapshotBytes, SnapshotError> {
        let shared = self.shared();
        let known = shared.snapshots.len_of(id).filter(|_| id != SnapshotId::ZERO);
        let len = known.ok_or(SnapshotError::Unknown { id })?;
        if position >= len {
            return Err(SnapshotError::PositionOutOfRange { id, position, len });
        }
        shared.snapshots.start_serving(shared)?;
        let (answer, read) = oneshot();
        let want = bytes_max.min(usize::try_from(len - position).unwrap_or(usize::MAX));
        let op = ServeOp { id, position, len: want, answer };
        shared.snapshots.serve_queue().push(op).map_err(|_| SnapshotError::Closed)?;
        let bytes = read.into_answer().await.unwrap_or(Err(SnapshotError::Closed))?;
        Ok(SnapshotBytes { id, len, position, bytes })
    }

    /// As [`snapshot_bytes`](MetadataLog::snapshot_bytes), blocking this thread.
    ///
    /// # Errors
    /// Those of [`snapshot_bytes`](MetadataLog::snapshot_bytes).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn snapshot_bytes_blocking(
        &self,
        id: SnapshotId,
        position: u64,
        bytes_max: usize,
    ) -> Result<SnapshotBytes, SnapshotError> {
        block_on(&*self.shared().rt, self.snapshot_bytes(id, position, bytes_max))
    }

    /// Holds the id against the batch before its end; gives that batch's append time.
    async fn check_end(&self, id: SnapshotId) -> Result<i64, SnapshotWriteError> {
        let ends = self.ends();
        if id.end_offset == Offset::ZERO && ends.start == Offset::ZERO {
            // Nothing is contained; such a checkpoint tells of its making.
            return match id.epoch {
                Epoch::ZERO => Ok(super::write::now_ms(&*self.shared().rt)),
                _ => Err(SnapshotWriteError::WrongEpoch { id, found: Epoch::ZERO }),
            };
        }
        if id.end_offset <= ends.start {
            return Err(SnapshotWriteError::BelowLogStart { id, log_start: ends.start });
        }
        let last = Offset(id.end_offset.0 - 1);
        let read = |cause| SnapshotWriteError::Read { id, cause: Box::new(cause) };
        let fetched = self.read(last, Isolation::Committed, 1).await.map_err(read)?;
        let Ok(batch) = Batch::parse(&fetched.bytes) else {
            let high_watermark = self.high_watermark();
            return Err(SnapshotWriteError::AboveHighWatermark { id, high_watermark });
        };
        let header = batch.header();
        if header.next_offset() != id.end_offset.0 {
            let batch_end = Offset(header.next_offset());
            return Err(SnapshotWriteError::NotBatchAligned { id, batch_end });
        }
        if header.leader_epoch != id.epoch.0 {
            return Err(SnapshotWriteError::WrongEpoch { id, found: Epoch(header.leader_epoch) });
        }
        Ok(header.max_timestamp)
    }

    /// Waits until everything below `end` is durable, or until that cannot come any more.
    async fn wait_durable(&self, end: Offset) -> Result<(), SnapshotWriteError> {
        let shared = self.shared();
        let durable = shared.watermark.wait(|ends| match shared.fenced() {
            Some(fenced) => Some(Err(fenced.clone().into())),
            None => (ends.durable_end >= end).then_some(Ok(())),
        });
        durable.await.unwrap_or(Err(SnapshotWriteError::Closed))
    }
}
