//! Which of the four cases it is (B-74), and the records that follow from it.
//!
//! | zero checkpoint | legacy `bootstrap.checkpoint` | records of |
//! | --- | --- | --- |
//! | with metadata records | absent | the zero checkpoint |
//! | with metadata records | present | the zero checkpoint, with a warning; the file is not looked into (W-34) |
//! | absent, or control records only | present | the legacy file |
//! | absent, or control records only | absent | the default: the latest metadata.version alone |
//!
//! A zero checkpoint must be whole: header first, footer last, nothing behind, good CRCs. In a legacy
//! file header and footer may be missing (Kafka reads it so); what is there must be sound.

use kraftlog_codecs::batch::Batches;
use kraftlog_codecs::control::{ControlKey, ControlType};
use kraftlog_codecs::error::DecodeError;
use kraftlog_codecs::features::{METADATA_VERSION, MetadataVersion};
use kraftlog_codecs::metadata::{FeatureLevelRecord, MetadataRecord};
use kraftlog_codecs::names;
use kraftlog_io::disk::read_file;
use kraftlog_io::{Disk, IoError};
use std::fmt;
use std::path::{Path, PathBuf};

/// A file of bootstrap records beyond this is none. Kafka's own format stays below 9 MiB; 4.3 could
/// write several batches.
const FILE_BYTES_MAX: usize = 256 << 20;

/// Where bootstrap records come from. `Display` is Kafka's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootstrapSource {
    /// The zero checkpoint.
    ZeroCheckpoint,
    /// The legacy file.
    Legacy(PathBuf),
    /// Neither has any.
    Default,
}

impl fmt::Display for BootstrapSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootstrapSource::ZeroCheckpoint => f.write_str("bootstrap"),
            BootstrapSource::Legacy(path) => {
                write!(f, "the binary bootstrap metadata file: {}", path.display())
            }
            BootstrapSource::Default => f.write_str("the default bootstrap"),
        }
    }
}

/// What is odd about the files, and stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BootstrapWarning {
    /// Both files have records; those of the legacy file are not used.
    LegacyIgnored {
        /// The legacy file.
        path: PathBuf,
    },
}

impl fmt::Display for BootstrapWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootstrapWarning::LegacyIgnored { path } => write!(
                f,
                "{} is ignored: the zero checkpoint has bootstrap records; remove the file",
                path.display()
            ),
        }
    }
}

/// The bootstrap records of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    source: BootstrapSource,
    records: Vec<Vec<u8>>,
    metadata_version: MetadataVersion,
    warning: Option<BootstrapWarning>,
}

/// What is wrong with a file of bootstrap records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FileFault {
    #[error("no header")]
    NoHeader,
    #[error("no footer")]
    NoFooter,
    #[error("bytes behind the footer")]
    BehindFooter,
    #[error("the last batch is cut: {left} bytes of it are there, at position {position}")]
    Cut { position: usize, left: usize },
    #[error("bad batch at position {position}: {cause}")]
    BadBatch { position: usize, cause: DecodeError },
    #[error("bad record {record}: {cause}")]
    BadRecord { record: usize, cause: DecodeError },
    #[error("no FeatureLevelRecord for metadata.version")]
    NoMetadataVersion,
}

/// Why the bootstrap records cannot be had. Nothing was changed. They are not needed once the log has
/// a metadata.version, so a node with such a log can go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// A file is damaged, or has records that no cluster can start with.
    #[error("{} cannot be used: {fault}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: FileFault,
    },
    /// The files cannot be read.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl Bootstrap {
    /// Reads the files of a metadata directory and decides. What [`warning`](Bootstrap::warning) says
    /// is logged too.
    ///
    /// # Errors
    /// [`BootstrapError::Invalid`] if the file that counts is damaged or has no metadata.version.
    pub async fn find(disk: &dyn Disk, metadata_dir: &Path) -> Result<Bootstrap, BootstrapError> {
        let zero_path = metadata_dir.join(names::METADATA_PARTITION_DIR).join(names::checkpoint_name(0, 0));
        let legacy_path = metadata_dir.join(names::BOOTSTRAP_CHECKPOINT);
        let zero = match read_file(disk, &zero_path, FILE_BYTES_MAX).await? {
            Some(bytes) => zero_records(&bytes)
                .map_err(|fault| BootstrapError::Invalid { path: zero_path.clone(), fault })?,
            None => Vec::new(),
        };
        if !zero.is_empty() {
            let warning = disk
                .stat(&legacy_path)
                .await?
                .map(|_| BootstrapWarning::LegacyIgnored { path: legacy_path.clone() });
            if let Some(warning) = &warning {
                tracing::warn!("{warning}");
            }
            return Bootstrap::of(BootstrapSource::ZeroCheckpoint, zero, warning)
                .map_err(|fault| BootstrapError::Invalid { path: zero_path, fault });
        }
        match read_file(disk, &legacy_path, FILE_BYTES_MAX).await? {
            Some(bytes) => legacy_records(&bytes)
                .and_then(|records| {
                    Bootstrap::of(BootstrapSource::Legacy(legacy_path.clone()), records, None)
                })
                .map_err(|fault| BootstrapError::Invalid { path: legacy_path, fault }),
            None => Ok(Bootstrap::default_records()),
        }
    }

    /// The default: the latest production metadata.version alone.
    pub fn default_records() -> Bootstrap {
        let version = MetadataVersion::LATEST_PRODUCTION;
        let record = FeatureLevelRecord {
            name: METADATA_VERSION,
            feature_level: version.0,
            ..FeatureLevelRecord::default()
        };
        let mut value = Vec::new();
        let encoded = MetadataRecord::from(record).encode(0, &mut value);
        assert!(encoded.is_ok(), "a record of constants cannot be encoded: {encoded:?}");
        Bootstrap {
            source: BootstrapSource::Default,
            records: vec![value],
            metadata_version: version,
            warning: None,
        }
    }

    fn of(
        source: BootstrapSource,
        records: Vec<Vec<u8>>,
        warning: Option<BootstrapWarning>,
    ) -> Result<Bootstrap, FileFault> {
        let mut version = None;
        for (number, value) in records.iter().enumerate() {
            let framed = MetadataRecord::decode(value)
                .map_err(|cause| FileFault::BadRecord { record: number, cause })?;
            if let MetadataRecord::FeatureLevel(feature) = framed.record
                && feature.name == METADATA_VERSION
            {
                // Of several the last names the version, as in Kafka.
                version = Some(MetadataVersion(feature.feature_level));
            }
        }
        let metadata_version = version.ok_or(FileFault::NoMetadataVersion)?;
        Ok(Bootstrap { source, records, metadata_version, warning })
    }

    /// Where the records come from.
    pub fn source(&self) -> &BootstrapSource {
        &self.source
    }

    /// The records, encoded, in their order.
    pub fn records(&self) -> &[Vec<u8>] {
        &self.records
    }

    /// The metadata.version among them. Whether this build knows it is asked at activation: a file of
    /// a newer build is no damage.
    pub fn metadata_version(&self) -> MetadataVersion {
        self.metadata_version
    }

    /// What is odd about the files.
    pub fn warning(&self) -> Option<&BootstrapWarning> {
        self.warning.as_ref()
    }

    /// Level of a feature among the records; 0 if there is none.
    pub fn feature_level(&self, name: &str) -> i16 {
        let level = |value: &Vec<u8>| match MetadataRecord::decode(value).ok()?.record {
            MetadataRecord::FeatureLevel(feature) if feature.name == name => Some(feature.feature_level),
            _ => None,
        };
        self.records.iter().rev().find_map(level).unwrap_or(0)
    }
}

/// Data records of a zero checkpoint, which must be whole.
pub(crate) fn zero_records(bytes: &[u8]) -> Result<Vec<Vec<u8>>, FileFault> {
    let content = Content::read(bytes)?;
    match (content.header_first, content.footer_last, content.behind_footer) {
        (false, ..) => Err(FileFault::NoHeader),
        (_, _, true) => Err(FileFault::BehindFooter),
        (_, false, _) => Err(FileFault::NoFooter),
        _ => Ok(content.records),
    }
}

fn legacy_records(bytes: &[u8]) -> Result<Vec<Vec<u8>>, FileFault> {
    Ok(Content::read(bytes)?.records)
}

/// What stands in a file of batches.
struct Content {
    records: Vec<Vec<u8>>,
    header_first: bool,
    footer_last: bool,
    behind_footer: bool,
}

impl Content {
    fn read(bytes: &[u8]) -> Result<Content, FileFault> {
        let mut content =
            Content { records: Vec::new(), header_first: false, footer_last: false, behind_footer: false };
        let mut first = true;
        for (position, batch) in Batches::new(bytes) {
            let bad = |cause| FileFault::BadBatch { position, cause };
            let batch = match batch {
                Ok(batch) => batch,
                Err(_) if content.footer_last => return Err(FileFault::BehindFooter),
                Err(DecodeError::Truncated) => {
                    return Err(FileFault::Cut { position, left: bytes.len().saturating_sub(position) });
                }
                Err(cause) => return Err(bad(cause)),
            };
            content.behind_footer |= content.footer_last;
            content.footer_last = false;
            for record in batch.records().map_err(bad)? {
                let record = record.map_err(bad)?;
                match record.key {
                    Some(key) => {
                        let kind = ControlKey::decode(key).map_err(bad)?.kind;
                        content.header_first |= first && kind == ControlType::SnapshotHeader;
                        content.footer_last = kind == ControlType::SnapshotFooter;
                    }
                    None => content.records.push(record.value.unwrap_or_default().to_vec()),
                }
                first = false;
            }
        }
        Ok(content)
    }
}

/// Whether there is a zero checkpoint with a voter set: then this node is one of the first voters
/// (KIP-1262, B-28). A damaged one counts as one with voters: nothing may be guessed about it.
pub(crate) async fn zero_checkpoint_has_voters(
    disk: &dyn Disk,
    metadata_dir: &Path,
) -> Result<bool, IoError> {
    let path = metadata_dir.join(names::METADATA_PARTITION_DIR).join(names::checkpoint_name(0, 0));
    let Some(bytes) = read_file(disk, &path, FILE_BYTES_MAX).await? else { return Ok(false) };
    for (_, batch) in Batches::new(&bytes) {
        let Ok(records) = batch.and_then(|batch| batch.records()) else { return Ok(true) };
        for record in records {
            let key = record.and_then(|record| record.key.map(ControlKey::decode).transpose());
            match key {
                Ok(Some(key)) if key.kind == ControlType::KRaftVoters => return Ok(true),
                Ok(_) => {}
                Err(_) => return Ok(true),
            }
        }
    }
    Ok(false)
}
