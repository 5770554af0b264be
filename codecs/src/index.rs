//! Offset and time index of a segment: their entries, their order, and looking up in them.
//!
//! Both are derived from the log and may be anything after a crash; whoever finds one wrong rebuilds
//! it. An index that is in use has its full size with a zero tail, from 4.4 on after an orderly stop
//! too, so the number of entries never follows from the size. In a file of any other size zero
//! entries are damage.
//!
//! This module reads and writes bytes. When an entry is due and where the files live is the log's.

use crate::cursor::Reader;

/// Size of one offset index entry.
pub const OFFSET_ENTRY_BYTES: usize = 8;
/// Size of one time index entry.
pub const TIME_ENTRY_BYTES: usize = 12;
/// Size of an offset index in use: `segment.index.bytes`, a multiple of 8.
pub const INDEX_BYTES_MAX: usize = 10_485_760;
/// Size of a time index in use: the largest multiple of 12 within `segment.index.bytes`.
pub const TIME_INDEX_BYTES_MAX: usize = 10_485_756;
/// An entry is added before a batch when more bytes than this were appended since the last one.
pub const INTERVAL: usize = 4096;

const _: () = assert!(INDEX_BYTES_MAX.is_multiple_of(OFFSET_ENTRY_BYTES));
const _: () = assert!(TIME_INDEX_BYTES_MAX == INDEX_BYTES_MAX / TIME_ENTRY_BYTES * TIME_ENTRY_BYTES);

/// Where a batch lies in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEntry {
    /// Last offset of the batch, from the segment's base offset on.
    pub relative_offset: i32,
    /// Position of the batch in the segment. Never 0: the first entry comes after [`INTERVAL`] bytes.
    pub position: i32,
}

/// The largest timestamp up to an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeEntry {
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// Last offset of the batch that has it, from the segment's base offset on.
    pub relative_offset: i32,
}

/// Why an index must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The size is no multiple of the size of an entry.
    #[error("size {bytes} is no multiple of {entry_bytes}")]
    Size {
        /// Size of the file.
        bytes: usize,
        /// Size of an entry.
        entry_bytes: usize,
    },
    /// Larger than any index.
    #[error("size {bytes} is above the largest, {bytes_max}")]
    TooLarge {
        /// Size of the file.
        bytes: usize,
        /// Size of an index in use.
        bytes_max: usize,
    },
    /// Zero entries in a file that does not have the size of an index in use.
    #[error("entry {entry} is zero although the file is trimmed")]
    ZeroEntry {
        /// Number of the entry, from 0.
        entry: usize,
    },
    /// An entry points before the segment or its first possible batch.
    #[error("entry {entry} has a value below its smallest")]
    BelowRange {
        /// Number of the entry, from 0.
        entry: usize,
    },
    /// An entry does not lie above the one before it.
    #[error("entry {entry} does not ascend")]
    NotAscending {
        /// Number of the entry, from 0.
        entry: usize,
    },
    /// An entry points behind the end of the segment.
    #[error("entry {entry} points behind the end of the segment")]
    BeyondLog {
        /// Number of the entry, from 0.
        entry: usize,
    },
}

impl OffsetEntry {
    /// Its bytes in the file.
    pub fn encode(self) -> [u8; OFFSET_ENTRY_BYTES] {
        let word =
            u64::from(self.relative_offset.cast_unsigned()) << 32 | u64::from(self.position.cast_unsigned());
        word.to_be_bytes()
    }
}

impl TimeEntry {
    /// Its bytes in the file.
    pub fn encode(self) -> [u8; TIME_ENTRY_BYTES] {
        let mut bytes = [0; TIME_ENTRY_BYTES];
        if let Some((timestamp, offset)) = bytes.split_first_chunk_mut::<8>() {
            *timestamp = self.timestamp.to_be_bytes();
            offset.copy_from_slice(&self.relative_offset.to_be_bytes());
        }
        bytes
    }
}

/// A checked offset index, over the bytes of its file.
#[derive(Debug, Clone, Copy)]
pub struct OffsetIndex<'a> {
    entries: &'a [[u8; OFFSET_ENTRY_BYTES]],
}

impl<'a> OffsetIndex<'a> {
    /// Finds the entries and checks them against each other, in one pass.
    ///
    /// # Errors
    /// [`IndexError`]: rebuild it.
    pub fn check(file: &'a [u8]) -> Result<OffsetIndex<'a>, IndexError> {
        let entries = used_entries(file, INDEX_BYTES_MAX)?;
        let mut before = OffsetEntry { relative_offset: -1, position: 0 };
        for (entry, bytes) in entries.iter().enumerate() {
            let now = decode_offset_entry(bytes);
            if now.relative_offset < 0 || now.position <= 0 {
                return Err(IndexError::BelowRange { entry });
            }
            if now.relative_offset <= before.relative_offset || now.position <= before.position {
                return Err(IndexError::NotAscending { entry });
            }
            before = now;
        }
        Ok(OffsetIndex { entries })
    }

    /// Checks that no entry points behind a segment of `log_bytes` whose last offset is
    /// `last_relative_offset` from its base.
    ///
    /// # Errors
    /// [`IndexError::BeyondLog`]: the index is newer than a cut log, rebuild it.
    pub fn check_within(&self, log_bytes: u64, last_relative_offset: i64) -> Result<(), IndexError> {
        // Entries ascend, so the last one decides; the first that is beyond is named.
        let is_within = |bytes: &[u8; OFFSET_ENTRY_BYTES]| {
            let entry = decode_offset_entry(bytes);
            u64::try_from(entry.position).is_ok_and(|position| position < log_bytes)
                && i64::from(entry.relative_offset) <= last_relative_offset
        };
        let entry = self.entries.partition_point(is_within);
        if entry < self.entries.len() { Err(IndexError::BeyondLog { entry }) } else { Ok(()) }
    }

    /// The entries, ascending.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = OffsetEntry> + use<'a> {
        self.entries.iter().map(decode_offset_entry)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The largest entry at or below `relative_offset`: a scan for that offset starts at its position.
    /// `None`: the scan starts at position 0.
    pub fn lookup(&self, relative_offset: i64) -> Option<OffsetEntry> {
        let above = self.entries.partition_point(|bytes| {
            i64::from(decode_offset_entry(bytes).relative_offset) <= relative_offset
        });
        above.checked_sub(1).and_then(|at| self.entries.get(at)).map(decode_offset_entry)
    }
}

/// A checked time index, over the bytes of its file.
#[derive(Debug, Clone, Copy)]
pub struct TimeIndex<'a> {
    entries: &'a [[u8; TIME_ENTRY_BYTES]],
}

impl<'a> TimeIndex<'a> {
    /// Finds the entries and checks them against each other, in one pass.
    ///
    /// # Errors
    /// [`IndexError`]: rebuild it.
    pub fn check(file: &'a [u8]) -> Result<TimeIndex<'a>, IndexError> {
        let entries = used_entries(file, TIME_INDEX_BYTES_MAX)?;
        let mut before: Option<TimeEntry> = None;
        for (entry, bytes) in entries.iter().enumerate() {
            let now = decode_time_entry(bytes);
            if now.relative_offset < 0 || now.timestamp < 0 {
                return Err(IndexError::BelowRange { entry });
            }
            if before.is_some_and(|before| {
                now.timestamp <= before.timestamp || now.relative_offset < before.relative_offset
            }) {
                return Err(IndexError::NotAscending { entry });
            }
            before = Some(now);
        }
        Ok(TimeIndex { entries })
    }

    /// Checks that no entry points behind a segment whose last offset is `last_relative_offset` from
    /// its base.
    ///
    /// # Errors
    /// [`IndexError::BeyondLog`]: the index is newer than a cut log, rebuild it.
    pub fn check_within(&self, last_relative_offset: i64) -> Result<(), IndexError> {
        let is_within = |bytes: &[u8; TIME_ENTRY_BYTES]| {
            i64::from(decode_time_entry(bytes).relative_offset) <= last_relative_offset
        };
        let entry = self.entries.partition_point(is_within);
        if entry < self.entries.len() { Err(IndexError::BeyondLog { entry }) } else { Ok(()) }
    }

    /// The entries, ascending.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = TimeEntry> + use<'a> {
        self.entries.iter().map(decode_time_entry)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without any entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The largest entry at or below `timestamp`: no batch up to its offset is later than that.
    pub fn lookup(&self, timestamp: i64) -> Option<TimeEntry> {
        let above = self.entries.partition_point(|bytes| decode_time_entry(bytes).timestamp <= timestamp);
        above.checked_sub(1).and_then(|at| self.entries.get(at)).map(decode_time_entry)
    }
}

/// The entries before the zero tail, which only a file of `bytes_max` may have.
fn used_entries<const N: usize>(file: &[u8], bytes_max: usize) -> Result<&[[u8; N]], IndexError> {
    let (entries, rest) = file.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(IndexError::Size { bytes: file.len(), entry_bytes: N });
    }
    if file.len() > bytes_max {
        return Err(IndexError::TooLarge { bytes: file.len(), bytes_max });
    }
    let used = entries.iter().rposition(|entry| *entry != [0; N]).map_or(0, |last| last + 1);
    if used < entries.len() && file.len() != bytes_max {
        return Err(IndexError::ZeroEntry { entry: used });
    }
    Ok(entries.get(..used).unwrap_or_default())
}

fn decode_offset_entry(bytes: &[u8; OFFSET_ENTRY_BYTES]) -> OffsetEntry {
    let mut reader = Reader::new(bytes);
    // Eight bytes hold both numbers.
    let (offset, position) = (reader.i32(), reader.i32());
    OffsetEntry { relative_offset: offset.unwrap_or_default(), position: position.unwrap_or_default() }
}

fn decode_time_entry(bytes: &[u8; TIME_ENTRY_BYTES]) -> TimeEntry {
    let mut reader = Reader::new(bytes);
    // Twelve bytes hold both numbers.
    let (timestamp, offset) = (reader.i64(), reader.i32());
    TimeEntry { timestamp: timestamp.unwrap_or_default(), relative_offset: offset.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset_file(entries: &[(i32, i32)], full: bool) -> Vec<u8> {
        let mut file: Vec<u8> = entries
            .iter()
            .flat_map(|&(relative_offset, position)| OffsetEntry { relative_offset, position }.encode())
            .collect();
        if full {
            file.resize(INDEX_BYTES_MAX, 0);
        }
        file
    }

    fn time_file(entries: &[(i64, i32)], full: bool) -> Vec<u8> {
        let mut file: Vec<u8> = entries
            .iter()
            .flat_map(|&(timestamp, relative_offset)| TimeEntry { timestamp, relative_offset }.encode())
            .collect();
        if full {
            file.resize(TIME_INDEX_BYTES_MAX, 0);
        }
        file
    }

    #[test]
    fn entries_have_kafkas_bytes() {
        // Base 100, offset 105 at byte 4200: seen with Kafka's own classes.
        let entry = OffsetEntry { relative_offset: 5, position: 4200 };
        assert_eq!(entry.encode(), [0, 0, 0, 5, 0, 0, 0x10, 0x68]);
        let entry = TimeEntry { timestamp: 1_700_000_000_000, relative_offset: 5 };
        assert_eq!(entry.encode(), [0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 5]);
    }

    #[test]
    fn an_index_is_read_trimmed_and_at_full_size_alike() {
        let entries = [(0, 4100), (9, 8300), (i32::MAX, i32::MAX)];
        for full in [false, true] {
            let file = offset_file(&entries, full);
            let index = OffsetIndex::check(&file).unwrap();
            assert_eq!(
                index.entries().map(|entry| (entry.relative_offset, entry.position)).collect::<Vec<_>>(),
                entries
            );
            let position = |offset| index.lookup(offset).map_or(0, |entry| entry.position);
            assert_eq!([-1, 0, 8, 9, 10].map(position), [0, 4100, 4100, 8300, 8300]);
            assert_eq!(position(i64::MAX), i32::MAX);
            let times = [(0, 0), (5, 3), (6, 3), (i64::MAX, i32::MAX)];
            let file = time_file(&times, full);
            let index = TimeIndex::check(&file).unwrap();
            assert_eq!(
                index.entries().map(|entry| (entry.timestamp, entry.relative_offset)).collect::<Vec<_>>(),
                times
            );
            assert_eq!(index.lookup(5).map(|entry| entry.relative_offset), Some(3));
            assert_eq!(index.lookup(-1), None);
        }
        assert!(OffsetIndex::check(&[]).unwrap().is_empty());
        assert!(OffsetIndex::check(&offset_file(&[], true)).unwrap().is_empty());
        assert!(TimeIndex::check(&time_file(&[], true)).unwrap().is_empty());
    }

    #[test]
    fn damaged_and_stale_indexes_are_found() {
        let check = |file: &[u8]| OffsetIndex::check(file).map(|index| index.len());
        assert_eq!(check(&[0; 16]), Err(IndexError::ZeroEntry { entry: 0 }));
        assert_eq!(check(&[0; 13]), Err(IndexError::Size { bytes: 13, entry_bytes: 8 }));
        assert_eq!(
            check(&offset_file(&[(5, 4200), (3, 9000)], false)),
            Err(IndexError::NotAscending { entry: 1 })
        );
        assert_eq!(
            check(&offset_file(&[(5, 4200), (6, 4200)], true)),
            Err(IndexError::NotAscending { entry: 1 })
        );
        assert_eq!(
            check(&offset_file(&[(5, 4200), (0, 0), (6, 9000)], true)),
            Err(IndexError::BelowRange { entry: 1 })
        );
        assert_eq!(check(&offset_file(&[(-5, 4200)], false)), Err(IndexError::BelowRange { entry: 0 }));
        assert_eq!(check(&offset_file(&[(5, 0)], false)), Err(IndexError::BelowRange { entry: 0 }));
        assert_eq!(check(&offset_file(&[(5, 4200), (0, 0)], false)), Err(IndexError::ZeroEntry { entry: 1 }));
        assert!(matches!(check(&vec![0; INDEX_BYTES_MAX + 8]), Err(IndexError::TooLarge { .. })));
        let check = |file: &[u8]| TimeIndex::check(file).map(|index| index.len());
        assert_eq!(check(&[0; 12]), Err(IndexError::ZeroEntry { entry: 0 }));
        assert_eq!(check(&time_file(&[(7, 1), (7, 2)], false)), Err(IndexError::NotAscending { entry: 1 }));
        assert_eq!(check(&time_file(&[(7, 2), (8, 1)], false)), Err(IndexError::NotAscending { entry: 1 }));
        assert_eq!(check(&time_file(&[(-7, 2)], false)), Err(IndexError::BelowRange { entry: 0 }));
    }

    #[test]
    fn an_index_newer_than_a_cut_log_is_found() {
        let file = offset_file(&[(3, 4200), (5, 9999)], true);
        let index = OffsetIndex::check(&file).unwrap();
        assert_eq!(index.check_within(10_000, 5), Ok(()));
        assert_eq!(index.check_within(9_999, 5), Err(IndexError::BeyondLog { entry: 1 }));
        assert_eq!(index.check_within(10_000, 4), Err(IndexError::BeyondLog { entry: 1 }));
        assert_eq!(index.check_within(0, -1), Err(IndexError::BeyondLog { entry: 0 }));
        let file = time_file(&[(7, 2), (9, 4)], false);
        let index = TimeIndex::check(&file).unwrap();
        assert_eq!(index.check_within(4), Ok(()));
        assert_eq!(index.check_within(3), Err(IndexError::BeyondLog { entry: 1 }));
    }
}
