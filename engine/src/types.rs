//! The words of the whole crate: offsets, epochs, nodes, snapshot ids.
//!
//! They are plain numbers on disk and newtypes here, so that an offset is never taken for an epoch.

use std::fmt;

pub use kraftlog_codecs::control::{Endpoint, Voter, Voters as VoterSet};

/// Place of a record in the log; a batch has as many as it has records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub i64);

impl Offset {
    /// The first offset of all.
    pub const ZERO: Offset = Offset(0);
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Leader epoch: the term of one leader. 0 is the epoch before the first leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub i32);

impl Epoch {
    /// The epoch before the first leader.
    pub const ZERO: Epoch = Epoch(0);
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Id of a node, as `node.id` has it. Never negative for a node that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which state a snapshot holds: everything in offsets below `end_offset`, whose last record is of
/// `epoch`.
///
/// Ordered by epoch, then offset, as Kafka orders them (`OffsetAndEpoch.compareTo`). `Display` is the
/// stem of the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SnapshotId {
    /// The first offset that is not in it.
    pub end_offset: Offset,
    /// Leader epoch of the record before `end_offset`; 0 for the zero checkpoint.
    pub epoch: Epoch,
}

impl SnapshotId {
    /// The checkpoint that `format` writes: voters and bootstrap records, never state.
    pub const ZERO: SnapshotId = SnapshotId { end_offset: Offset::ZERO, epoch: Epoch::ZERO };

    /// An id from plain numbers.
    pub fn new(end_offset: i64, epoch: i32) -> SnapshotId {
        SnapshotId { end_offset: Offset(end_offset), epoch: Epoch(epoch) }
    }
}

impl Ord for SnapshotId {
    fn cmp(&self, other: &SnapshotId) -> std::cmp::Ordering {
        (self.epoch, self.end_offset).cmp(&(other.epoch, other.end_offset))
    }
}

impl PartialOrd for SnapshotId {
    fn partial_cmp(&self, other: &SnapshotId) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{:010}", self.end_offset.0, self.epoch.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_ids_are_ordered_by_epoch_before_offset() {
        assert!(SnapshotId::new(900, 1) < SnapshotId::new(5, 2));
        assert!(SnapshotId::new(5, 2) < SnapshotId::new(6, 2));
        assert_eq!(SnapshotId::new(4, 2).to_string(), "00000000000000000004-0000000002");
    }
}
