//! The cloneable handle of a log, and what its lanes share.
//!
//! For those who add to the engine:
//! - [`Shared`] is what all handles and lanes of one open log have in common: runtime, part directory,
//!   configuration, the borders of the log ([`Watermark`]: start, end, durable end, high watermark, and
//!   who waits for them), epochs, segments, the tail cache, the first fence cause.
//! - Ordered changes go to the log lane: `shared.log_queue.push_with(|order| Ok((LogOp::.., answer)))`.
//!   `order` ([`Order`]) is changed in the same step, so the order of calls is the order in the log.
//!   The lane's answer comes through `lane::oneshot`.
//! - A further lane has a `lane::queue::Queue<Op>`, is started with [`Shared::spawn_lane`],
//!   loops on `queue.take(&mut ops).await` until it says false, and holds `Arc<Shared>` (which keeps the
//!   directory's lock) until then. `Shared::close_queues` closes its queue too.
//! - A failed sync (`error::fences`) must call [`Shared::fence`].
//! - Nothing here waits in a lock while it does I/O.

use crate::config::LogConfig;
use crate::control::ControlHistory;
use crate::dir::{LogLease, MetadataDir};
use crate::epochs::{EpochCache, EpochEnd, Extent, Validity};
use crate::error::{ErrorKind, Fenced};
use crate::fence::Fence;
use crate::lane::budget::Budget;
use crate::lane::log_lane::{LogOp, Order};
use crate::lane::oneshot::oneshot;
use crate::lane::queue::{Queue, QueueClosed};
use crate::lane::read_lane::ReadOp;
use crate::lane::running::Running;
use crate::log::tail::TailCache;
use crate::metrics::Metrics;
use crate::segment::Segments;
use crate::snapshot::Snapshots;
use crate::sync::Mutex;
use crate::types::{Epoch, Offset};
use crate::watermark::{Ends, Watch, Watermark};
use kraftlog_io::{Disk, IoError, Rt};
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// What all handles and lanes of one open log share.
pub(crate) struct Shared {
    pub(crate) rt: Arc<dyn Rt>,
    /// `__cluster_metadata-0` of the directory.
    pub(crate) part_dir: PathBuf,
    pub(crate) config: LogConfig,
    pub(crate) log_queue: Queue<LogOp, Order>,
    pub(crate) read_queue: Queue<ReadOp>,
    pub(crate) watermark: Arc<Watermark>,
    /// Bytes that may wait.
    pub(crate) budget: Arc<Budget>,
    /// Epochs of everything written, and one that is begun and has no batch yet.
    pub(crate) epochs: Mutex<EpochCache>,
    /// All segments with their indexes.
    pub(crate) segments: Segments,
    pub(crate) tail: Mutex<TailCache>,
    /// Voters and kraft.version over offsets.
    pub(crate) control: Mutex<ControlHistory>,
    pub(crate) snapshots: Snapshots,
    pub(crate) metrics: Arc<Metrics>,
    /// The lanes that still run.
    pub(crate) running: Arc<Running>,
    /// The first failed or unknown sync of the directory.
    pub(crate) fence: Fence,
    /// Last field: frees the directory for the next log when the last lane ends.
    pub(crate) lease: LogLease,
}

impl Shared {
    /// Starts one more lane of this log; its queue is among those that
    /// [`close_queues`](Shared::close_queues) closes.
    pub(crate) fn spawn_lane<F>(
        self: &Arc<Shared>,
        name: &str,
        lane: impl FnOnce(Arc<Shared>, Rc<dyn Disk>) -> F + Send + 'static,
    ) -> Result<(), IoError>
    where
        F: Future<Output = ()> + 'static,
    {
        let (shared, running) = (Arc::clone(self), self.running.enter());
        self.rt.spawn_lane(
            name,
            &self.part_dir,
            Box::new(move |disk| {
                Box::pin(async move {
                    lane(shared, disk).await;
                    drop(running);
                })
            }),
        )
    }

    /// Keeps the first cause, lets nothing more be written and wakes who waits for a border of the log.
    /// Readers stop at the durable end.
    pub(crate) fn fence(&self, cause: IoError) -> Fenced {
        self.fence.raise(cause, &self.watermark)
    }

    /// The fence, if there is one.
    pub(crate) fn fenced(&self) -> Option<&Fenced> {
        self.fence.get()
    }

    /// Lets nothing more into the log. The log lane does what waits, leaves the directory clean and then
    /// ends the other lanes.
    pub(crate) fn close_log(&self) {
        self.log_queue.close();
    }

    /// For the log lane at its end: no lane takes anything more; what waits there is still done.
    pub(crate) fn close_queues(&self) {
        self.log_queue.close();
        self.read_queue.close();
        self.snapshots.close_queues();
        self.watermark.close();
    }
}

/// The metadata log of one open directory. Clones share it; the last one that goes drains it and frees
/// the directory.
#[derive(Clone)]
pub struct MetadataLog {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    /// Keeps the lock for as long as there is a handle.
    dir: MetadataDir,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The lanes still do what waits, then leave the directory clean and free it.
        self.shared.lease.drains();
        self.shared.close_log();
    }
}

impl MetadataLog {
    pub(crate) fn new(shared: Arc<Shared>, dir: MetadataDir) -> MetadataLog {
        MetadataLog { handle: Arc::new(Handle { shared, dir }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// The directory that the log lies in.
    pub fn dir(&self) -> &MetadataDir {
        &self.handle.dir
    }

    /// First offset that the log offers.
    pub fn start_offset(&self) -> Offset {
        self.shared().watermark.start()
    }

    /// The next offset to be written: everything below can be read uncommitted.
    pub fn end_offset(&self) -> Offset {
        self.shared().watermark.end()
    }

    /// Everything below is on stable storage. A leader counts itself at this offset, not at the log end
    /// (behaviour.md W-1).
    pub fn durable_end(&self) -> Offset {
        self.shared().watermark.durable_end()
    }

    /// Everything below is committed, as far as [`update_high_watermark`](MetadataLog::update_high_watermark)
    /// was told; after open it is the log start.
    pub fn high_watermark(&self) -> Offset {
        self.shared().watermark.high_watermark()
    }

    /// All four borders at once.
    pub fn ends(&self) -> Ends {
        self.shared().watermark.ends()
    }

    /// Waits for changes of the borders.
    pub fn watch(&self) -> Watch {
        Watch::new(Arc::clone(&self.shared().watermark))
    }

    /// Counters since open.
    pub fn metrics(&self) -> &Metrics {
        &self.shared().metrics
    }

    /// Raises the high watermark; a lower offset is ignored (behaviour.md B-104).
    ///
    /// # Errors
    /// [`HighWatermarkError`] if the offset is not in the log.
    pub fn update_high_watermark(&self, offset: Offset) -> Result<(), HighWatermarkError> {
        let ends = self.ends();
        if offset < ends.start || offset > ends.end {
            return Err(HighWatermarkError { offset, start: ends.start, end: ends.end });
        }
        self.shared().watermark.raise_high_watermark(offset);
        Ok(())
    }

    /// Newest leader epoch of the log, or of the snapshot that it starts with; 0 if there is neither
    /// (behaviour.md B-99).
    pub fn last_epoch(&self) -> Epoch {
        let extent = self.extent();
        self.shared().epochs.lock().last_fetched(extent)
    }

    /// Where `epoch` ends in this log (behaviour.md B-100).
    pub fn end_offset_for_epoch(&self, epoch: Epoch) -> EpochEnd {
        let extent = self.extent();
        self.shared().epochs.lock().end_offset_for(epoch, extent)
    }

    /// Whether another log that ends at `offset` in `epoch` is a beginning of this one (behaviour.md B-101).
    pub fn validate(&self, offset: Offset, epoch: Epoch) -> Validity {
        let extent = self.extent();
        self.shared().epochs.lock().validate(offset, epoch, extent)
    }

    fn extent(&self) -> Extent {
        let ends = self.ends();
        let snapshots = &self.shared().snapshots;
        Extent {
            start: ends.start,
            end: ends.end,
            earliest_snapshot: snapshots.earliest(),
            latest_snapshot: snapshots.latest(),
        }
    }

    /// Waits until everything queued before is done: durable, or failed with its own error.
    ///
    /// # Errors
    /// [`FlushError`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn flush(&self) -> Result<(), FlushError> {
        let (answer, flushed) = oneshot();
        self.shared().log_queue.push(LogOp::Flush { answer })?;
        Ok(flushed.into_answer().await.ok_or(FlushError::Closed)??)
    }

    /// As [`flush`](MetadataLog::flush), blocking this thread.
    ///
    /// # Errors
    /// Those of [`flush`](MetadataLog::flush).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn flush_blocking(&self) -> Result<(), FlushError> {
        block_on(&*self.shared().rt, self.flush())
    }
}

/// A high watermark outside of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("high watermark {offset} is outside of the log, which goes from {start} to {end}")]
pub struct HighWatermarkError {
    /// Asked for.
    pub offset: Offset,
    /// Where the log starts.
    pub start: Offset,
    /// Where it ends.
    pub end: Offset,
}

impl HighWatermarkError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

/// Why a flush cannot say that everything is durable.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FlushError {
    /// A sync failed, now or earlier.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl FlushError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Fenced
    }
}

impl From<QueueClosed> for FlushError {
    fn from(_: QueueClosed) -> FlushError {
        FlushError::Closed
    }
}

/// Runs a future to its end on this thread.
pub(crate) fn block_on<T>(rt: &dyn Rt, future: impl Future<Output = T>) -> T {
    let mut answer = None;
    rt.block_on(Box::pin(async { answer = Some(future.await) }));
    let Some(answer) = answer else { unreachable!("a runtime returns when the future is done") };
    answer
}
