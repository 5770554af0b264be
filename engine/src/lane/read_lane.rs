//! The read lane: positional reads of what the tail cache does not hold.
//!
//! It shares no lock with the log lane while it reads. The segments' generation is looked at before and
//! after: if bytes were taken away in between, what was read may be torn and is read again
//! (behaviour.md W-11). A few segment files are kept open.

use crate::handle::Shared;
use crate::lane::oneshot::Sender;
use crate::log::read::{Fetched, ReadError};
use crate::metrics::Metrics;
use crate::segment::Segment;
use crate::types::Offset;
use bytes::BytesMut;
use kraftlog_codecs::batch::{Batch, BatchHeader, HEADER_BYTES};
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::{Disk, File, IoError, OpenHow};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes read at once while the batch is looked for.
const CHUNK_BYTES: usize = 128 * 1024;
/// Segment files kept open.
const FILES_MAX: usize = 4;

/// One read that goes to the disk. `from < limit`.
pub(crate) struct ReadOp {
    pub(crate) from: Offset,
    pub(crate) limit: Offset,
    pub(crate) bytes_max: usize,
    pub(crate) answer: Sender<Result<Fetched, ReadError>>,
}

/// Serves the read queue until it is closed and drained.
pub(crate) async fn run(shared: Arc<Shared>, disk: Rc<dyn Disk>) {
    let mut lane = ReadLane { shared, disk, files: VecDeque::new() };
    let mut ops = Vec::new();
    while lane.shared.read_queue.take(&mut ops).await {
        for op in ops.drain(..) {
            let read = lane.serve(op.from, op.limit, op.bytes_max).await;
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
    async fn serve(&mut self, from: Offset, limit: Offset, bytes_max: usize) -> Result<Fetched, ReadError> {
        Metrics::add(&self.shared.metrics.reads_from_disk, 1);
        loop {
            let generation = self.shared.segments.generation();
            let read = self.read(from, limit, bytes_max).await;
            if generation == self.shared.segments.generation() {
                return read;
            }
            self.files.clear();
            let ends = self.shared.watermark.ends();
            if from < ends.start || from >= ends.end {
                return Err(ReadError::OutOfRange { offset: from, start: ends.start, end: ends.end });
            }
        }
    }

    async fn read(&mut self, from: Offset, limit: Offset, bytes_max: usize) -> Result<Fetched, ReadError> {
        let Some(segment) = self.shared.segments.find(from) else {
            let ends = self.shared.watermark.ends();
            return Err(ReadError::OutOfRange { offset: from, start: ends.start, end: ends.end });
        };
        let file = self.file(&segment).await?;
        let floor = segment.floor(from);
        match read_batches(&*file, &segment, floor, from, limit, bytes_max).await {
            // The index may be wrong, it is a cache: look again from the segment's first byte.
            Err(ReadError::CorruptBatch { .. }) if floor > 0 => {
                read_batches(&*file, &segment, 0, from, limit, bytes_max).await
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

/// Finds the batch that holds `from` at or behind `position`, and collects whole batches from there.
async fn read_batches(
    file: &dyn File,
    segment: &Segment,
    position: u64,
    from: Offset,
    limit: Offset,
    bytes_max: usize,
) -> Result<Fetched, ReadError> {
    let file_len = file.len().await?;
    // `buf` holds the file's bytes from `buf_at` on; batches before `begin` are passed over.
    let (mut buf, mut buf_at) = (BytesMut::new(), position);
    let mut at = 0usize;
    let mut begin: Option<(usize, Offset)> = None;
    let mut next = from;
    loop {
        let corrupt = |cause| ReadError::CorruptBatch {
            path: segment.path.clone(),
            position: buf_at + at as u64,
            offset: next,
            cause,
        };
        let header = match BatchHeader::parse(&buf[at..]) {
            Ok(header) => Some(header),
            Err(DecodeError::Truncated) => None,
            Err(cause) => return Err(corrupt(cause)),
        };
        let size = header.map_or(HEADER_BYTES, |header| header.size());
        if buf.len() - at < size {
            let end = buf_at + at as u64 + size as u64;
            if end > file_len {
                // Everything below the limit was written, so this is where the segment ends.
                if begin.is_some() && header.is_none() {
                    break;
                }
                return Err(corrupt(DecodeError::Truncated));
            }
            if begin.is_none() && at > 0 {
                let _ = buf.split_to(at);
                buf_at += at as u64;
                at = 0;
            }
            let have = buf_at + buf.len() as u64;
            let want = (end - have).max(CHUNK_BYTES as u64).min(file_len - have);
            let before = buf.len();
            buf = file.read_at(have, usize::try_from(want).unwrap_or(usize::MAX), buf).await?;
            if buf.len() == before {
                return Err(ReadError::CorruptBatch {
                    path: segment.path.clone(),
                    position: have,
                    offset: next,
                    cause: DecodeError::Truncated,
                });
            }
            continue;
        }
        let Some(header) = header else { continue };
        let (base, batch_next) = (Offset(header.base_offset), Offset(header.next_offset()));
        if begin.is_none() && batch_next <= from {
            at += size;
            continue;
        }
        match begin {
            None if base > from => return Err(corrupt(DecodeError::BadOffset)),
            None => {}
            Some(_) if base != next => return Err(corrupt(DecodeError::BadOffset)),
            Some((start, _)) if at + size - start > bytes_max => break,
            Some(_) => {}
        }
        if batch_next > limit {
            break;
        }
        Batch::check(&buf[at..at + size]).map_err(corrupt)?;
        begin.get_or_insert((at, base));
        at += size;
        next = batch_next;
        if next >= limit {
            break;
        }
    }
    let Some((start, base)) = begin else {
        return Ok(Fetched { start: from, next: from, bytes: bytes::Bytes::new() });
    };
    Ok(Fetched { start: base, next, bytes: buf.freeze().slice(start..at) })
}
