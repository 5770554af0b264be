//! Names of the files in a metadata partition directory: the grammar, both ways.
//!
//! Numbers are ASCII digits, zero padded to a fixed width, not negative, and fit their type: Java's
//! parser takes other scripts' digits too, but no Kafka writes them. A name with one of Kafka's
//! suffixes that breaks the grammar is [`Name::Malformed`]: a real Kafka refuses to start on most of
//! them. Everything else is [`Name::Foreign`] and none of our business.
//!
//! This module knows names only, not what the files hold or which of them may be removed.

use std::fmt;

/// Digits of an offset in a file name.
const OFFSET_DIGITS: usize = 20;
/// Digits of an epoch in a checkpoint's name.
const EPOCH_DIGITS: usize = 10;
/// Characters of `<offset>-<epoch>`.
const CHECKPOINT_STEM: usize = OFFSET_DIGITS + 1 + EPOCH_DIGITS;

/// `leader-epoch-checkpoint`, in the partition directory.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// `partition.metadata`, in the partition directory.
pub const PARTITION_METADATA: &str = "partition.metadata";
/// `quorum-state`, in the partition directory.
pub const QUORUM_STATE: &str = "quorum-state";
/// `meta.properties`, in every log directory.
pub const META_PROPERTIES: &str = "meta.properties";
/// `bootstrap.checkpoint`, in the log directory (releases 3.3 to 4.3).
pub const BOOTSTRAP_CHECKPOINT: &str = "bootstrap.checkpoint";
/// `.lock`, in every log directory.
pub const LOCK: &str = ".lock";
/// `.kafka_cleanshutdown`, in a broker's log directories.
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// The metadata partition's directory below the metadata log dir. Underscore, then a hyphen.
pub const METADATA_PARTITION_DIR: &str = "__cluster_metadata-0";
/// Suffix of a file that is written before it replaces the one without the suffix.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// The files that belong to one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SegmentFile {
    /// `.log`: record batches.
    Log,
    /// `.index`: offset index.
    OffsetIndex,
    /// `.timeindex`: time index.
    TimeIndex,
    /// `.txnindex`: aborted transactions; never in the metadata log.
    TxnIndex,
    /// `.snapshot`: producer state, not a KRaft checkpoint.
    ProducerSnapshot,
}

impl SegmentFile {
    const ALL: [SegmentFile; 5] = [
        SegmentFile::Log,
        SegmentFile::OffsetIndex,
        SegmentFile::TimeIndex,
        SegmentFile::TxnIndex,
        SegmentFile::ProducerSnapshot,
    ];

    /// The suffix, dot included.
    pub const fn suffix(self) -> &'static str {
        match self {
            SegmentFile::Log => ".log",
            SegmentFile::OffsetIndex => ".index",
            SegmentFile::TimeIndex => ".timeindex",
            SegmentFile::TxnIndex => ".txnindex",
            SegmentFile::ProducerSnapshot => ".snapshot",
        }
    }

    /// The file name at `base_offset`.
    ///
    /// # Panics
    /// If `base_offset` is negative.
    pub fn name(self, base_offset: i64) -> String {
        assert!(base_offset >= 0, "no file has the negative offset {base_offset}");
        format!("{base_offset:020}{}", self.suffix())
    }
}

/// What a name in the partition directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Name {
    /// A log segment, by its base offset.
    Segment(i64),
    /// An offset index, by its segment's base offset.
    OffsetIndex(i64),
    /// A time index, by its segment's base offset.
    TimeIndex(i64),
    /// An index of aborted transactions, by its segment's base offset.
    TxnIndex(i64),
    /// Producer state at an offset.
    ProducerSnapshot(i64),
    /// A finished checkpoint of all offsets below `end_offset`.
    Checkpoint {
        /// First offset that is not in it.
        end_offset: i64,
        /// Leader epoch of the last offset in it.
        epoch: i32,
    },
    /// A checkpoint that is being written or fetched; removed at start.
    CheckpointPart {
        /// First offset that will not be in it.
        end_offset: i64,
        /// Leader epoch of the last offset in it.
        epoch: i32,
    },
    /// A checkpoint marked for deletion; removed at start.
    CheckpointDeleted {
        /// First offset that is not in it.
        end_offset: i64,
        /// Leader epoch of the last offset in it.
        epoch: i32,
    },
    /// A segment's file marked for deletion; removed at start.
    Deleted(SegmentFile, i64),
    /// Output of a compaction in progress; never written for the metadata log, removed at start.
    Cleaned(SegmentFile, i64),
    /// Output of a finished compaction that is about to replace a segment.
    Swap(SegmentFile, i64),
    /// The leader epochs of the log.
    LeaderEpochCheckpoint,
    /// Topic id of the partition.
    PartitionMetadata,
    /// Leader, epoch and vote.
    QuorumState,
    /// Temporary of one of the three small files; never read.
    Temporary,
    /// Has a suffix of Kafka's but breaks the grammar. A Kafka refuses most such names at start.
    Malformed,
    /// Anything else.
    Foreign,
}

impl Name {
    /// What `name` stands for in a partition directory.
    pub fn parse(name: &str) -> Name {
        match name {
            LEADER_EPOCH_CHECKPOINT => return Name::LeaderEpochCheckpoint,
            PARTITION_METADATA => return Name::PartitionMetadata,
            QUORUM_STATE => return Name::QuorumState,
            _ => {}
        }
        if let Some(target) = name.strip_suffix(TEMPORARY_SUFFIX) {
            return match target {
                LEADER_EPOCH_CHECKPOINT | PARTITION_METADATA | QUORUM_STATE => Name::Temporary,
                _ => Name::Foreign,
            };
        }
        if let Some(stem) = name.strip_suffix(".checkpoint") {
            return match checkpoint_stem(stem) {
                Some((end_offset, epoch, "")) => Name::Checkpoint { end_offset, epoch },
                _ => Name::Malformed,
            };
        }
        if let Some(stem) = name.strip_suffix(".checkpoint.deleted") {
            return match checkpoint_stem(stem) {
                Some((end_offset, epoch, "")) => Name::CheckpointDeleted { end_offset, epoch },
                _ => Name::Malformed,
            };
        }
        if let Some(stem) = name.strip_suffix(".checkpoint.part") {
            return match checkpoint_stem(stem) {
                Some((end_offset, epoch, random)) if is_random_part(random) => {
                    Name::CheckpointPart { end_offset, epoch }
                }
                _ => Name::Malformed,
            };
        }
        type Marked = fn(SegmentFile, i64) -> Name;
        let marks: [(&str, Marked); 3] =
            [(".deleted", Name::Deleted), (".cleaned", Name::Cleaned), (".swap", Name::Swap)];
        for (suffix, marked) in marks {
            if let Some(live) = name.strip_suffix(suffix) {
                return match segment_file(live) {
                    Some(Some((file, base_offset))) => marked(file, base_offset),
                    Some(None) => Name::Malformed,
                    None => Name::Foreign,
                };
            }
        }
        match segment_file(name) {
            Some(Some((file, offset))) => match file {
                SegmentFile::Log => Name::Segment(offset),
                SegmentFile::OffsetIndex => Name::OffsetIndex(offset),
                SegmentFile::TimeIndex => Name::TimeIndex(offset),
                SegmentFile::TxnIndex => Name::TxnIndex(offset),
                SegmentFile::ProducerSnapshot => Name::ProducerSnapshot(offset),
            },
            Some(None) => Name::Malformed,
            None => Name::Foreign,
        }
    }
}

/// `None`: no segment suffix. `Some(None)`: a segment suffix behind something else than an offset.
fn segment_file(name: &str) -> Option<Option<(SegmentFile, i64)>> {
    SegmentFile::ALL.into_iter().find_map(|file| {
        let stem = name.strip_suffix(file.suffix())?;
        Some(offset_digits(stem).map(|offset| (file, offset)))
    })
}

/// Splits `<offset>-<epoch><rest>`.
fn checkpoint_stem(stem: &str) -> Option<(i64, i32, &str)> {
    let (id, rest) = stem.split_at_checked(CHECKPOINT_STEM)?;
    let (offset, epoch) = id.split_at_checked(OFFSET_DIGITS)?;
    let epoch = digits(epoch.strip_prefix('-')?, EPOCH_DIGITS)?;
    Some((offset_digits(offset)?, i32::try_from(epoch).ok()?, rest))
}

fn is_random_part(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn offset_digits(text: &str) -> Option<i64> {
    digits(text, OFFSET_DIGITS)
}

/// A number of exactly `width` ASCII digits that fits an `i64`.
fn digits(text: &str, width: usize) -> Option<i64> {
    if text.len() != width || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Name of the log segment at `base_offset`.
///
/// # Panics
/// If `base_offset` is negative.
pub fn segment_name(base_offset: i64) -> String {
    SegmentFile::Log.name(base_offset)
}

/// Name of the offset index at `base_offset`.
///
/// # Panics
/// If `base_offset` is negative.
pub fn offset_index_name(base_offset: i64) -> String {
    SegmentFile::OffsetIndex.name(base_offset)
}

/// Name of the time index at `base_offset`.
///
/// # Panics
/// If `base_offset` is negative.
pub fn time_index_name(base_offset: i64) -> String {
    SegmentFile::TimeIndex.name(base_offset)
}

/// Name of the producer state at `offset`.
///
/// # Panics
/// If `offset` is negative.
pub fn producer_snapshot_name(offset: i64) -> String {
    SegmentFile::ProducerSnapshot.name(offset)
}

/// Name of a finished checkpoint.
///
/// # Panics
/// If a number is negative.
pub fn checkpoint_name(end_offset: i64, epoch: i32) -> String {
    format!("{}.checkpoint", checkpoint_id(end_offset, epoch))
}

/// Name of a checkpoint that is being written; `random` keeps two writers of one id apart.
///
/// # Panics
/// If a number is negative.
pub fn checkpoint_part_name(end_offset: i64, epoch: i32, random: u64) -> String {
    format!("{}-{random}.checkpoint.part", checkpoint_id(end_offset, epoch))
}

/// Name of a checkpoint that is marked for deletion.
///
/// # Panics
/// If a number is negative.
pub fn checkpoint_deleted_name(end_offset: i64, epoch: i32) -> String {
    format!("{}.checkpoint.deleted", checkpoint_id(end_offset, epoch))
}

/// `<offset>-<epoch>`, the part of a checkpoint's name that says what it holds.
///
/// # Panics
/// If a number is negative.
pub fn checkpoint_id(end_offset: i64, epoch: i32) -> String {
    assert!(end_offset >= 0, "no checkpoint has the negative end offset {end_offset}");
    assert!(epoch >= 0, "no checkpoint has the negative epoch {epoch}");
    format!("{end_offset:020}-{epoch:010}")
}

/// `name` marked for deletion.
pub fn deleted_name(name: &str) -> String {
    format!("{name}.deleted")
}

/// The name under which `name`'s next content is written before it replaces it.
pub fn temporary_name(name: &str) -> String {
    format!("{name}{TEMPORARY_SUFFIX}")
}

/// What became of a partition whose directory has one of Kafka's long names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartitionDirState {
    /// In use.
    Live,
    /// Being deleted.
    Delete,
    /// A replica that is being moved here from another log dir.
    Future,
    /// Not owned by this broker any more.
    Stray,
}

/// A partition's directory below a log dir.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartitionDir<'a> {
    /// Name of the topic; cut short in the names of directories that are being deleted.
    pub topic: &'a str,
    /// Number of the partition, not negative.
    pub partition: i32,
    /// Live or not.
    pub state: PartitionDirState,
}

impl<'a> PartitionDir<'a> {
    /// `None` for names that are no partition's.
    pub fn parse(name: &'a str) -> Option<PartitionDir<'a>> {
        let states = [
            ("-delete", PartitionDirState::Delete),
            ("-future", PartitionDirState::Future),
            ("-stray", PartitionDirState::Stray),
        ];
        let marked = states.into_iter().find_map(|(suffix, state)| {
            let (live, id) = name.strip_suffix(suffix)?.rsplit_once('.')?;
            (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some((live, state))
        });
        let (live, state) = marked.unwrap_or((name, PartitionDirState::Live));
        let (topic, partition) = live.rsplit_once('-')?;
        if topic.is_empty() || partition.is_empty() || !partition.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(PartitionDir { topic, partition: partition.parse().ok()?, state })
    }
}

impl fmt::Display for PartitionDir<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_written_are_names_read() {
        for offset in [0, 1, 1234, i64::from(u32::MAX) + 7, i64::MAX] {
            assert_eq!(Name::parse(&segment_name(offset)), Name::Segment(offset));
            assert_eq!(Name::parse(&offset_index_name(offset)), Name::OffsetIndex(offset));
            assert_eq!(Name::parse(&time_index_name(offset)), Name::TimeIndex(offset));
            assert_eq!(Name::parse(&SegmentFile::TxnIndex.name(offset)), Name::TxnIndex(offset));
            assert_eq!(Name::parse(&producer_snapshot_name(offset)), Name::ProducerSnapshot(offset));
            for file in SegmentFile::ALL {
                let name = file.name(offset);
                assert_eq!(Name::parse(&deleted_name(&name)), Name::Deleted(file, offset));
                assert_eq!(Name::parse(&format!("{name}.swap")), Name::Swap(file, offset));
                assert_eq!(Name::parse(&format!("{name}.cleaned")), Name::Cleaned(file, offset));
            }
            for epoch in [0, 7, i32::MAX] {
                let end_offset = offset;
                assert_eq!(
                    Name::parse(&checkpoint_name(offset, epoch)),
                    Name::Checkpoint { end_offset, epoch }
                );
                assert_eq!(
                    Name::parse(&checkpoint_deleted_name(offset, epoch)),
                    Name::CheckpointDeleted { end_offset, epoch }
                );
                assert_eq!(
                    Name::parse(&checkpoint_part_name(offset, epoch, u64::MAX)),
                    Name::CheckpointPart { end_offset, epoch }
                );
            }
        }
    }

    #[test]
    fn names_of_a_real_directory_are_known() {
        assert_eq!(Name::parse("00000000000000000000.log"), Name::Segment(0));
        assert_eq!(Name::parse("00000000000000001234.snapshot"), Name::ProducerSnapshot(1234));
        assert_eq!(
            Name::parse("00000000000000001234-0000000007.checkpoint"),
            Name::Checkpoint { end_offset: 1234, epoch: 7 }
        );
        assert_eq!(
            Name::parse("00000000000000000355-0000000008-7094301230291953409.checkpoint.part"),
            Name::CheckpointPart { end_offset: 355, epoch: 8 }
        );
        assert_eq!(Name::parse("leader-epoch-checkpoint"), Name::LeaderEpochCheckpoint);
        assert_eq!(Name::parse("partition.metadata"), Name::PartitionMetadata);
        assert_eq!(Name::parse("quorum-state"), Name::QuorumState);
        assert_eq!(Name::parse("quorum-state.tmp"), Name::Temporary);
    }

    #[test]
    fn names_that_break_the_grammar_are_malformed() {
        for name in [
            "5.log",
            ".log",
            "-0000000000000000001.log",
            "+0000000000000000001.log",
            "0000000000000000000a.index",
            "99999999999999999999.log",
            "09223372036854775808.log",
            "0000000000000000000٣.log",
            "٠٠٠٠٠٠٠٠٠٠.log",
            "x.log.deleted",
            "bootstrap.checkpoint",
            "00000000000000001234_0000000007.checkpoint",
            "00000000000000001234-9999999999.checkpoint",
            "00000000000000001234-0000000007-.checkpoint.part",
            "00000000000000001234-0000000007-1x.checkpoint.part",
            "00000000000000001234-0000000007-1.checkpoint",
            "0000000000000000123é-000000007.checkpoint",
        ] {
            assert_eq!(Name::parse(name), Name::Malformed, "{name}");
        }
    }

    #[test]
    fn other_names_are_foreign() {
        for name in ["", "log", "kraftlog.state", "lost+found", "x.tmp", "x.deleted", "00000000000000000000"]
        {
            assert_eq!(Name::parse(name), Name::Foreign, "{name}");
        }
    }

    #[test]
    fn partition_directories_follow_the_last_hyphen() {
        let live = PartitionDir::parse("__cluster_metadata-0").unwrap();
        assert_eq!((live.topic, live.partition), ("__cluster_metadata", 0));
        assert_eq!(PartitionDir::parse("a-b.c-12").unwrap().topic, "a-b.c");
        let deleted = PartitionDir::parse("a-b-1.0123456789abcdef0123456789abcdef-delete").unwrap();
        assert_eq!((deleted.topic, deleted.partition), ("a-b", 1));
        assert_eq!(deleted.state, PartitionDirState::Delete);
        for name in ["data", "lost+found", ".snapshot", "-1", "a-", "a-x", "a-99999999999", "a-+1"] {
            assert_eq!(PartitionDir::parse(name), None, "{name}");
        }
    }
}
