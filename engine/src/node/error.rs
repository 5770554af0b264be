//! Why a node does not start, or does not learn its cluster's id.

use super::ensemble::{IdentityError, LogDirError};
use crate::dir::DirError;
use crate::error::ErrorKind;
use kraftlog_io::IoError;
use kraftlog_io::lock::LockError;
use std::path::PathBuf;

/// Why a node does not start. Nothing was changed, but for `Io` with a failed rewrite of a
/// `meta.properties`: that file is the old or the new one, and the next start finishes the others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A directory has no `meta.properties`.
    #[error(
        "no meta.properties found in {}: format the node first (`kraftlog format` or kafka-storage.sh format)",
        list(dirs)
    )]
    NotFormatted {
        /// Every directory without one, absolute where that can be told.
        dirs: Vec<PathBuf>,
    },
    /// The directories cannot be this node's.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The metadata directory cannot be used.
    #[error("the metadata directory {} cannot be used", dir.display())]
    MetadataDirUnavailable {
        /// The directory.
        dir: PathBuf,
        /// Why.
        #[source]
        cause: LogDirError,
    },
    /// A data directory has a metadata log: most likely `metadata.log.dir` was changed.
    #[error(
        "{} holds a metadata log, but the metadata directory is {}: set metadata.log.dir to where the log is",
        found.display(),
        metadata_dir.display()
    )]
    UnexpectedMetadataLog {
        /// The directory with the log.
        found: PathBuf,
        /// The configured one.
        metadata_dir: PathBuf,
    },
    /// A node or tool has a directory.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The metadata directory is in use, or its back end cannot be had.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The lane that worked on the files died.
    #[error("the I/O lane of the start is gone")]
    LaneGone,
}

fn list(dirs: &[PathBuf]) -> String {
    dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl StartError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StartError::NotFormatted { .. }
            | StartError::Identity(_)
            | StartError::UnexpectedMetadataLog { .. } => ErrorKind::Refused,
            StartError::MetadataDirUnavailable { cause: LogDirError::Malformed { .. }, .. } => {
                ErrorKind::Corrupt
            }
            StartError::MetadataDirUnavailable { .. } => ErrorKind::Refused,
            StartError::Locked(LockError::Io(cause)) | StartError::Io(cause) => crate::error::io_kind(cause),
            StartError::Locked(_) => ErrorKind::Locked,
            StartError::Dir(error) => error.kind(),
            StartError::LaneGone => ErrorKind::Fenced,
        }
    }

    /// Short name of the failure, that of the field cases.
    pub fn name(&self) -> &'static str {
        match self {
            StartError::NotFormatted { .. } => "NotFormatted",
            StartError::Identity(error) => error.name(),
            StartError::MetadataDirUnavailable { cause, .. } => cause.name(),
            StartError::UnexpectedMetadataLog { .. } => "DirectoryHasData",
            _ if self.kind() == ErrorKind::Locked => "DirectoryLocked",
            _ => "IoError",
        }
    }
}

/// Why a cluster id was not taken. The value in memory is as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// Another id is known already: this node has met a second cluster (B-42).
    #[error("cluster id \"{given}\" was discovered, but this node belongs to \"{known}\"")]
    Mismatch {
        /// The new one.
        given: String,
        /// The known one.
        known: String,
    },
    /// A `meta.properties` could not be written; calling again finishes the others.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The lane that worked on the files died.
    #[error("the I/O lane is gone")]
    LaneGone,
}
