//! The cloneable handle of a log, and what its lanes share.
//!
//! For those who add to the engine:
//! - [`Shared`] is what all handles and lanes of one open log have in common: runtime, part directory,
//!   configuration, the borders of the log ([`Watermark`]: start, end, durable end, high watermark, and
//!   who waits for them), epochs, segments, the tail cache, the first fence cause.
//! - Ordered changes go to the log lane: `shared.log_queue.push_with(|order| Ok((LogOp::.., answer)))`.
//!   `order` ([`Order`]) is changed in the same step, so the order of calls is the order in the log.
//!   The lane's answer comes through `lane::oneshot`.
//! - A further lane has a `lane::queue::Queue<Op>`, is started with
//!   `shared.rt.spawn_lane(name, &shared.part_dir, Box::new(move |disk| Box::pin(async move { .. })))`,
//!   loops on `queue.take(&mut ops).await` until it says false, and holds `Arc<Shared>` (which keeps the
//!   directory's lock) until then. `Shared::close_queues` closes its queue too.
//! - A failed sync (`error::fences`) must call [`Shared::fence`].
//! - Nothing here waits in a lock while it does I/O.

use crate::config::LogConfig;
use crate::dir::{LogLease, MetadataDir};
use crate::epochs::EpochCache;
use crate::error::Fenced;
use crate::lane::budget::Budget;
use crate::lane::log_lane::{LogOp, Order};
use crate::lane::queue::Queue;
use crate::lane::read_lane::ReadOp;
use crate::log::tail::TailCache;
use crate::metrics::Metrics;
use crate::segment::Segments;
use crate::sync::Mutex;
use crate::types::{Epoch, Offset};
use crate::watermark::{Ends, Watch, Watermark};
use kraftlog_io::{IoError, Rt};
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

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
    /// Epochs of everything queued, also of what is not written yet.
    pub(crate) epochs: Mutex<EpochCache>,
    /// All segments with their indexes.
    pub(crate) segments: Segments,
    pub(crate) tail: Mutex<TailCache>,
    pub(crate) metrics: Arc<Metrics>,
    /// The first failed or unknown sync of the directory.
    fence: OnceLock<Fenced>,
    /// Last field: frees the directory for the next log when the last lane ends.
    _lease: LogLease,
}

impl Shared {
    /// Keeps the first cause and lets nothing more be written. Readers stop at the durable end.
    pub(crate) fn fence(&self, cause: IoError) -> Fenced {
        let fenced = self.fence.get_or_init(|| {
            tracing::error!(%cause, path = %cause.path.display(), "sync failed, the directory is fenced");
            Fenced { cause }
        });
        fenced.clone()
    }

    /// The fence, if there is one.
    pub(crate) fn fenced(&self) -> Option<&Fenced> {
        self.fence.get()
    }

    /// Lets no lane take anything more; what waits is still done.
    pub(crate) fn close_queues(&self) {
        self.log_queue.close();
        self.read_queue.close();
        self.watermark.close();
    }
}
