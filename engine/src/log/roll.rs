//! A new active segment.
//!
//! Order: trim and sync the old one, create the new files, sync the directory; the first write comes
//! after that. A crash leaves the old segment whole and perhaps an empty new one.

use crate::error::fences;
use crate::lane::log_lane::LogLane;
use crate::log::active::ActiveSegment;
use crate::metrics::Metrics;
use crate::types::Offset;
use kraftlog_codecs::names;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, IoError, IoErrorKind};
use std::path::Path;
use std::sync::Arc;

impl LogLane {
    /// Begins a segment at the log end. On return its name is durable.
    pub(crate) async fn roll(&mut self) -> Result<(), IoError> {
        self.active.indexer.add_time();
        if let Err(error) = self.active.write_indexes(true).await {
            tracing::warn!(%error, "index of a full segment is short; open rebuilds it");
        }
        if !planted::is(Plant::RollWithoutTrim) {
            self.active.trim_and_sync().await.inspect_err(|cause| self.fence_if_unknown(cause))?;
        }
        let base = self.shared.watermark.end();
        let (disk, part_dir) = (&*self.disk, &self.shared.part_dir);
        let mut next = match ActiveSegment::create(disk, part_dir, base).await {
            Ok(next) => next,
            Err(cause) => {
                // The log goes on in the old segment: an empty one in the middle of it would be in the way
                // of every later open, also of a Kafka's.
                forget(disk, part_dir, base).await.inspect_err(|cause| self.fence_if_unknown(cause))?;
                return Err(cause);
            }
        };
        if !planted::is(Plant::RollWithoutDirSync) {
            disk.sync_dir(part_dir).await.inspect_err(|cause| self.fence_if_unknown(cause))?;
        }
        // The last batch of the log is still the old segment's.
        next.last = self.active.last;
        self.shared.segments.push(Arc::clone(&next.segment));
        let old = std::mem::replace(&mut self.active, next);
        self.sealed.push(old.len());
        Metrics::add(&self.shared.metrics.segments_rolled, 1);
        Ok(())
    }

    fn fence_if_unknown(&self, cause: &IoError) {
        if fences(cause) {
            self.shared.fence(cause.clone());
        }
    }
}

/// Removes what was made of a segment, durably.
async fn forget(disk: &dyn Disk, part_dir: &Path, base: Offset) -> Result<(), IoError> {
    let names =
        [names::segment_name(base.0), names::offset_index_name(base.0), names::time_index_name(base.0)];
    for name in names {
        match disk.remove(&part_dir.join(name)).await {
            Err(error) if error.kind() != IoErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    disk.sync_dir(part_dir).await
}
