//! Where the pass over the log begins: at its start, or at the last durable batch, if the side file's hints
//! hold against what is there. Hints only save work: whatever disagrees with them overrules them.

use crate::config::LogConfig;
use crate::log::open_error::OpenError;
use crate::log::open_report;
use crate::recover::found::FoundSegment;
use crate::recover::index_files::IndexFiles;
use crate::recover::scan::Gathered;
use crate::recover::survey::KnownSegment;
use crate::segment::Indexer;
use crate::state::{LastBatch, State};
use crate::types::{Epoch, Offset};
use bytes::BytesMut;
use kraftlog_codecs::batch::{Batch, BatchHeader, HEADER_BYTES};
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::index::OffsetEntry;
use kraftlog_io::{Disk, File, IoError, OpenHow};
use std::path::Path;

/// Where the pass begins, and what is known of the log before.
pub(crate) struct Begin {
    pub(crate) segment: usize,
    pub(crate) position: u64,
    pub(crate) gathered: Gathered,
    /// Segments before, taken over from the side file.
    pub(crate) before: Vec<KnownSegment>,
    pub(crate) index: Vec<OffsetEntry>,
    pub(crate) indexer: Indexer,
    pub(crate) first_timestamp: Option<i64>,
    pub(crate) scanned: open_report::Scanned,
}

fn empty(end: Offset) -> Gathered {
    Gathered {
        end,
        last_epoch: Epoch::ZERO,
        epochs: Vec::new(),
        control: Vec::new(),
        last: None,
        newer: None,
        migration: None,
        evidence_differs: None,
    }
}

/// A pass over everything.
pub(crate) fn from_scratch(segments: &[FoundSegment]) -> Begin {
    let base = segments.first().map_or(Offset::ZERO, |segment| segment.base);
    Begin {
        segment: 0,
        position: 0,
        gathered: empty(base),
        before: Vec::new(),
        index: Vec::new(),
        indexer: Indexer::new(base),
        first_timestamp: None,
        scanned: open_report::Scanned::All,
    }
}

/// A pass that begins with the last durable batch, if the side file's hints hold; `None` if anything
/// disagrees.
pub(crate) async fn resume(
    disk: &dyn Disk,
    part_dir: &Path,
    config: &LogConfig,
    state: &State,
    segments: &[FoundSegment],
) -> Result<Option<Begin>, OpenError> {
    let Some(last) = state.last else { return Ok(None) };
    let level = MetadataVersion::LATEST_TESTING.0;
    if (config.check_records && state.checked_level != level)
        || !state.epochs_ascend()
        || segments.len() < state.segments.len()
        || state.intent.is_some()
    {
        return Ok(None);
    }
    let newest = state.segments.len().wrapping_sub(1);
    for (at, (recorded, found)) in state.segments.iter().zip(segments).enumerate() {
        let grown = at == newest && !state.clean && found.len >= recorded.bytes;
        if recorded.base != found.base || (recorded.bytes != found.len && !grown) {
            return Ok(None);
        }
    }
    let Some(number) = segments.iter().position(|segment| segment.base == last.segment) else {
        return Ok(None);
    };
    if number > newest || (state.clean && segments.len() != state.segments.len()) {
        return Ok(None);
    }
    let segment = &segments[number];
    if !is_last_batch(disk, segment, last, state.durable_end).await? {
        return Ok(None);
    }
    let mut gathered = empty(last.base);
    gathered.last_epoch = last.epoch;
    gathered.epochs.clone_from(&state.epochs);
    // The batch is seen again, and with it an epoch that begins there.
    gathered.epochs.retain(|entry| entry.start_offset < last.base.0);
    for offset in state.control.iter().filter(|offset| **offset < last.base) {
        let Some(batch) = control_batch(disk, part_dir, segments, *offset).await? else { return Ok(None) };
        gathered.control.push((*offset, batch));
    }
    let mut before = Vec::new();
    for (at, segment) in segments[..number].iter().enumerate() {
        let files = IndexFiles::read(disk, part_dir, segment.base).await?;
        let (Some(index), Some(times)) = (files.offsets, files.times) else { return Ok(None) };
        let last_relative = segments[at + 1].base.0 - segment.base.0 - 1;
        if !index_fits(&index, segment.len, last_relative) {
            return Ok(None);
        }
        before.push(KnownSegment {
            base: segment.base,
            path: segment.path.clone(),
            file_len: segment.len,
            valid: segment.len,
            index_written: index.len(),
            time_written: times.len(),
            index,
            indexer: Indexer::resume(segment.base, times.len(), times.last().copied()),
            first_timestamp: None,
            index_fault: None,
            time_fault: None,
        });
    }
    let files = IndexFiles::read(disk, part_dir, segment.base).await?;
    let (Some(mut index), Some(mut times)) = (files.offsets, files.times) else { return Ok(None) };
    let last_relative = last.base.0 - segment.base.0;
    index.retain(|entry| i64::from(entry.position).cast_unsigned() < last.position);
    if !index_fits(&index, last.position, last_relative - 1) {
        return Ok(None);
    }
    times.retain(|entry| i64::from(entry.relative_offset) < last_relative);
    let mut indexer = Indexer::resume(segment.base, 0, None);
    indexer.take_over(&times);
    let first_timestamp = first_timestamp(disk, segment).await?;
    let scanned = open_report::Scanned::Tail;
    let position = last.position;
    Ok(Some(Begin { segment: number, position, gathered, before, index, indexer, first_timestamp, scanned }))
}

/// No entry of a checked index lies beyond a segment, and the tail that it leaves open is short.
fn index_fits(index: &[OffsetEntry], log_bytes: u64, last_relative: i64) -> bool {
    let (position, relative) =
        index.last().map_or((0, -1), |last| (i64::from(last.position), i64::from(last.relative_offset)));
    // The largest batches that Kafka writes may stand without an entry between them.
    let open_max = 3 * kraftlog_codecs::batch::BATCH_BYTES_MAX as u64;
    position.cast_unsigned() <= log_bytes
        && relative <= last_relative
        && log_bytes - position.cast_unsigned() <= open_max
}

/// True if the recorded last batch is where it should be, whole, and ends at the durable end.
async fn is_last_batch(
    disk: &dyn Disk,
    segment: &FoundSegment,
    last: LastBatch,
    durable_end: Offset,
) -> Result<bool, IoError> {
    let file = disk.open(&segment.path, OpenHow::Read).await?;
    let Some(bytes) = read_batch(&*file, segment.len, last.position).await? else { return Ok(false) };
    let Ok(batch) = Batch::check(&bytes) else { return Ok(false) };
    let header = batch.header();
    Ok(header.base_offset == last.base.0
        && header.leader_epoch == last.epoch.0
        && header.crc == last.crc
        && header.next_offset() == durable_end.0)
}

/// The bytes of the batch at a position, as its header claims them, if they are there.
async fn read_batch(file: &dyn File, len: u64, position: u64) -> Result<Option<Vec<u8>>, IoError> {
    if position.checked_add(HEADER_BYTES as u64).is_none_or(|end| end > len) {
        return Ok(None);
    }
    let head = file.read_at(position, HEADER_BYTES, BytesMut::new()).await?;
    let Ok(header) = BatchHeader::parse(&head) else { return Ok(None) };
    if position + header.size() as u64 > len {
        return Ok(None);
    }
    Ok(Some(file.read_at(position, header.size(), BytesMut::new()).await?.into()))
}

/// The control batch with this base offset, found by the index.
async fn control_batch(
    disk: &dyn Disk,
    part_dir: &Path,
    segments: &[FoundSegment],
    offset: Offset,
) -> Result<Option<bytes::Bytes>, IoError> {
    let above = segments.partition_point(|segment| segment.base <= offset);
    let Some(segment) = above.checked_sub(1).map(|at| &segments[at]) else { return Ok(None) };
    let files = IndexFiles::read(disk, part_dir, segment.base).await?;
    let index = files.offsets.unwrap_or_default();
    let relative = offset.0 - segment.base.0;
    let floor = index.partition_point(|entry| i64::from(entry.relative_offset) <= relative);
    let mut position = floor.checked_sub(1).map_or(0, |at| i64::from(index[at].position).cast_unsigned());
    let file = disk.open(&segment.path, OpenHow::Read).await?;
    loop {
        let Some(bytes) = read_batch(&*file, segment.len, position).await? else { return Ok(None) };
        let Ok(batch) = Batch::check(&bytes) else { return Ok(None) };
        let base = batch.header().base_offset;
        if base >= offset.0 {
            return Ok((base == offset.0).then(|| bytes::Bytes::from(bytes)));
        }
        position += bytes.len() as u64;
    }
}

async fn first_timestamp(disk: &dyn Disk, segment: &FoundSegment) -> Result<Option<i64>, IoError> {
    let file = disk.open(&segment.path, OpenHow::Read).await?;
    let head = file.read_at(0, HEADER_BYTES, BytesMut::new()).await?;
    Ok(BatchHeader::parse(&head).ok().map(|header| header.max_timestamp))
}
