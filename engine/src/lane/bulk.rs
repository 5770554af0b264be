//! The bulk lane: writing, verifying and publishing checkpoints beside the log.
//!
//! It owns the `.part` files that writers fill. Their bytes come in whole batches and go out in
//! pieces of at most [`DIRTY_BYTES_MAX`], each made durable before the next: a disk that is handed
//! a gigabyte of dirty pages at once holds the log's small syncs up for a long time. Before each
//! piece the lane lets a commit group that is under way finish first; one group only, so that a
//! busy log slows a snapshot down but never stops it. (Following the log's sync latency with the
//! rate is not done.)
//!
//! A checkpoint is published in this order: `.part` read back and verified, fsync, read-only,
//! rename, fsync of the directory. A crash leaves a `.part`, which the next open removes, or the
//! whole checkpoint. A failed write (a full disk) costs that snapshot alone: its file is thrown away.
//! A failed sync, of a `.part` too, fences the directory like any other (P-2).

use crate::error::{Fenced, fences};
use crate::handle::Shared;
use crate::lane::oneshot::Sender;
use crate::snapshot::{SnapshotFault, SnapshotSummary, checkpoint_path, verify};
use crate::types::SnapshotId;
use bytes::Bytes;
use kraftlog_codecs::names;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, File, IoError, OpenHow};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Most bytes of a `.part` that are written and not durable.
pub(crate) const DIRTY_BYTES_MAX: usize = 256 * 1024;
/// Longest wait for a commit group, should the log stand still.
const YIELD_MAX: Duration = Duration::from_millis(50);
/// Mode of a `.part`, and of a published checkpoint, as Kafka leaves them.
const PART_MODE: u32 = 0o600;
const CHECKPOINT_MODE: u32 = 0o400;

/// Number of a writer, unique in the life of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct WriterId(pub(crate) u64);

/// What the bulk lane does.
pub(crate) enum BulkOp {
    /// Makes the `.part` of a snapshot.
    Create { writer: WriterId, id: SnapshotId, answer: Sender<Result<(), PartError>> },
    /// Appends whole batches to it.
    Write { writer: WriterId, bytes: Bytes, answer: Sender<Result<(), PartError>> },
    /// Verifies and publishes it.
    Freeze { writer: WriterId, answer: Sender<Result<SnapshotSummary, PartError>> },
    /// Throws it away.
    Discard { writer: WriterId },
}

/// Why a `.part` came to nothing. It is removed, except after `Fenced`.
#[derive(Debug, Clone)]
pub(crate) enum PartError {
    Io(IoError),
    NotWhole(SnapshotFault),
    Fenced(Fenced),
}

struct Part {
    id: SnapshotId,
    path: PathBuf,
    file: Rc<dyn File>,
    len: u64,
    dirty: usize,
    failed: Option<PartError>,
    /// The file is gone.
    removed: bool,
}

/// Serves the bulk queue until it is closed and drained; `.part` files still open then are removed.
pub(crate) async fn run(shared: Arc<Shared>, disk: Rc<dyn Disk>) {
    let mut lane = Lane { shared, disk, parts: HashMap::new() };
    let mut ops = Vec::new();
    while lane.shared.snapshots.bulk_queue().take(&mut ops).await {
        for op in ops.drain(..) {
            lane.serve(op).await;
        }
    }
    let left: Vec<WriterId> = lane.parts.keys().copied().collect();
    for writer in left {
        lane.discard(writer).await;
    }
}

struct Lane {
    shared: Arc<Shared>,
    disk: Rc<dyn Disk>,
    parts: HashMap<WriterId, Part>,
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Whoever still waits learns that nobody serves any more.
        let queue = self.shared.snapshots.bulk_queue();
        queue.close();
        drop(queue.with(|(), waiting| std::mem::take(waiting)));
    }
}

impl Lane {
    async fn serve(&mut self, op: BulkOp) {
        match op {
            BulkOp::Create { writer, id, answer } => answer.send(self.create(writer, id).await),
            BulkOp::Write { writer, bytes, answer } => answer.send(self.write(writer, bytes).await),
            BulkOp::Freeze { writer, answer } => answer.send(self.freeze(writer).await),
            BulkOp::Discard { writer } => self.discard(writer).await,
        }
    }

    async fn create(&mut self, writer: WriterId, id: SnapshotId) -> Result<(), PartError> {
        self.check_fence()?;
        // Kafka's names have a positive Java long.
        let random = self.shared.rt.random() >> 1;
        let name = names::checkpoint_part_name(id.end_offset.0, id.epoch.0, random);
        let path = self.shared.part_dir.join(name);
        let file =
            self.disk.open(&path, OpenHow::CreateNew { mode: PART_MODE }).await.map_err(PartError::Io)?;
        let part = Part { id, path, file, len: 0, dirty: 0, failed: None, removed: false };
        self.parts.insert(writer, part);
        Ok(())
    }

    async fn write(&mut self, writer: WriterId, mut bytes: Bytes) -> Result<(), PartError> {
        while !bytes.is_empty() {
            self.check_fence()?;
            self.yield_to_log().await;
            let part = self.part(writer);
            if let Some(failed) = &part.failed {
                return Err(failed.clone());
            }
            let piece = bytes.split_to(bytes.len().min(DIRTY_BYTES_MAX));
            if let Err(cause) = write_piece(part, piece).await {
                let failed = self.failed(cause);
                self.part(writer).failed = Some(failed.clone());
                // When the caller learns of it nothing is left that takes space from a full disk.
                if let PartError::Io(_) = &failed {
                    self.remove_file(writer).await;
                }
                return Err(failed);
            }
        }
        Ok(())
    }

    async fn freeze(&mut self, writer: WriterId) -> Result<SnapshotSummary, PartError> {
        let frozen = self.publish(writer).await;
        match &frozen {
            Ok(_) => drop(self.parts.remove(&writer)),
            // The name may be there or not; the next open finds out.
            Err(PartError::Fenced(_)) => drop(self.parts.remove(&writer)),
            Err(_) => self.discard(writer).await,
        }
        frozen
    }

    async fn publish(&mut self, writer: WriterId) -> Result<SnapshotSummary, PartError> {
        self.check_fence()?;
        let (disk, shared) = (Rc::clone(&self.disk), Arc::clone(&self.shared));
        let part = self.part(writer);
        if let Some(failed) = &part.failed {
            return Err(failed.clone());
        }
        let path = checkpoint_path(&shared.part_dir, part.id);
        let published = publish(&*disk, part, &shared.part_dir, &path).await;
        let (id, len) = (part.id, part.len);
        let summary = published.map_err(|cause| self.failed(cause))?.map_err(PartError::NotWhole)?;
        shared.snapshots.frozen(id, len);
        // What was said below its end is in the snapshot now (behaviour.md B-151).
        shared.control.lock().truncate_before(id.end_offset);
        Ok(summary)
    }

    async fn discard(&mut self, writer: WriterId) {
        self.remove_file(writer).await;
        self.parts.remove(&writer);
    }

    /// Removes a part's file, unless that was done.
    async fn remove_file(&mut self, writer: WriterId) {
        let Some(part) = self.parts.get_mut(&writer) else { return };
        if !std::mem::replace(&mut part.removed, true)
            && let Err(cause) = self.disk.remove(&part.path).await
        {
            tracing::warn!(%cause, path = %part.path.display(), "left over until the next open");
        }
    }

    fn failed(&self, cause: IoError) -> PartError {
        if fences(&cause) { PartError::Fenced(self.shared.fence(cause)) } else { PartError::Io(cause) }
    }

    fn check_fence(&self) -> Result<(), PartError> {
        match self.shared.fenced() {
            Some(fenced) => Err(PartError::Fenced(fenced.clone())),
            None => Ok(()),
        }
    }

    fn part(&mut self, writer: WriterId) -> &mut Part {
        let part = self.parts.get_mut(&writer);
        part.unwrap_or_else(|| panic!("snapshot writer {} has no file", writer.0))
    }

    /// Lets the commit group that is under way become durable.
    async fn yield_to_log(&self) {
        let ends = self.shared.watermark.ends();
        if ends.durable_end >= ends.end {
            return;
        }
        let group = ends.end;
        let mut durable = pin!(self.shared.watermark.wait(|now| (now.durable_end >= group).then_some(())));
        let mut timeout = self.shared.rt.sleep(YIELD_MAX);
        poll_fn(|context| match (durable.as_mut().poll(context), timeout.as_mut().poll(context)) {
            (Poll::Pending, Poll::Pending) => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }
}

/// The order of syncs of a snapshot; see the module's head.
async fn publish(
    disk: &dyn Disk,
    part: &Part,
    dir: &Path,
    path: &Path,
) -> Result<Result<SnapshotSummary, SnapshotFault>, IoError> {
    let summary = match verify(&*part.file, part.len).await? {
        Ok(summary) => summary,
        Err(_) if planted::is(Plant::SnapshotUnverified) => SnapshotSummary::default(),
        Err(fault) => return Ok(Err(fault)),
    };
    if planted::is(Plant::SnapshotPublishedBeforeSync) {
        disk.rename(&part.path, path).await?;
        disk.sync_dir(dir).await?;
        return part.file.sync_all().await.map(|()| Ok(summary));
    }
    part.file.sync_all().await?;
    part.file.set_mode(CHECKPOINT_MODE).await?;
    disk.rename(&part.path, path).await?;
    if !planted::is(Plant::SnapshotWithoutDirSync) {
        disk.sync_dir(dir).await?;
    }
    Ok(Ok(summary))
}

async fn write_piece(part: &mut Part, piece: Bytes) -> Result<(), IoError> {
    let len = piece.len();
    if part.dirty + len > DIRTY_BYTES_MAX {
        part.file.sync_data().await?;
        part.dirty = 0;
    }
    part.file.write_at(part.len, vec![piece]).await?;
    part.len += len as u64;
    part.dirty += len;
    Ok(())
}
