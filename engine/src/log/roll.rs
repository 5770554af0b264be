//! A new active segment.
//!
//! Order: trim and sync the old one, create the new files, sync the directory; the first write comes
//! after that. A crash leaves the old segment whole and perhaps an empty new one.

use crate::error::fences;
use crate::lane::log_lane::LogLane;
use crate::log::active::ActiveSegment;
use crate::metrics::Metrics;
use kraftlog_io::IoError;
use std::sync::Arc;

impl LogLane {
    /// Begins a segment at the log end. On return its name is durable.
    pub(crate) async fn roll(&mut self) -> Result<(), IoError> {
        self.active.indexer.add_time();
        if let Err(error) = self.active.write_indexes(true).await {
            tracing::warn!(%error, "index of a full segment is short; open rebuilds it");
        }
        self.active.trim_and_sync().await.inspect_err(|cause| self.fence_if_unknown(cause))?;
        let base = self.shared.watermark.end();
        let (disk, part_dir) = (&*self.disk, &self.shared.part_dir);
        let mut next = ActiveSegment::create(disk, part_dir, base).await?;
        disk.sync_dir(part_dir).await.inspect_err(|cause| self.fence_if_unknown(cause))?;
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
