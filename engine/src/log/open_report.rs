//! What open found, cut, kept and rebuilt.

use crate::snapshot::SnapshotFault;
use crate::state::StateFault;
use crate::types::{Epoch, Offset, SnapshotId};
use kraftlog_io::BackendReport;
use std::fmt;
use std::path::PathBuf;

/// How much of the log open had to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scanned {
    /// The last batch alone: the log was closed.
    Tail,
    /// From the last batch that was known to be durable.
    SinceDurable,
    /// Everything.
    All,
}

/// Bytes that were cut off the end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// The segment.
    pub path: PathBuf,
    /// Its length now.
    pub position: u64,
    /// How many bytes were cut, later segments included.
    pub bytes: u64,
    /// Where the log ends now.
    pub end: Offset,
    /// What was wrong at the position.
    pub reason: String,
    /// Where the cut bytes are kept.
    pub kept: Vec<PathBuf>,
}

/// What [`MetadataLog::open`](crate::MetadataLog::open) found and did. `Display` is for people.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenReport {
    /// The part directory.
    pub path: PathBuf,
    /// Which back end serves it, and why.
    pub backend: BackendReport,
    /// Log start offset.
    pub start: Offset,
    /// Log end offset.
    pub end: Offset,
    /// Newest epoch of a batch.
    pub last_epoch: Epoch,
    /// Number of segments.
    pub segments: usize,
    /// How much was read.
    pub scanned: Scanned,
    /// Batches that were checked.
    pub batches: u64,
    /// Newest usable snapshot.
    pub snapshot: Option<SnapshotId>,
    /// A Kafka has used the directory since this engine did.
    pub kafka_was_here: bool,
    /// A torn end was cut.
    pub torn_tail: Option<Cut>,
    /// Bytes of zeros behind the data, left by preallocation, that were cut.
    pub zero_tail_bytes: u64,
    /// Bytes that were written again, since nobody knows whether the disk has them.
    pub rewritten_bytes: u64,
    /// Index files that were rebuilt, and why.
    pub indexes_rebuilt: Vec<(PathBuf, String)>,
    /// Why `leader-epoch-checkpoint` was rebuilt.
    pub epochs_rebuilt: Option<String>,
    /// Why `kraftlog.state` counted as none.
    pub state_fault: Option<StateFault>,
    /// The log is not empty, but there is no `quorum-state`.
    pub quorum_state_missing: bool,
    /// The log was replaced by this snapshot.
    pub truncated_to: Option<SnapshotId>,
    /// Snapshots that are not whole and were renamed.
    pub set_aside: Vec<(PathBuf, SnapshotFault)>,
    /// Left-overs that were removed.
    pub removed: Vec<String>,
    /// Names with one of Kafka's suffixes that no Kafka writes; left alone.
    pub malformed: Vec<String>,
}

impl OpenReport {
    /// True if the open found nothing that an operator should hear of.
    pub fn is_quiet(&self) -> bool {
        self.torn_tail.is_none()
            && self.indexes_rebuilt.is_empty()
            && self.epochs_rebuilt.is_none()
            && self.state_fault.is_none()
            && self.truncated_to.is_none()
            && self.set_aside.is_empty()
            && !self.quorum_state_missing
    }
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: offsets {} to {}, epoch {}, {} segment(s), back end {}",
            self.path.display(),
            self.start,
            self.end,
            self.last_epoch,
            self.segments,
            self.backend
        )?;
        match self.scanned {
            Scanned::Tail => write!(f, "\nclosed cleanly, {} batch(es) checked", self.batches)?,
            Scanned::SinceDurable => write!(f, "\nnot closed, {} batch(es) checked", self.batches)?,
            Scanned::All => write!(f, "\nall {} batch(es) checked", self.batches)?,
        }
        if self.kafka_was_here {
            f.write_str("\na Kafka has used the directory since")?;
        }
        if let Some(cut) = &self.torn_tail {
            let Cut { path, position, bytes, end, reason, kept } = cut;
            write!(
                f,
                "\nTornTail: {} cut at byte {position}, offset {end}: {bytes} bytes removed ({reason})",
                path.display()
            )?;
            for kept in kept {
                write!(f, ", kept in {}", kept.display())?;
            }
        }
        if let Some(fault) = &self.state_fault {
            write!(f, "\nkraftlog.state was not used: {fault}")?;
        }
        if let Some(id) = self.truncated_to {
            write!(f, "\nthe log was replaced by snapshot {id}")?;
        }
        for (path, why) in &self.indexes_rebuilt {
            write!(f, "\nIndexRebuilt: {}: {why}", path.display())?;
        }
        if let Some(why) = &self.epochs_rebuilt {
            write!(f, "\nEpochCacheRebuilt: {why}")?;
        }
        for (path, fault) in &self.set_aside {
            write!(f, "\nSnapshotInvalid: {} is not whole: {fault}; renamed", path.display())?;
        }
        for name in &self.removed {
            write!(f, "\nleft over, removed: {name}")?;
        }
        if self.quorum_state_missing {
            f.write_str("\nquorum-state is missing although the log is not empty")?;
        }
        Ok(())
    }
}
