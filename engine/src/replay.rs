//! What a metadata loader needs, in one pass: bootstrap records or snapshot, then the log, then
//! whatever becomes committed.
//!
//! - The zero checkpoint is never state (behaviour.md B-72): its records come as [`Replayed::Bootstrap`],
//!   and only while no snapshot covers it.
//! - Only what is below the high watermark is given. After open that is the log start, until the
//!   caller's consensus says more.
//! - Control batches move the offsets and are not passed on; voters and kraft.version are asked of the
//!   log. Metadata transactions are passed on as the records they are: hiding what lies between
//!   Begin and End is the loader's business (B-85), who knows its state.
//! - A snapshot that turns out to be damaged while it streams is given up for an older one if the log
//!   reaches back to it, by the rule that open follows: [`Replayed::Restart`].
//!
//! Holds one snapshot stream or one piece of the log at a time.

use crate::error::ErrorKind;
use crate::handle::{MetadataLog, block_on};
use crate::log::read::{Isolation, ReadError};
use crate::snapshot::{
    Inspected, LogExtent, SnapshotBatch, SnapshotError, SnapshotFault, SnapshotHead, SnapshotReader,
    SnapshotRefusal, Truncation, choose,
};
use crate::types::{Epoch, Offset, SnapshotId};
use bytes::Bytes;
use kraftlog_codecs::batch::{Batch, BatchHeader, Record};
use kraftlog_codecs::error::DecodeError;

/// Bytes of the log read at once; a larger batch comes whole.
const READ_BYTES: usize = 1 << 20;

/// One step of a [`Replay`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Replayed {
    /// The encoded records of the zero checkpoint: what `format` wants the first leader to write
    /// into the log. Not state. May be empty.
    Bootstrap(Vec<Bytes>),
    /// A snapshot begins: drop all state, its batches follow.
    Snapshot {
        /// Which one.
        id: SnapshotId,
        /// What its header batch says.
        head: SnapshotHead,
    },
    /// A data batch, of the snapshot that began last or of the log.
    Batch(ReplayBatch),
    /// The snapshot has ended and was whole: the state is that before `id.end_offset`.
    SnapshotEnd {
        /// Which one.
        id: SnapshotId,
    },
    /// Everything committed was given, up to this offset (a snapshot may reach beyond the high watermark
    /// that is known); the next step waits for more.
    CaughtUp(Offset),
    /// The snapshot that was coming is damaged: drop all state. The next steps begin with an older
    /// snapshot, or with the log's first offset.
    Restart {
        /// The damaged one. It is not offered any more.
        damaged: SnapshotId,
        /// What is wrong with it.
        fault: SnapshotFault,
        /// What comes instead; `None` is the log from its start.
        from: Option<SnapshotId>,
    },
}

/// A batch of metadata records.
#[derive(Debug, Clone)]
pub struct ReplayBatch {
    header: BatchHeader,
    bytes: Bytes,
    /// Set for batches of a snapshot, whose offsets count through the file.
    snapshot: Option<SnapshotId>,
    from: Offset,
}

impl ReplayBatch {
    /// The batch's header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The snapshot that it belongs to; `None` for a batch of the log.
    pub fn snapshot(&self) -> Option<SnapshotId> {
        self.snapshot
    }

    /// The records not given before, borrowed. Offsets are log offsets unless the batch is a snapshot's.
    ///
    /// # Errors
    /// [`DecodeError`] if the records are not such as KRaft writes; so may each record be.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<Record<'_>, DecodeError>>, DecodeError> {
        let from = self.from.0;
        let records = Batch::parse(&self.bytes)?.records()?;
        Ok(records.filter(move |record| !matches!(record, Ok(record) if record.offset < from)))
    }
}

/// Why a replay cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A snapshot could not be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A snapshot is damaged and nothing older reaches as far.
    #[error("no other snapshot can take the place of a damaged one")]
    NoWayBack(#[source] SnapshotRefusal),
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A batch of the log is not such as KRaft writes.
    #[error("batch at offset {offset} of the log cannot be decoded")]
    BadBatch {
        /// Where.
        offset: Offset,
        /// What is wrong with it.
        #[source]
        cause: DecodeError,
    },
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl ReplayError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ReplayError::Snapshot(cause) => cause.kind(),
            ReplayError::Read(cause) => cause.kind(),
            ReplayError::NoWayBack(_) | ReplayError::BadBatch { .. } => ErrorKind::Corrupt,
            ReplayError::Closed => ErrorKind::Fenced,
        }
    }
}

enum State {
    /// Nothing is chosen yet.
    Begin,
    Snapshot(Box<SnapshotReader>),
    /// Batches of the log that are read and not given yet.
    Log(Bytes),
}

/// Snapshot and log as one stream. It keeps the log open.
pub struct Replay {
    log: MetadataLog,
    /// First offset that was not given; `None` before anything was.
    next: Option<Offset>,
    state: State,
    caught_up: Option<Offset>,
    /// Snapshots found damaged, with the fault.
    damaged: Vec<(SnapshotId, SnapshotFault)>,
}

impl MetadataLog {
    /// Replays the state. `from` is the first offset that the caller has not applied; `None` is a
    /// caller without any state. A caller that is below the log start gets the newest snapshot, as does
    /// one without state if there is one.
    pub fn replay(&self, from: Option<Offset>) -> Replay {
        let (log, state) = (self.clone(), State::Begin);
        Replay { log, next: from, state, caught_up: None, damaged: Vec::new() }
    }
}

impl Replay {
    /// The next step. Waits when everything committed was given.
    ///
    /// # Errors
    /// [`ReplayError`]. After an error of the disk the same step may be tried again.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Replayed, ReplayError> {
        loop {
            let step = match &mut self.state {
                State::Begin => self.begin().await?,
                State::Snapshot(_) => Some(self.snapshot_step().await?),
                State::Log(_) => self.log_step().await?,
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    /// As [`next`](Self::next), blocking this thread.
    ///
    /// # Errors
    /// Those of [`next`](Self::next).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn next_blocking(&mut self) -> Result<Replayed, ReplayError> {
        let log = self.log.clone();
        block_on(&*log.shared().rt, self.next())
    }

    /// The first offset that was not given yet; `None` while no state was.
    pub fn next_offset(&self) -> Option<Offset> {
        self.next
    }

    async fn begin(&mut self) -> Result<Option<Replayed>, ReplayError> {
        let start = self.log.start_offset();
        if self.next.is_some_and(|next| next >= start) {
            self.state = State::Log(Bytes::new());
            return Ok(None);
        }
        let Some(id) = self.choose()? else {
            self.next = Some(start);
            self.state = State::Log(Bytes::new());
            return Ok(None);
        };
        let reader = match self.log.open_snapshot(id).await {
            Ok(reader) => reader,
            Err(SnapshotError::Invalid { fault, .. }) => return self.restart(id, fault).map(Some),
            // Removed between the choice and the opening: choose again.
            Err(SnapshotError::Unknown { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if id == SnapshotId::ZERO {
            return self.bootstrap(reader).await.map(Some);
        }
        let head = reader.head().clone();
        self.next = None;
        self.caught_up = None;
        self.state = State::Snapshot(Box::new(reader));
        Ok(Some(Replayed::Snapshot { id, head }))
    }

    /// The newest snapshot that is not known to be damaged, by the rules of open.
    fn choose(&self) -> Result<Option<SnapshotId>, ReplayError> {
        let ends = self.log.ends();
        let shared = self.log.shared();
        let mut found: Vec<Inspected> = Vec::new();
        for (id, len) in shared.snapshots.all() {
            let head = SnapshotHead { last_contained_log_timestamp: -1, kraft_version: None, voters: None };
            found.push(Inspected { id, len, content: Ok(head) });
        }
        for (id, fault) in &self.damaged {
            found.retain(|found| found.id != *id);
            found.push(Inspected { id: *id, len: 0, content: Err(fault.clone()) });
        }
        if self.damaged.is_empty() {
            return Ok(found.last().map(|found| found.id));
        }
        let log = LogExtent { first_base: ends.start, end: ends.end, last_epoch: Epoch(i32::MAX) };
        let plan = choose(log, &found, &[], Truncation::default()).map_err(ReplayError::NoWayBack)?;
        Ok(plan.latest)
    }

    async fn bootstrap(&mut self, mut reader: SnapshotReader) -> Result<Replayed, ReplayError> {
        let mut records = Vec::new();
        loop {
            match reader.next_batch().await {
                Ok(Some(batch)) if batch.is_control() => {}
                Ok(Some(batch)) => collect(&batch, &mut records)?,
                Ok(None) => break,
                Err(SnapshotError::Invalid { fault, .. }) => return self.restart(SnapshotId::ZERO, fault),
                Err(error) => return Err(error.into()),
            }
        }
        self.next = Some(Offset::ZERO);
        self.state = State::Log(Bytes::new());
        Ok(Replayed::Bootstrap(records))
    }

    async fn snapshot_step(&mut self) -> Result<Replayed, ReplayError> {
        loop {
            let State::Snapshot(reader) = &mut self.state else { unreachable!("a snapshot is being read") };
            let id = reader.id();
            match reader.next_batch().await {
                Ok(Some(batch)) if batch.is_control() => {}
                Ok(Some(batch)) => {
                    let (header, bytes) = (*batch.header(), batch.bytes().clone());
                    let snapshot = Some(id);
                    return Ok(Replayed::Batch(ReplayBatch { header, bytes, snapshot, from: Offset(0) }));
                }
                Ok(None) => {
                    self.next = Some(id.end_offset);
                    self.state = State::Log(Bytes::new());
                    return Ok(Replayed::SnapshotEnd { id });
                }
                Err(SnapshotError::Invalid { fault, .. }) => return self.restart(id, fault),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives a damaged snapshot up, if the log starts without it.
    fn restart(&mut self, damaged: SnapshotId, fault: SnapshotFault) -> Result<Replayed, ReplayError> {
        tracing::error!(id = %damaged, %fault, "snapshot is damaged");
        self.damaged.push((damaged, fault.clone()));
        self.next = None;
        self.caught_up = None;
        self.state = State::Begin;
        let from = self.choose()?;
        self.log.shared().snapshots.forget(damaged);
        Ok(Replayed::Restart { damaged, fault, from })
    }

    async fn log_step(&mut self) -> Result<Option<Replayed>, ReplayError> {
        let State::Log(read) = &mut self.state else { unreachable!("the log is being read") };
        let Some(next) = self.next else { unreachable!("the log is read from an offset") };
        if !read.is_empty() {
            let bad = |cause| ReplayError::BadBatch { offset: next, cause };
            let header = *Batch::parse(read).map_err(bad)?.header();
            let bytes = read.split_to(header.size());
            self.next = Some(Offset(header.next_offset()).max(next));
            if header.is_control() || header.next_offset() <= next.0 {
                return Ok(None);
            }
            return Ok(Some(Replayed::Batch(ReplayBatch { header, bytes, snapshot: None, from: next })));
        }
        let ends = self.log.ends();
        if next < ends.start {
            self.state = State::Begin;
            return Ok(None);
        }
        if next < ends.high_watermark {
            match self.log.read(next, Isolation::Committed, READ_BYTES).await {
                Ok(fetched) if fetched.bytes.is_empty() => {}
                Ok(fetched) => {
                    self.state = State::Log(fetched.bytes);
                    return Ok(None);
                }
                // The log start has moved beyond it meanwhile.
                Err(ReadError::OutOfRange { start, .. }) if next < start => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        if self.caught_up != Some(next) {
            self.caught_up = Some(next);
            return Ok(Some(Replayed::CaughtUp(next)));
        }
        let watermark = &self.log.shared().watermark;
        let changed =
            |now: crate::watermark::Ends| (now.high_watermark > next || now.start > next).then_some(());
        watermark.wait(changed).await.ok_or(ReplayError::Closed).map(|()| None)
    }
}

/// Shares the values of a batch's records.
fn collect(batch: &SnapshotBatch, records: &mut Vec<Bytes>) -> Result<(), ReplayError> {
    let bad = |cause| ReplayError::BadBatch { offset: Offset(batch.header().base_offset), cause };
    for record in batch.records().map_err(bad)? {
        let value = record.map_err(bad)?.value.unwrap_or_default();
        records.push(batch.bytes().slice_ref(value));
    }
    Ok(())
}
