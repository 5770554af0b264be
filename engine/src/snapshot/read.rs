//! Reading a checkpoint of an open log as a stream of checked batches.
//!
//! Each reader has a lane of its own, with its own disk: it reads ahead in 256 KiB pieces, takes the
//! CRC of each piece while it is in the cache, and hands over up to [`BATCHES_AHEAD`] batches in
//! order. Memory is bounded by those, the one being read and the one in the caller's hands,
//! whatever the size of the file. The lane ends with the file, at the first fault, or when the
//! reader is dropped.
//!
//! An open reader keeps its file: a checkpoint that is deleted meanwhile is read to its end.

use super::catalog::checkpoint_path;
use super::channel::{Gone, Receiver, Sender, channel};
use super::fault::{SnapshotError, SnapshotFault};
use super::inspect::SnapshotHead;
use super::whole::{BatchScan, SnapshotSummary, Step};
use crate::types::SnapshotId;
use bytes::{Bytes, BytesMut};
use kraftlog_codecs::batch::{Batch, BatchHeader, Records};
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::{Disk, OpenHow, Rt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;
/// Batches that wait for the consumer.
const BATCHES_AHEAD: usize = 4;

/// One checked batch of a checkpoint, owning its bytes. Clones share them.
#[derive(Debug, Clone)]
pub struct SnapshotBatch {
    header: BatchHeader,
    bytes: Bytes,
    position: u64,
}

impl SnapshotBatch {
    /// The batch's header. Offsets count through the file, from 0; they are not log offsets.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// True for the header and footer batch, whose records are not metadata.
    pub fn is_control(&self) -> bool {
        self.header.is_control()
    }

    /// The whole batch, header included.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where it begins in the file.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The records, borrowed; walking them allocates nothing.
    ///
    /// # Errors
    /// [`DecodeError`] if the records are not such as KRaft writes; so may each record be.
    pub fn records(&self) -> Result<Records<'_>, DecodeError> {
        Batch::parse(&self.bytes)?.records()
    }
}

enum Item {
    Batch(SnapshotBatch),
    End(SnapshotSummary),
    Failed(SnapshotError),
}

/// A checkpoint that is being read.
///
/// Header and footer were looked at before the first batch is given, except that CRCs in the
/// middle show only as the stream reaches them: what was given before an error is not the whole
/// snapshot and must be thrown away.
pub struct SnapshotReader {
    id: SnapshotId,
    len: u64,
    head: SnapshotHead,
    items: Receiver<Item>,
    rt: Arc<dyn Rt>,
    first: Option<SnapshotBatch>,
    ended: Option<Result<SnapshotSummary, SnapshotError>>,
}

impl SnapshotReader {
    /// Starts the reading lane and waits for the header batch.
    pub(super) async fn open(
        rt: Arc<dyn Rt>,
        dir: &Path,
        id: SnapshotId,
        len: u64,
    ) -> Result<SnapshotReader, SnapshotError> {
        let (sender, items) = channel(BATCHES_AHEAD);
        let path = checkpoint_path(dir, id);
        let lane_path = path.clone();
        rt.spawn_lane(
            "kraftlog-snapshot-read",
            dir,
            Box::new(move |disk| Box::pin(async move { lane(&*disk, lane_path, len, sender).await })),
        )?;
        let placeholder =
            SnapshotHead { last_contained_log_timestamp: -1, kraft_version: None, voters: None };
        let mut reader = SnapshotReader { id, len, head: placeholder, items, rt, first: None, ended: None };
        let Some(first) = reader.receive().await? else {
            return Err(SnapshotError::Invalid { path, fault: SnapshotFault::NoHeader { len } });
        };
        let batch =
            Batch::parse(&first.bytes).map_err(|cause| SnapshotFault::BadBatch { position: 0, cause });
        match batch.and_then(|batch| SnapshotHead::from_batch(&batch)) {
            Ok(head) => reader.head = head,
            Err(fault) => return Err(SnapshotError::Invalid { path, fault }),
        }
        reader.first = Some(first);
        Ok(reader)
    }

    /// Which snapshot this is. Its records hold everything below `id().end_offset`.
    pub fn id(&self) -> SnapshotId {
        self.id
    }

    /// Length of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never true: a checkpoint without bytes has no header.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What its header batch says: append time of the last record it covers, kraft.version, voters.
    pub fn head(&self) -> &SnapshotHead {
        &self.head
    }

    /// Batches and records of the whole file, once [`next_batch`](Self::next_batch) has answered `None`.
    pub fn summary(&self) -> Option<SnapshotSummary> {
        self.ended.as_ref().and_then(|ended| ended.as_ref().ok()).copied()
    }

    /// The next batch, header and footer included; `None` when the file has ended *and is whole*.
    ///
    /// # Errors
    /// [`SnapshotError::Invalid`] at the first batch that is not right or when the footer is
    /// missing. The error stays.
    ///
    /// # Cancel safety
    /// Dropping the future loses no batch.
    pub async fn next_batch(&mut self) -> Result<Option<SnapshotBatch>, SnapshotError> {
        match self.first.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.receive().await,
        }
    }

    /// As [`next_batch`](Self::next_batch), blocking this thread.
    ///
    /// # Errors
    /// Those of [`next_batch`](Self::next_batch).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn next_batch_blocking(&mut self) -> Result<Option<SnapshotBatch>, SnapshotError> {
        let rt = Arc::clone(&self.rt);
        crate::handle::block_on(&*rt, self.next_batch())
    }

    async fn receive(&mut self) -> Result<Option<SnapshotBatch>, SnapshotError> {
        if let Some(ended) = &self.ended {
            return ended.clone().map(|_| None);
        }
        let ended = match self.items.recv().await {
            Some(Item::Batch(batch)) => return Ok(Some(batch)),
            Some(Item::End(summary)) => Ok(summary),
            Some(Item::Failed(error)) => Err(error),
            None => Err(SnapshotError::Closed),
        };
        self.ended = Some(ended.clone());
        ended.map(|_| None)
    }
}

async fn lane(disk: &dyn Disk, path: PathBuf, len: u64, items: Sender<Item>) {
    let last = match read(disk, &path, len, &items).await {
        Ok(Ok(summary)) => Item::End(summary),
        Ok(Err(Gone)) => return,
        Err(error) => Item::Failed(error),
    };
    // A consumer that has gone needs no answer.
    let _ = items.send(last).await;
}

async fn read(
    disk: &dyn Disk,
    path: &Path,
    len: u64,
    items: &Sender<Item>,
) -> Result<Result<SnapshotSummary, Gone>, SnapshotError> {
    let file = disk.open(path, OpenHow::Read).await?;
    let invalid = |fault| SnapshotError::Invalid { path: path.to_path_buf(), fault };
    let mut scan = BatchScan::new(len);
    let mut buf = BytesMut::new();
    let mut read = 0u64;
    loop {
        let position = scan.position();
        match scan.step(&buf).map_err(invalid)? {
            Step::End(summary) => return Ok(Ok(summary)),
            Step::Batch(header) => {
                let bytes = buf.split_to(header.size()).freeze();
                if items.send(Item::Batch(SnapshotBatch { header, bytes, position })).await.is_err() {
                    return Ok(Err(Gone));
                }
            }
            Step::More => {
                let left = usize::try_from(len - read).unwrap_or(usize::MAX);
                let piece = READ_BYTES.min(left);
                // Room for the whole batch and the piece that reaches beyond it, at once: its size
                // was held against the file's length.
                buf.reserve(scan.missing(buf.len()).min(left) + piece);
                let had = buf.len();
                buf = file.read_at(read, piece, buf).await?;
                let now = buf.len() - had;
                if now == 0 {
                    let left = read - position;
                    return Err(invalid(SnapshotFault::Cut { position, size: len - position, left }));
                }
                read += now as u64;
            }
        }
    }
}
