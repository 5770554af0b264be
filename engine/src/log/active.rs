//! The one segment that still grows.
//!
//! Invariants:
//! - bytes `[0, written)` are whole batches, `[written, reserved)` is zero or not there;
//! - `durable <= written <= reserved`; readers know `written` by the log end offset alone.
//!
//! After a crash the bytes past `durable` may be anything; `recover` keeps whole batches and cuts the
//! rest. When to roll is decided here, the roll's order of syncs is in `log/roll.rs`.

use crate::config::{LogConfig, Preallocation};
use crate::segment::{INDEX_ENTRIES_MAX, Indexer, Segment, TIME_ENTRIES_MAX};
use crate::state::{LastBatch, SegmentLen};
use crate::types::{Epoch, Offset};
use bytes::Bytes;
use kraftlog_codecs::batch::BatchHeader;
use kraftlog_codecs::names;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Allocate, Disk, File, IoError, IoErrorKind, OpenHow};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Index entries that may wait to be written to the index file.
const INDEX_ENTRIES_WAITING_MAX: usize = 512;
const FILE_MODE: u32 = 0o644;

/// The active segment, owned by the log lane.
pub(crate) struct ActiveSegment {
    pub(crate) segment: Arc<Segment>,
    pub(crate) file: Rc<dyn File>,
    pub(crate) written: u64,
    pub(crate) reserved: u64,
    pub(crate) durable: u64,
    pub(crate) indexer: Indexer,
    pub(crate) last: Option<LastBatch>,
    /// Timestamp of the segment's first batch, which `segment_ms` counts from.
    first_timestamp: Option<i64>,
    index_file: Rc<dyn File>,
    time_index_file: Rc<dyn File>,
    index_entries_written: usize,
    time_bytes_written: u64,
    /// The disk cannot reserve space: not tried again.
    no_preallocation: bool,
}

/// What recovery found out about the segment that is to be active.
pub(crate) struct FoundActive {
    pub(crate) segment: Arc<Segment>,
    pub(crate) written: u64,
    pub(crate) indexer: Indexer,
    pub(crate) index_entries_written: usize,
    pub(crate) time_entries_written: usize,
    pub(crate) first_timestamp: Option<i64>,
    pub(crate) last: Option<LastBatch>,
}

impl ActiveSegment {
    /// Opens the segment that recovery chose; its index files are there or are made.
    pub(crate) async fn open(
        disk: &dyn Disk,
        part_dir: &Path,
        found: FoundActive,
    ) -> Result<ActiveSegment, IoError> {
        let base = found.segment.base.0;
        let file = disk.open(&found.segment.path, OpenHow::Write).await?;
        let index_file = open_or_create(disk, &part_dir.join(names::offset_index_name(base))).await?;
        let time_index_file = open_or_create(disk, &part_dir.join(names::time_index_name(base))).await?;
        Ok(ActiveSegment {
            segment: found.segment,
            file,
            written: found.written,
            reserved: found.written,
            durable: found.written,
            indexer: found.indexer,
            last: found.last,
            first_timestamp: found.first_timestamp,
            index_file,
            time_index_file,
            index_entries_written: found.index_entries_written,
            time_bytes_written: found.time_entries_written as u64 * 12,
            no_preallocation: false,
        })
    }

    /// Makes the files of an empty segment. Their names are durable after a sync of the directory.
    pub(crate) async fn create(
        disk: &dyn Disk,
        part_dir: &Path,
        base: Offset,
    ) -> Result<ActiveSegment, IoError> {
        let segment = Arc::new(Segment::new(part_dir, base, Vec::new()));
        // What has the name of a segment that begins at the log's end holds nothing of the log: it is
        // what an earlier roll left that found no space.
        let how = OpenHow::CreateOrTruncate { mode: FILE_MODE };
        let file = disk.open(&segment.path, how).await?;
        let index_file = disk.open(&part_dir.join(names::offset_index_name(base.0)), how).await?;
        let time_index_file = disk.open(&part_dir.join(names::time_index_name(base.0)), how).await?;
        Ok(ActiveSegment {
            segment,
            file,
            written: 0,
            reserved: 0,
            durable: 0,
            indexer: Indexer::new(base),
            last: None,
            first_timestamp: None,
            index_file,
            time_index_file,
            index_entries_written: 0,
            time_bytes_written: 0,
            no_preallocation: false,
        })
    }

    pub(crate) fn base(&self) -> Offset {
        self.segment.base
    }

    pub(crate) fn len(&self) -> SegmentLen {
        SegmentLen { base: self.base(), bytes: self.written }
    }

    /// Whether these batches belong into a new segment (behaviour.md B-96), when `waiting` bytes are
    /// about to be written before them.
    pub(crate) fn must_roll(&self, batches: &[u8], waiting: u64, config: &LogConfig) -> bool {
        let size = self.written + waiting;
        if size == 0 {
            return false;
        }
        let Ok(first) = BatchHeader::parse(batches) else { return false };
        let last_offset = last_header(batches).map_or(first.last_offset(), |last| last.last_offset());
        size + batches.len() as u64 > config.segment_bytes_max
            || self
                .first_timestamp
                .is_some_and(|begun| first.max_timestamp.saturating_sub(begun) > config.segment_ms)
            || self.segment.index_len() >= INDEX_ENTRIES_MAX
            || self.indexer.time_entries() >= TIME_ENTRIES_MAX
            || last_offset - self.base().0 > i64::from(i32::MAX)
    }

    /// Reserves space for `bytes` more, if so configured. A disk that cannot, or has no room for the
    /// reserve, leaves the write to find its own place.
    pub(crate) async fn reserve(&mut self, bytes: u64, how: Preallocation) -> Result<(), IoError> {
        let (allocate, step) = match how {
            Preallocation::Extend(step) => (Allocate::Extend, step),
            Preallocation::KeepSize(step) => (Allocate::KeepSize, step),
            Preallocation::None => return Ok(()),
        };
        let needed = self.written + bytes;
        if self.no_preallocation || step == 0 || needed <= self.reserved {
            return Ok(());
        }
        let target = needed.div_ceil(step) * step;
        let from = self.reserved.max(self.written);
        match self.file.allocate(allocate, from, target - from).await {
            Ok(()) => self.reserved = target,
            Err(error) if error.kind() == IoErrorKind::NoSpace => {
                // A part of the reserve may have been taken; it must not lengthen the file.
                self.file.set_len(self.reserved.max(self.written)).await?;
            }
            Err(error) => {
                tracing::debug!(%error, "no space is reserved in advance");
                self.no_preallocation = true;
            }
        }
        Ok(())
    }

    /// Takes over a batch that was written at the end: its index entries and place.
    pub(crate) fn took(&mut self, header: &BatchHeader) {
        if let Some(entry) = self.indexer.add(header, self.written) {
            self.segment.add_index_entry(entry);
        }
        self.first_timestamp.get_or_insert(header.max_timestamp);
        self.last = Some(LastBatch {
            segment: self.base(),
            position: self.written,
            base: Offset(header.base_offset),
            epoch: Epoch(header.leader_epoch),
            crc: header.crc,
        });
        self.written += header.size() as u64;
        self.reserved = self.reserved.max(self.written);
    }

    /// Cuts off what a failed write may have left behind the data, and the reserve. On return that is
    /// durable: what was refused must not come back with the next crash.
    pub(crate) async fn cut_back(&mut self) -> Result<(), IoError> {
        self.file.set_len(self.written).await?;
        self.reserved = self.written;
        if planted::is(Plant::CutBackWithoutSync) {
            return Ok(());
        }
        self.file.sync_all().await
    }

    /// Cuts the reserve off and makes everything durable.
    pub(crate) async fn trim_and_sync(&mut self) -> Result<(), IoError> {
        if self.reserved > self.written {
            self.file.set_len(self.written).await?;
            self.reserved = self.written;
            self.file.sync_all().await?;
        }
        Ok(())
    }

    /// Writes index entries to the files if many wait, or `all` of them.
    pub(crate) async fn write_indexes(&mut self, all: bool) -> Result<(), IoError> {
        let entries = self.segment.index_len();
        let waiting = entries - self.index_entries_written;
        if !all && waiting < INDEX_ENTRIES_WAITING_MAX {
            return Ok(());
        }
        if waiting > 0 {
            let bytes = Bytes::from(self.segment.index_bytes(self.index_entries_written));
            self.index_file.write_at(self.index_entries_written as u64 * 8, vec![bytes]).await?;
            self.index_entries_written = entries;
        }
        if !self.indexer.time.is_empty() {
            let bytes = Bytes::from(crate::segment::encode_time_index(&self.indexer.time));
            let len = bytes.len() as u64;
            self.time_index_file.write_at(self.time_bytes_written, vec![bytes]).await?;
            self.time_bytes_written += len;
            self.indexer.time.clear();
        }
        Ok(())
    }
}

async fn open_or_create(disk: &dyn Disk, path: &Path) -> Result<Rc<dyn File>, IoError> {
    match disk.open(path, OpenHow::Write).await {
        Err(error) if error.kind() == IoErrorKind::NotFound => {
            disk.open(path, OpenHow::CreateNew { mode: FILE_MODE }).await
        }
        opened => opened,
    }
}

/// The header of the last of some whole batches back to back.
fn last_header(batches: &[u8]) -> Option<BatchHeader> {
    let mut rest = batches;
    let mut last = None;
    while let Ok(header) = BatchHeader::parse(rest) {
        rest = rest.get(header.size()..)?;
        last = Some(header);
    }
    last
}
