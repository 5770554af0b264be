//! What an open log knows of its checkpoints, shared by all handles and lanes.

use super::catalog::Catalog;
use super::serve::{self, ServeOp};
use crate::handle::Shared;
use crate::lane::bulk::{self, BulkOp, WriterId};
use crate::lane::queue::Queue;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::types::SnapshotId;
use kraftlog_io::IoError;
use std::sync::Arc;

/// The known checkpoints, and the queues of the lanes that write and serve them. Each lane is
/// started when it is first needed and ends when its queue is closed.
pub(crate) struct Snapshots {
    catalog: Mutex<Catalog>,
    bulk_queue: Queue<BulkOp>,
    serve_queue: Queue<ServeOp>,
    bulk_started: Mutex<bool>,
    serve_started: Mutex<bool>,
    next_writer: AtomicU64,
}

impl Snapshots {
    /// From the catalog that is left after open has set aside and removed what it must.
    pub(crate) fn new(catalog: Catalog) -> Snapshots {
        Snapshots {
            catalog: Mutex::new(catalog),
            bulk_queue: Queue::new(()),
            serve_queue: Queue::new(()),
            bulk_started: Mutex::new(false),
            serve_started: Mutex::new(false),
            next_writer: AtomicU64::new(0),
        }
    }

    pub(crate) fn bulk_queue(&self) -> &Queue<BulkOp> {
        &self.bulk_queue
    }

    pub(crate) fn serve_queue(&self) -> &Queue<ServeOp> {
        &self.serve_queue
    }

    /// Starts the bulk lane, unless it runs.
    pub(crate) fn start_bulk(&self, shared: &Arc<Shared>) -> Result<(), IoError> {
        let mut started = self.bulk_started.lock();
        if !*started {
            shared.spawn_lane("kraftlog-bulk", bulk::run)?;
            *started = true;
        }
        Ok(())
    }

    /// Starts the lane that serves chunks to followers, unless it runs.
    pub(crate) fn start_serving(&self, shared: &Arc<Shared>) -> Result<(), IoError> {
        let mut started = self.serve_started.lock();
        if !*started {
            shared.spawn_lane("kraftlog-serve", serve::run)?;
            *started = true;
        }
        Ok(())
    }

    /// Lets no lane take anything more; what waits is still done.
    pub(crate) fn close_queues(&self) {
        self.bulk_queue.close();
        self.serve_queue.close();
    }

    pub(crate) fn next_writer(&self) -> WriterId {
        WriterId(self.next_writer.fetch_add(1, Ordering::Relaxed))
    }

    /// A checkpoint is durable under its name.
    pub(crate) fn frozen(&self, id: SnapshotId, len: u64) {
        self.catalog.lock().insert(id, len);
    }

    /// A checkpoint is gone.
    pub(crate) fn forget(&self, id: SnapshotId) {
        self.catalog.lock().remove(id);
    }

    pub(crate) fn len_of(&self, id: SnapshotId) -> Option<u64> {
        self.catalog.lock().len_of(id)
    }

    pub(crate) fn latest(&self) -> Option<SnapshotId> {
        self.catalog.lock().latest()
    }

    pub(crate) fn earliest(&self) -> Option<SnapshotId> {
        self.catalog.lock().earliest()
    }

    /// All of them with their sizes, oldest first.
    pub(crate) fn all(&self) -> Vec<(SnapshotId, u64)> {
        self.catalog.lock().known().collect()
    }
}
