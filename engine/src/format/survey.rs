//! What stands in a directory besides its `meta.properties`.
//!
//! Names and sizes only, one level deep, and in the partition directory: nothing foreign is looked
//! into (field case C-24). Reads, never writes.

use crate::node::{DirState, Ensemble};
use kraftlog_codecs::names::{self, Name, PartitionDir};
use kraftlog_io::{Disk, EntryKind, IoError};
use std::path::PathBuf;

/// Content of one directory that may be formatted.
#[derive(Debug, Clone, Default)]
pub(super) struct DirSurvey {
    /// The directory.
    pub(super) path: PathBuf,
    /// A file that must not be formatted over, and what it is.
    pub(super) data: Option<(PathBuf, &'static str)>,
    /// There is a `bootstrap.checkpoint`.
    pub(super) legacy_bootstrap: bool,
    /// There is a metadata partition directory.
    pub(super) partition_dir: bool,
    /// Unknown directories; `lost+found` and hidden ones are not mentioned.
    pub(super) foreign: Vec<String>,
}

/// Looks into all directories that have no usable identity of their own: blank ones, and those of
/// version 0, whose identity is that of a ZooKeeper cluster.
pub(super) async fn survey(disk: &dyn Disk, ensemble: &Ensemble) -> Result<Vec<DirSurvey>, IoError> {
    let mut surveys = Vec::new();
    for dir in ensemble.dirs() {
        let look = match &dir.state {
            DirState::Blank => true,
            DirState::Props(props) => props.version.number() == 0,
            DirState::Missing | DirState::Error(_) => false,
        };
        if look {
            surveys.push(survey_dir(disk, dir.path.clone()).await?);
        }
    }
    Ok(surveys)
}

async fn survey_dir(disk: &dyn Disk, path: PathBuf) -> Result<DirSurvey, IoError> {
    let mut survey = DirSurvey { path, ..DirSurvey::default() };
    let mut entries = disk.list(&survey.path).await?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        match entry.kind {
            EntryKind::File if entry.name == names::BOOTSTRAP_CHECKPOINT => survey.legacy_bootstrap = true,
            EntryKind::Dir if entry.name == names::METADATA_PARTITION_DIR => survey.partition_dir = true,
            EntryKind::Dir
                if !entry.name.starts_with('.')
                    && entry.name != "lost+found"
                    && PartitionDir::parse(&entry.name).is_none() =>
            {
                survey.foreign.push(entry.name);
            }
            _ => {}
        }
    }
    if survey.partition_dir {
        let dir = survey.path.join(names::METADATA_PARTITION_DIR);
        let mut entries = disk.list(&dir).await?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        survey.data = entries.iter().find_map(|entry| {
            let what = match Name::parse(&entry.name) {
                Name::Segment(_) if entry.len > 0 => "a metadata log",
                // The zero checkpoint alone is what a format that was cut short leaves.
                Name::Checkpoint { end_offset, epoch } if (end_offset, epoch) != (0, 0) => "a checkpoint",
                Name::QuorumState => "a vote",
                _ => return None,
            };
            Some((dir.join(&entry.name), what))
        });
    }
    Ok(survey)
}
