//! Bytes of a checkpoint for a follower that fetches it in chunks.
//!
//! A lane of its own reads them, so that neither appends nor snapshot writes wait. It keeps the file
//! of the last chunk open, as a follower asks for one chunk after the other; no more files than
//! that one are held, however many followers there are.
//!
//! The bytes are served as they are, whatever they are: whether they are whole is found out by the
//! follower, who has to check them anyway.

use super::catalog::checkpoint_path;
use super::fault::SnapshotError;
use crate::handle::Shared;
use crate::lane::oneshot::Sender;
use crate::types::SnapshotId;
use bytes::{Bytes, BytesMut};
use kraftlog_io::{Disk, File, IoError, IoErrorKind, OpenHow};
use std::rc::Rc;
use std::sync::Arc;

/// A chunk of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotBytes {
    /// The snapshot.
    pub id: SnapshotId,
    /// Length of the whole file.
    pub len: u64,
    /// Where the chunk begins.
    pub position: u64,
    /// The chunk; it need not begin or end with a batch.
    pub bytes: Bytes,
}

/// A chunk that a caller waits for.
pub(crate) struct ServeOp {
    pub(super) id: SnapshotId,
    pub(super) position: u64,
    pub(super) len: usize,
    pub(super) answer: Sender<Result<Bytes, SnapshotError>>,
}

/// Serves the queue until it is closed and drained.
pub(crate) async fn run(shared: Arc<Shared>, disk: Rc<dyn Disk>) {
    let _gone = Gone(&shared);
    let mut open: Option<(SnapshotId, Rc<dyn File>)> = None;
    let mut ops = Vec::new();
    while shared.snapshots.serve_queue().take(&mut ops).await {
        for op in ops.drain(..) {
            let read = read(&shared, &*disk, &mut open, &op).await;
            let bytes = match read {
                Ok(bytes) => Ok(bytes),
                // Removed behind our back: known no more (B-120).
                Err(cause) if cause.kind() == IoErrorKind::NotFound => {
                    tracing::warn!(%cause, path = %cause.path.display(), "snapshot has vanished");
                    shared.snapshots.forget(op.id);
                    Err(SnapshotError::Unknown { id: op.id })
                }
                Err(cause) => Err(SnapshotError::Io(cause)),
            };
            op.answer.send(bytes);
        }
        // Between two calls a deleted checkpoint must not keep its space for long.
        if let Some((id, _)) = &open
            && shared.snapshots.len_of(*id).is_none()
        {
            open = None;
        }
    }
}

/// Tells whoever still waits when the lane ends, however it does.
struct Gone<'a>(&'a Shared);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let queue = self.0.snapshots.serve_queue();
        queue.close();
        drop(queue.with(|(), waiting| std::mem::take(waiting)));
    }
}

async fn read(
    shared: &Shared,
    disk: &dyn Disk,
    open: &mut Option<(SnapshotId, Rc<dyn File>)>,
    op: &ServeOp,
) -> Result<Bytes, IoError> {
    let file = match open {
        Some((id, file)) if *id == op.id => Rc::clone(file),
        _ => {
            let path = checkpoint_path(&shared.part_dir, op.id);
            let file = disk.open(&path, OpenHow::Read).await?;
            *open = Some((op.id, Rc::clone(&file)));
            file
        }
    };
    let buf = file.read_at(op.position, op.len, BytesMut::with_capacity(op.len)).await?;
    Ok(buf.freeze())
}
