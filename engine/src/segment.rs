//! The segments of a log with their indexes, as lanes and readers share them; and the rule by which
//! index entries are made.
//!
//! Index files are caches: written behind the data, never synced, rebuilt by open. In memory an offset
//! index costs 8 bytes for each 4 KiB of log.
//!
//! Invariants: segments ascend by base offset, the last one is the active one; entries of an index
//! ascend strictly in offset and position, and each points at the first byte of a batch.

use crate::sync::{AtomicU64, Ordering, RwLock};
use crate::types::Offset;
use kraftlog_codecs::batch::BatchHeader;
use kraftlog_codecs::index::{
    INDEX_BYTES_MAX, INTERVAL, OFFSET_ENTRY_BYTES, OffsetEntry, TIME_ENTRY_BYTES, TIME_INDEX_BYTES_MAX,
    TimeEntry,
};
use kraftlog_codecs::names;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most entries of an offset index: `segment.index.bytes` of 10 MiB.
pub(crate) const INDEX_ENTRIES_MAX: usize = INDEX_BYTES_MAX / OFFSET_ENTRY_BYTES;
/// Most entries of a time index; Kafka keeps one slot free for the roll.
pub(crate) const TIME_ENTRIES_MAX: usize = TIME_INDEX_BYTES_MAX / TIME_ENTRY_BYTES - 1;

/// One segment, as readers see it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) base: Offset,
    pub(crate) path: PathBuf,
    index: RwLock<Vec<OffsetEntry>>,
}

/// A place in a segment where a batch begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    pub(crate) position: u64,
    /// The batch ends at or below this offset, and no later one reaches over it. An entry names the last
    /// offset of its batch; one that an older Kafka made may name that of a later batch of the same append.
    pub(crate) border: Offset,
}

/// A segment among the others.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) segment: Arc<Segment>,
    /// Where the next one begins; `None` for the active one.
    pub(crate) end: Option<Offset>,
}

impl Segment {
    pub(crate) fn new(part_dir: &Path, base: Offset, index: Vec<OffsetEntry>) -> Segment {
        Segment { base, path: part_dir.join(names::segment_name(base.0)), index: RwLock::new(index) }
    }

    /// Where to begin to look for the batch that holds `offset`: at the largest entry at or below it, or
    /// at the segment's first byte.
    pub(crate) fn floor(&self, offset: Offset) -> Floor {
        let index = self.index.read();
        let relative = offset.0 - self.base.0;
        let above = index.partition_point(|entry| i64::from(entry.relative_offset) <= relative);
        let Some(entry) = above.checked_sub(1).map(|at| index[at]) else { return self.front() };
        // Negative positions do not pass the check of an index.
        let position = u64::try_from(entry.position).unwrap_or(0);
        Floor { position, border: Offset(self.base.0.saturating_add(i64::from(entry.relative_offset) + 1)) }
    }

    /// The segment's first byte.
    pub(crate) fn front(&self) -> Floor {
        Floor { position: 0, border: self.base }
    }

    pub(crate) fn add_index_entry(&self, entry: OffsetEntry) {
        self.index.write().push(entry);
    }

    pub(crate) fn index_len(&self) -> usize {
        self.index.read().len()
    }

    /// The bytes of the index file from entry `from` on.
    pub(crate) fn index_bytes(&self, from: usize) -> Vec<u8> {
        encode_index(&self.index.read()[from..])
    }
}

/// The bytes of an offset index.
pub(crate) fn encode_index(entries: &[OffsetEntry]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.encode()).collect()
}

/// The bytes of a time index.
pub(crate) fn encode_time_index(entries: &[TimeEntry]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.encode()).collect()
}

/// All segments of a log, oldest first.
#[derive(Debug)]
pub(crate) struct Segments {
    list: RwLock<Vec<Arc<Segment>>>,
    /// Changes whenever bytes that readers could see are taken away: a read that began before and
    /// ended after must be done again (behaviour.md W-11).
    generation: AtomicU64,
}

impl Segments {
    pub(crate) fn new(list: Vec<Arc<Segment>>) -> Segments {
        assert!(!list.is_empty(), "a log has at least its active segment");
        Segments { list: RwLock::new(list), generation: AtomicU64::new(0) }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    #[expect(dead_code, reason = "for truncation, the one change that takes bytes away; it is not built yet")]
    pub(crate) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// The segment that holds `offset`, or would if the log went on.
    pub(crate) fn find(&self, offset: Offset) -> Option<Placed> {
        let list = self.list.read();
        let above = list.partition_point(|segment| segment.base <= offset);
        let segment = Arc::clone(&list[above.checked_sub(1)?]);
        Some(Placed { segment, end: list.get(above).map(|next| next.base) })
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.list.read().clone()
    }

    /// A new active segment behind all others.
    pub(crate) fn push(&self, segment: Arc<Segment>) {
        self.list.write().push(segment);
    }
}

/// Makes index entries by Kafka's rule, for appends and for rebuilding alike (behaviour.md B-97,
/// `LogSegment.append`): before a batch, when more than 4096 bytes came since the last entry.
#[derive(Debug, Clone)]
pub(crate) struct Indexer {
    base: Offset,
    bytes_since_entry: u64,
    /// Largest timestamp so far and the last offset of its batch.
    max: Option<(i64, Offset)>,
    last_time: i64,
    /// Time entries not in the file yet.
    pub(crate) time: Vec<TimeEntry>,
    time_entries: usize,
}

impl Indexer {
    pub(crate) fn new(base: Offset) -> Indexer {
        Indexer { base, bytes_since_entry: 0, max: None, last_time: -1, time: Vec::new(), time_entries: 0 }
    }

    /// Goes on behind a time index of `entries` entries, the last of which is `last`.
    pub(crate) fn resume(base: Offset, entries: usize, last: Option<TimeEntry>) -> Indexer {
        let mut indexer = Indexer::new(base);
        indexer.time_entries = entries;
        if let Some(last) = last {
            indexer.last_time = last.timestamp;
            indexer.max =
                Some((last.timestamp, Offset(base.0.saturating_add(i64::from(last.relative_offset)))));
        }
        indexer
    }

    /// Takes over entries as if they were made here and not written yet.
    pub(crate) fn take_over(&mut self, entries: &[TimeEntry]) {
        self.time.extend_from_slice(entries);
        self.time_entries += entries.len();
        if let Some(last) = entries.last() {
            self.last_time = last.timestamp;
            self.max =
                Some((last.timestamp, Offset(self.base.0.saturating_add(i64::from(last.relative_offset)))));
        }
    }

    /// A batch lies at `position`; the entry that it gets in the offset index, if any.
    pub(crate) fn add(&mut self, header: &BatchHeader, position: u64) -> Option<OffsetEntry> {
        let last_offset = Offset(header.last_offset());
        if self.max.is_none_or(|(max, _)| header.max_timestamp > max) {
            self.max = Some((header.max_timestamp, last_offset));
        }
        let mut entry = None;
        if self.bytes_since_entry > INTERVAL as u64
            && let (Some(relative_offset), Ok(position)) =
                (self.relative(last_offset), i32::try_from(position))
        {
            entry = Some(OffsetEntry { relative_offset, position });
            self.add_time();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size() as u64;
        entry
    }

    /// One more time entry, as at a roll and at the end of recovery.
    pub(crate) fn add_time(&mut self) {
        let Some((timestamp, offset)) = self.max else { return };
        if timestamp <= self.last_time || self.time_entries > TIME_ENTRIES_MAX {
            return;
        }
        if let Some(relative_offset) = self.relative(offset) {
            self.time.push(TimeEntry { timestamp, relative_offset });
            self.last_time = timestamp;
            self.time_entries += 1;
        }
    }

    /// Number of time entries made so far, those in the file included.
    pub(crate) fn time_entries(&self) -> usize {
        self.time_entries
    }

    fn relative(&self, offset: Offset) -> Option<i32> {
        i32::try_from(offset.0 - self.base.0).ok()
    }
}
