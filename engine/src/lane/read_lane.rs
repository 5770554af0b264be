//! The read lane: positional reads of what the tail cache does not hold.
//!
//! It shares no lock with the log lane while it reads. The segments' generation is looked at before and
//! after: if bytes were taken away in between, what was read may be torn and is read again
//! (behaviour.md W-11). A few segment files are kept open.

use crate::handle::Shared;
use crate::lane::oneshot::Sender;
use crate::lane::walk::{Walk, Wanted};
use crate::log::read::{Fetched, ReadError};
use crate::metrics::Metrics;
use crate::segment::Segment;
use crate::types::Offset;
use kraftlog_io::{Disk, File, IoError, OpenHow};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Segment files kept open.
const FILES_MAX: usize = 4;

/// One read that goes to the disk.
pub(crate) struct ReadOp {
    pub(crate) wanted: Wanted,
    pub(crate) answer: Sender<Result<Fetched, ReadError>>,
}

/// Serves the read queue until it is closed and drained.
pub(crate) async fn run(shared: Arc<Shared>, disk: Rc<dyn Disk>) {
    let mut lane = ReadLane { shared, disk, files: VecDeque::new() };
    let mut ops = Vec::new();
    while lane.shared.read_queue.take(&mut ops).await {
        for op in ops.drain(..) {
            let read = lane.serve(op.wanted).await;
            op.answer.send(read);
        }
    }
}

struct ReadLane {
    shared: Arc<Shared>,
    disk: Rc<dyn Disk>,
    /// Most recently used last.
    files: VecDeque<(Offset, Rc<dyn File>)>,
}

impl Drop for ReadLane {
    fn drop(&mut self) {
        // Whoever still waits learns that nobody serves any more.
        self.shared.read_queue.close();
        let left = self.shared.read_queue.with(|(), waiting| std::mem::take(waiting));
        drop(left);
    }
}

impl ReadLane {
    async fn serve(&mut self, wanted: Wanted) -> Result<Fetched, ReadError> {
        Metrics::add(&self.shared.metrics.reads_from_disk, 1);
        loop {
            let generation = self.shared.segments.generation();
            let read = self.read(wanted).await;
            if generation == self.shared.segments.generation() {
                return read;
            }
            self.files.clear();
            let ends = self.shared.watermark.ends();
            if wanted.from < ends.start || wanted.from >= ends.end {
                return Err(ReadError::OutOfRange { offset: wanted.from, start: ends.start, end: ends.end });
            }
        }
    }

    async fn read(&mut self, wanted: Wanted) -> Result<Fetched, ReadError> {
        let shared = Arc::clone(&self.shared);
        let Some(placed) = shared.segments.find(wanted.from) else {
            let ends = shared.watermark.ends();
            return Err(ReadError::OutOfRange { offset: wanted.from, start: ends.start, end: ends.end });
        };
        let file = self.file(&placed.segment).await?;
        let floor = placed.segment.floor(wanted.from);
        let walk = Walk::begin(&*file, &placed, floor, wanted).await?;
        match walk.collect(&shared.watermark).await {
            // The index may be wrong, it is a cache: look again from the segment's first byte.
            Err(ReadError::CorruptBatch { .. }) if floor.position > 0 => {
                let walk = Walk::begin(&*file, &placed, placed.segment.front(), wanted).await?;
                walk.collect(&shared.watermark).await
            }
            read => read,
        }
    }

    async fn file(&mut self, segment: &Segment) -> Result<Rc<dyn File>, IoError> {
        if let Some(at) = self.files.iter().position(|(base, _)| *base == segment.base)
            && let Some(found) = self.files.remove(at)
        {
            let file = Rc::clone(&found.1);
            self.files.push_back(found);
            return Ok(file);
        }
        let file = self.disk.open(&segment.path, OpenHow::Read).await?;
        if self.files.len() >= FILES_MAX {
            self.files.pop_front();
        }
        self.files.push_back((segment.base, Rc::clone(&file)));
        Ok(file)
    }
}
