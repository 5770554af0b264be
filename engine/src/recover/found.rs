//! What stands in a part directory, from one listing and the small files. Nothing is written.

use crate::config::LogConfig;
use crate::log::open_error::OpenError;
use crate::snapshot::Catalog;
use crate::state::{STATE_BYTES_MAX, STATE_FILE, State, StateFault};
use crate::types::Offset;
use kraftlog_codecs::epochs::{self, EpochEntry, EpochsError};
use kraftlog_codecs::names::{self, Name};
use kraftlog_codecs::partition_metadata::PartitionMetadata;
use kraftlog_codecs::quorum::{QuorumState, QuorumStateError, VersionData};
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::{Disk, EntryKind, IoError, IoErrorKind, Op, disk};
use std::path::{Path, PathBuf};

const SMALL_BYTES_MAX: usize = 16 << 20;

/// One segment file of the listing.
#[derive(Debug, Clone)]
pub(crate) struct FoundSegment {
    pub(crate) base: Offset,
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
}

/// The directory as it was found.
pub(crate) struct FoundDir {
    pub(crate) segments: Vec<FoundSegment>,
    pub(crate) catalog: Catalog,
    pub(crate) state: Option<State>,
    pub(crate) state_fault: Option<StateFault>,
    pub(crate) quorum: Option<QuorumState>,
    pub(crate) epochs: Result<Vec<EpochEntry>, EpochsError>,
    pub(crate) epochs_exist: bool,
    pub(crate) partition_metadata_exists: bool,
    /// Kafka's producer state: says that a Kafka has been here.
    pub(crate) producer_snapshots: Vec<String>,
    /// Index files by name, whose segment may be gone.
    pub(crate) indexes: Vec<(Offset, String)>,
    /// Marked as deleted, temporary: removed at the end.
    pub(crate) left_overs: Vec<String>,
    pub(crate) malformed: Vec<String>,
}

impl FoundDir {
    pub(crate) fn kafka_was_here(&self) -> bool {
        !self.producer_snapshots.is_empty()
    }
}

/// Looks at everything but the content of logs and checkpoints.
pub(crate) async fn look(
    disk: &dyn Disk,
    part_dir: &Path,
    config: &LogConfig,
) -> Result<FoundDir, OpenError> {
    let entries = disk.list(part_dir).await?;
    let catalog = Catalog::from_listing(part_dir, &entries)?;
    let mut found = FoundDir {
        segments: Vec::new(),
        catalog,
        state: None,
        state_fault: None,
        quorum: None,
        epochs: Ok(Vec::new()),
        epochs_exist: false,
        partition_metadata_exists: false,
        producer_snapshots: Vec::new(),
        indexes: Vec::new(),
        left_overs: Vec::new(),
        malformed: Vec::new(),
    };
    for entry in entries {
        let is_file = entry.kind == EntryKind::File;
        match Name::parse(&entry.name) {
            Name::Segment(base) => {
                let path = part_dir.join(&entry.name);
                if !is_file {
                    let cause = std::io::Error::from(std::io::ErrorKind::IsADirectory);
                    return Err(IoError::new(Op::Open, path, cause).into());
                }
                found.segments.push(FoundSegment { base: Offset(base), path, len: entry.len });
            }
            Name::OffsetIndex(base) | Name::TimeIndex(base) | Name::TxnIndex(base) if is_file => {
                found.indexes.push((Offset(base), entry.name));
            }
            Name::ProducerSnapshot(_) if is_file => found.producer_snapshots.push(entry.name),
            Name::Deleted(..) | Name::Cleaned(..) | Name::Temporary if is_file => {
                found.left_overs.push(entry.name);
            }
            Name::Malformed | Name::Swap(..) => found.malformed.push(entry.name),
            Name::Foreign if is_file && entry.name == format!("{STATE_FILE}.tmp") => {
                found.left_overs.push(entry.name);
            }
            _ => {}
        }
    }
    found.segments.sort_by_key(|segment| segment.base);
    found.left_overs.sort();
    read_state(disk, part_dir, &mut found).await?;
    read_quorum(disk, part_dir, config, &mut found).await?;
    read_epochs(disk, part_dir, &mut found).await?;
    found.partition_metadata_exists = check_partition_metadata(disk, part_dir).await?;
    Ok(found)
}

async fn read_state(disk: &dyn Disk, part_dir: &Path, found: &mut FoundDir) -> Result<(), OpenError> {
    if let Some(bytes) = small_file(disk, &part_dir.join(STATE_FILE), STATE_BYTES_MAX).await? {
        match State::decode(&bytes) {
            Ok(state) => found.state = Some(state),
            Err(fault) => found.state_fault = Some(fault),
        }
    }
    Ok(())
}

async fn read_quorum(
    disk: &dyn Disk,
    part_dir: &Path,
    config: &LogConfig,
    found: &mut FoundDir,
) -> Result<(), OpenError> {
    let path = part_dir.join(names::QUORUM_STATE);
    let Some(bytes) = small_file(disk, &path, SMALL_BYTES_MAX).await? else { return Ok(()) };
    let state = match QuorumState::parse(&bytes) {
        Ok(state) => state,
        Err(QuorumStateError::UnsupportedVersion { version }) => {
            return Err(OpenError::UnsupportedQuorumStateVersion { path, version });
        }
        Err(cause) => return Err(OpenError::QuorumStateInvalid { path, cause }),
    };
    if let (VersionData::V0 { cluster_id, .. }, Some(expected)) = (&state.version_data, &config.cluster_id)
        && !cluster_id.is_empty()
        && cluster_id != expected
    {
        let (expected, found) = (expected.clone(), cluster_id.clone());
        return Err(OpenError::ClusterIdMismatch { path, expected, found });
    }
    found.quorum = Some(state);
    Ok(())
}

async fn read_epochs(disk: &dyn Disk, part_dir: &Path, found: &mut FoundDir) -> Result<(), OpenError> {
    let path = part_dir.join(names::LEADER_EPOCH_CHECKPOINT);
    let Some(bytes) = small_file(disk, &path, SMALL_BYTES_MAX).await? else { return Ok(()) };
    found.epochs_exist = true;
    found.epochs = epochs::parse(&bytes);
    match &found.epochs {
        Err(cause @ EpochsError::UnknownVersion { .. }) => {
            Err(OpenError::EpochCacheInvalid { path, cause: cause.clone() })
        }
        _ => Ok(()),
    }
}

async fn check_partition_metadata(disk: &dyn Disk, part_dir: &Path) -> Result<bool, OpenError> {
    let path = part_dir.join(names::PARTITION_METADATA);
    let Some(bytes) = small_file(disk, &path, SMALL_BYTES_MAX).await? else { return Ok(false) };
    match PartitionMetadata::parse(&bytes) {
        Ok(found) if found.topic_id == Uuid::METADATA_TOPIC => Ok(true),
        Ok(found) => Err(OpenError::OtherTopic { path, found: found.topic_id }),
        Err(cause) => Err(OpenError::PartitionMetadataInvalid { path, cause }),
    }
}

/// A whole small file. One that is too long to be what it should be is cut there: its reader finds out.
pub(crate) async fn small_file(disk: &dyn Disk, path: &Path, max: usize) -> Result<Option<Vec<u8>>, IoError> {
    match disk::read_file(disk, path, max).await {
        Err(error) if error.kind() == IoErrorKind::Failed && is_too_long(&error) => Ok(Some(Vec::new())),
        read => read,
    }
}

fn is_too_long(error: &IoError) -> bool {
    error.cause.kind() == std::io::ErrorKind::InvalidData
}
