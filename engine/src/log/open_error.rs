//! Why a log was not opened. Unless the variant says otherwise, every byte of it is as it was.

use crate::control::ControlError;
use crate::error::{ErrorKind, io_kind};
use crate::snapshot::SnapshotRefusal;
use crate::types::{Epoch, Offset};
use kraftlog_codecs::epochs::EpochsError;
use kraftlog_codecs::error::DecodeError;
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::partition_metadata::PartitionMetadataError;
use kraftlog_codecs::quorum::QuorumStateError;
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::IoError;
use std::path::PathBuf;

/// What says that the log was longer once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// The durable end that `kraftlog.state` has.
    DurableEnd,
    /// The high watermark that `kraftlog.state` has.
    HighWatermark,
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Evidence::DurableEnd => "durable end",
            Evidence::HighWatermark => "high watermark",
        })
    }
}

/// Valid batches behind a bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidBehind {
    /// Where the first of them begins in the segment; 0 if they lie in a later one.
    pub position: u64,
    /// Base offset of the first.
    pub first: Offset,
    /// Last offset of those that follow each other.
    pub last: Offset,
    /// How many follow each other.
    pub batches: u64,
}

/// Why [`MetadataLog::open`](crate::MetadataLog::open) refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A log is open in the directory, through another handle.
    #[error("a log is open in {} already", path.display())]
    AlreadyOpen {
        /// The directory.
        path: PathBuf,
    },
    /// The directory's lock file was deleted after we took the lock, so that it keeps nobody out.
    #[error("{} was locked, and its lock file is gone; another process may have the directory: see that no node runs in it, and open it again", path.display())]
    LockLost {
        /// The directory.
        path: PathBuf,
    },
    /// A batch is bad and what follows may be committed: rot, not a crash.
    #[error("{} is damaged at byte {position}, offset {offset}: {cause}{}{}; nothing was cut, look at it with `kraftlog dump` and restore the file from a copy or another voter", path.display(), crcs(*stored_crc, *computed_crc), behind(*valid_behind))]
    CorruptBatch {
        /// The segment.
        path: PathBuf,
        /// Where the bad batch begins.
        position: u64,
        /// The base offset that belongs there.
        offset: Offset,
        /// What is wrong.
        cause: DecodeError,
        /// The CRC in its header, if the header can be read.
        stored_crc: Option<u32>,
        /// The CRC of its bytes.
        computed_crc: Option<u32>,
        /// What stands behind it; `None` if there were too many candidates to tell.
        valid_behind: Option<ValidBehind>,
    },
    /// A whole batch does not begin where the one before it ends.
    #[error("{} has a batch with base offset {found} at byte {position}, where {expected} belongs; nothing was cut", path.display())]
    MisplacedBatch {
        /// The segment.
        path: PathBuf,
        /// Where the batch begins.
        position: u64,
        /// The base offset that belongs there.
        expected: Offset,
        /// The base offset found.
        found: Offset,
    },
    /// A whole batch has a lower epoch than the one before it.
    #[error("{} has a batch of epoch {found} at byte {position}, offset {offset}, behind one of epoch {last}; nothing was cut", path.display())]
    EpochGoesDown {
        /// The segment.
        path: PathBuf,
        /// Where the batch begins.
        position: u64,
        /// Its base offset.
        offset: Offset,
        /// Its epoch.
        found: Epoch,
        /// The epoch before.
        last: Epoch,
    },
    /// Offsets are missing between two segments, or stand in both.
    #[error("{} begins at {found}, the segment before it ends at {expected}: {}", path.display(), if found > expected { "offsets are missing; put the segment between back" } else { "offsets stand twice" })]
    SegmentsDoNotMeet {
        /// The later segment.
        path: PathBuf,
        /// Where the earlier one ends.
        expected: Offset,
        /// Where the later one begins.
        found: Offset,
    },
    /// The log ends before something that was durable or committed.
    #[error("the log ends at {end} ({} byte {position}), but its {evidence} was {offset}: acknowledged records are lost; put the file back, or fetch everything again", path.display())]
    LostRecords {
        /// What says so.
        evidence: Evidence,
        /// Where the log reached to.
        offset: Offset,
        /// Where it ends now.
        end: Offset,
        /// The last segment.
        path: PathBuf,
        /// Where its good bytes end.
        position: u64,
    },
    /// The last durable batch is another one than was written.
    #[error(
        "the batch at offset {offset} is not the one that was written: epoch {epoch} and checksum {crc:08x} were recorded for it"
    )]
    OtherBatch {
        /// Its base offset.
        offset: Offset,
        /// The epoch recorded.
        epoch: Epoch,
        /// The CRC recorded.
        crc: u32,
    },
    /// What the snapshots say forbids to start.
    #[error(transparent)]
    Snapshot(#[from] SnapshotRefusal),
    /// A feature level that only a newer build knows.
    #[error("{}: record at offset {offset} sets metadata.version {level}, this build knows {} to {}; use a newer build", path.display(), MetadataVersion::MINIMUM.0, MetadataVersion::LATEST_TESTING.0)]
    UnsupportedMetadataVersion {
        /// The directory.
        path: PathBuf,
        /// Offset of the record.
        offset: Offset,
        /// The level.
        level: i16,
    },
    /// A record that only a newer build knows.
    #[error("{}: record at offset {offset} has type {api_key} version {version}, which this build does not know; use a newer build", path.display())]
    UnknownRecordType {
        /// The directory.
        path: PathBuf,
        /// Offset of the record.
        offset: Offset,
        /// Its type.
        api_key: u32,
        /// Its version.
        version: u32,
    },
    /// A migration from ZooKeeper was begun and not finished (field case C-48).
    #[error(
        "record at offset {offset} says that a migration from ZooKeeper is in state {state}, which is not finished; finish it with the release that began it"
    )]
    MigrationUnfinished {
        /// Offset of the record.
        offset: Offset,
        /// Its state.
        state: i8,
    },
    /// The epoch checkpoint has a version of a newer build.
    #[error("{} cannot be taken over", path.display())]
    EpochCacheInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: EpochsError,
    },
    /// The vote cannot be read; it may hide a vote, so it is not thrown away.
    #[error("{} cannot be read; without it this node could vote twice in one epoch", path.display())]
    QuorumStateInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: QuorumStateError,
    },
    /// The vote has a version of a newer build.
    #[error("{} has version {version}, this build knows 0 to 1; use a newer build", path.display())]
    UnsupportedQuorumStateVersion {
        /// The file.
        path: PathBuf,
        /// The version.
        version: i16,
    },
    /// The vote is another cluster's.
    #[error("{} belongs to cluster `{found}`, this node to `{expected}`", path.display())]
    ClusterIdMismatch {
        /// The file.
        path: PathBuf,
        /// The node's.
        expected: String,
        /// In the file.
        found: String,
    },
    /// `partition.metadata` cannot be read.
    #[error("{} cannot be read", path.display())]
    PartitionMetadataInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: PartitionMetadataError,
    },
    /// The directory holds another topic.
    #[error("{} has topic id {found}, which is not the metadata topic's", path.display())]
    OtherTopic {
        /// The file.
        path: PathBuf,
        /// The id found.
        found: Uuid,
    },
    /// A control record cannot be taken over.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The disk failed, is full, or may not be written.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The log lane died while it opened the log.
    #[error("the log lane ended before the log was open")]
    LaneGone,
}

fn crcs(stored: Option<u32>, computed: Option<u32>) -> String {
    match (stored, computed) {
        (Some(stored), Some(computed)) => format!(" (stored {stored:08x}, computed {computed:08x})"),
        _ => String::new(),
    }
}

fn behind(valid: Option<ValidBehind>) -> String {
    match valid {
        Some(ValidBehind { first, last, batches, .. }) => {
            format!(", and {batches} valid batches follow (offsets {first}-{last})")
        }
        None => ", and valid batches may follow".to_string(),
    }
}

impl OpenError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            OpenError::AlreadyOpen { .. } | OpenError::LockLost { .. } => ErrorKind::Locked,
            OpenError::CorruptBatch { .. }
            | OpenError::MisplacedBatch { .. }
            | OpenError::EpochGoesDown { .. }
            | OpenError::SegmentsDoNotMeet { .. }
            | OpenError::LostRecords { .. }
            | OpenError::OtherBatch { .. }
            | OpenError::QuorumStateInvalid { .. }
            | OpenError::PartitionMetadataInvalid { .. } => ErrorKind::Corrupt,
            OpenError::Snapshot(_)
            | OpenError::MigrationUnfinished { .. }
            | OpenError::ClusterIdMismatch { .. }
            | OpenError::OtherTopic { .. } => ErrorKind::Refused,
            OpenError::UnsupportedMetadataVersion { .. }
            | OpenError::UnknownRecordType { .. }
            | OpenError::EpochCacheInvalid { .. }
            | OpenError::UnsupportedQuorumStateVersion { .. } => ErrorKind::Unsupported,
            OpenError::Control(_) => ErrorKind::Corrupt,
            OpenError::Io(cause) => io_kind(cause),
            OpenError::LaneGone => ErrorKind::Fenced,
        }
    }
}
