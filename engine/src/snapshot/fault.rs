//! What can be wrong with a checkpoint, and the errors of reading one.

use crate::error::{ErrorKind, io_kind};
use crate::types::SnapshotId;
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::IoError;
use std::path::PathBuf;

/// Why a checkpoint is not whole. `Display` finishes the sentence "the snapshot is not whole: ...".
///
/// Whole means: the first batch is a control batch that begins with SnapshotHeader, the last one
/// holds SnapshotFooter alone and ends where the file ends, and every CRC is right. Kafka asks for
/// the header and the CRCs only, and takes a file that was cut at a batch border for complete (W-8).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFault {
    /// The file does not begin with a batch that begins with SnapshotHeader.
    #[error("no header: the file of {len} bytes does not begin with a SnapshotHeader batch")]
    NoHeader {
        /// Length of the file.
        len: u64,
    },
    /// The file ends after a whole batch that is no footer.
    #[error("no footer: the last batch ends at {len}, the end of the file, and is not a SnapshotFooter")]
    NoFooter {
        /// Length of the file.
        len: u64,
    },
    /// The file ends inside a batch.
    #[error("no footer: the batch at {position} has {size} bytes, the file ends after {left} of them")]
    Cut {
        /// Where the batch begins.
        position: u64,
        /// Bytes the batch should have (at least, when its header is cut).
        size: u64,
        /// Bytes of it that are there.
        left: u64,
    },
    /// Something follows the footer.
    #[error("bytes after footer: the footer ends at {position}, {bytes} bytes follow")]
    BytesAfterFooter {
        /// Where the footer ends.
        position: u64,
        /// How many bytes follow.
        bytes: u64,
    },
    /// A batch does not match its checksum.
    #[error("bad CRC: the batch at {position} should have {expected:08x}, its bytes give {found:08x}")]
    BadCrc {
        /// Where the batch begins.
        position: u64,
        /// Checksum in its header.
        expected: u32,
        /// Checksum of its bytes.
        found: u32,
    },
    /// The bytes at a position are no batch, or a batch's records are not KRaft's.
    #[error("bad batch at {position}")]
    BadBatch {
        /// Where the batch begins.
        position: u64,
        /// What is wrong with it.
        #[source]
        cause: DecodeError,
    },
    /// A kraft.version that only a newer build knows: the file is not damaged.
    #[error("kraft.version {found} is above the newest known here; use a newer build")]
    UnsupportedKRaftVersion {
        /// The version found.
        found: i16,
    },
}

/// Why a checkpoint could not be read (`SnapshotInvalid` in the field cases).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The log has no snapshot of that id (any more).
    #[error("snapshot {id} is not known")]
    Unknown {
        /// The id asked for.
        id: SnapshotId,
    },
    /// The file is not a whole checkpoint.
    #[error("snapshot {} is not whole; use an older one if the log reaches back to it, or fetch it again", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        fault: SnapshotFault,
    },
    /// A position outside the file was asked for.
    #[error("position {position} is outside snapshot {id} of {len} bytes")]
    PositionOutOfRange {
        /// The snapshot.
        id: SnapshotId,
        /// The position asked for.
        position: u64,
        /// Length of the file.
        len: u64,
    },
    /// The lane that read it is gone: the log was closed.
    #[error("the log was closed while the snapshot was read")]
    Closed,
}

impl SnapshotError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SnapshotError::Io(cause) => io_kind(cause),
            SnapshotError::Unknown { .. } | SnapshotError::PositionOutOfRange { .. } => ErrorKind::Invalid,
            SnapshotError::Invalid { fault: SnapshotFault::UnsupportedKRaftVersion { .. }, .. } => {
                ErrorKind::Unsupported
            }
            SnapshotError::Invalid { .. } => ErrorKind::Corrupt,
            SnapshotError::Closed => ErrorKind::Fenced,
        }
    }
}
