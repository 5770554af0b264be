//! Which leader epoch began at which offset, and what that says about another node's log.
//!
//! The batches are the truth; the file `leader-epoch-checkpoint` is a copy for Kafka, written behind
//! them by the log lane and rebuilt by open when it disagrees (behaviour.md W-12, W-42).
//!
//! Invariant: entries ascend strictly in both epoch and start offset.

use crate::types::{Epoch, Offset, SnapshotId};
use kraftlog_codecs::epochs::EpochEntry;

/// The leader epochs of one log, those of batches that only wait included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EpochCache {
    entries: Vec<EpochEntry>,
}

/// An offset with the epoch that it ends: an answer of Kafka's `OffsetsForLeaderEpoch` kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The epoch.
    pub epoch: Epoch,
    /// First offset that is not in it.
    pub end_offset: Offset,
}

/// What a fetch position of another node is to this log (behaviour.md B-101).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// This log has it, in the same epoch.
    Valid,
    /// The logs part below: the other one has to truncate to this.
    Diverging(EpochEnd),
    /// It is below this log: the other one has to fetch this snapshot.
    Snapshot(SnapshotId),
}

/// What a log is, as far as answers about epochs go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) start: Offset,
    pub(crate) end: Offset,
    pub(crate) earliest_snapshot: Option<SnapshotId>,
    pub(crate) latest_snapshot: Option<SnapshotId>,
}

impl EpochCache {
    /// From entries that ascend.
    pub(crate) fn new(entries: Vec<EpochEntry>) -> EpochCache {
        let cache = EpochCache { entries };
        cache.check();
        cache
    }

    pub(crate) fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The newest epoch that has an entry.
    pub(crate) fn last(&self) -> Option<Epoch> {
        self.entries.last().map(|entry| Epoch(entry.epoch))
    }

    /// Batches of `epoch` begin at `start`, unless they have begun before. True if that is news.
    pub(crate) fn assign(&mut self, epoch: Epoch, start: Offset) -> bool {
        if self.last().is_some_and(|last| last >= epoch) {
            return false;
        }
        // An epoch that was begun without any batch has no place in the log (B-103).
        self.cut(start);
        self.entries.push(EpochEntry { epoch: epoch.0, start_offset: start.0 });
        self.check();
        true
    }

    /// The log ends at `end`: epochs that begin there or later are gone. True if there were any.
    pub(crate) fn cut(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.start_offset < end.0);
        self.entries.len() < before
    }

    /// The log starts at `start`: the epoch that covers it begins there, earlier ones are gone (B-121).
    pub(crate) fn cut_before(&mut self, start: Offset) -> bool {
        let covering = self.entries.partition_point(|entry| entry.start_offset <= start.0);
        let Some(index) = covering.checked_sub(1) else { return false };
        let changed = index > 0 || self.entries[index].start_offset != start.0;
        self.entries.drain(..index);
        self.entries[0].start_offset = start.0;
        changed
    }

    /// Newest epoch of the log or of the snapshot that it starts with (B-99); 0 if there is neither.
    pub(crate) fn last_fetched(&self, extent: Extent) -> Epoch {
        match (self.last(), extent.latest_snapshot) {
            (Some(epoch), _) => epoch,
            (None, Some(snapshot)) if snapshot.end_offset == extent.end => snapshot.epoch,
            _ => Epoch::ZERO,
        }
    }

    /// Where `epoch` ends here (B-100).
    pub(crate) fn end_offset_for(&self, epoch: Epoch, extent: Extent) -> EpochEnd {
        let found = self.end_offset_of_entries(epoch, extent);
        match extent.earliest_snapshot {
            Some(earliest) if found.epoch == epoch && found.end_offset == earliest.end_offset => {
                EpochEnd { epoch: earliest.epoch, end_offset: earliest.end_offset }
            }
            _ => found,
        }
    }

    fn end_offset_of_entries(&self, epoch: Epoch, extent: Extent) -> EpochEnd {
        let end_of_log = EpochEnd { epoch: self.last_fetched(extent), end_offset: extent.end };
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return end_of_log;
        };
        if epoch.0 >= last.epoch {
            return end_of_log;
        }
        if epoch.0 < first.epoch {
            return EpochEnd { epoch, end_offset: Offset(first.start_offset) };
        }
        let above = self.entries.partition_point(|entry| entry.epoch <= epoch.0);
        EpochEnd {
            epoch: Epoch(self.entries[above - 1].epoch),
            end_offset: Offset(self.entries[above].start_offset),
        }
    }

    /// Whether another log that ends at `offset` in `epoch` is a beginning of this one (B-101).
    pub(crate) fn validate(&self, offset: Offset, epoch: Epoch, extent: Extent) -> Validity {
        if extent.start == Offset::ZERO && offset == Offset::ZERO {
            return Validity::Valid;
        }
        if let (Some(earliest), Some(latest)) = (extent.earliest_snapshot, extent.latest_snapshot)
            && (offset < extent.start
                || (offset == extent.start && epoch != earliest.epoch)
                || epoch < earliest.epoch)
        {
            return Validity::Snapshot(latest);
        }
        let found = self.end_offset_for(epoch, extent);
        match found.epoch != epoch || found.end_offset < offset {
            true => Validity::Diverging(found),
            false => Validity::Valid,
        }
    }

    fn check(&self) {
        for pair in self.entries.windows(2) {
            assert!(
                pair[0].epoch < pair[1].epoch && pair[0].start_offset < pair[1].start_offset,
                "epoch {} at {} is followed by {} at {}",
                pair[0].epoch,
                pair[0].start_offset,
                pair[1].epoch,
                pair[1].start_offset
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> EpochCache {
        let mut cache = EpochCache::default();
        assert!(cache.assign(Epoch(1), Offset(0)));
        assert!(cache.assign(Epoch(3), Offset(10)));
        assert!(!cache.assign(Epoch(3), Offset(12)));
        assert!(cache.assign(Epoch(6), Offset(20)));
        cache
    }

    fn extent() -> Extent {
        Extent { start: Offset(0), end: Offset(25), earliest_snapshot: None, latest_snapshot: None }
    }

    fn end(epoch: i32, end_offset: i64) -> EpochEnd {
        EpochEnd { epoch: Epoch(epoch), end_offset: Offset(end_offset) }
    }

    #[test]
    fn end_offsets_follow_kafkas_five_cases() {
        let cases = [(6, end(6, 25)), (9, end(6, 25)), (4, end(3, 20)), (3, end(3, 20)), (0, end(0, 0))];
        for (epoch, expected) in cases {
            assert_eq!(cache().end_offset_for(Epoch(epoch), extent()), expected, "epoch {epoch}");
        }
        assert_eq!(EpochCache::default().end_offset_for(Epoch(4), extent()), end(0, 25));
    }

    #[test]
    fn an_epoch_without_batches_leaves_no_entry_behind() {
        let mut cache = cache();
        assert!(cache.assign(Epoch(7), Offset(25)));
        assert!(cache.assign(Epoch(8), Offset(25)));
        assert_eq!(cache.entries().last(), Some(&EpochEntry { epoch: 8, start_offset: 25 }));
        assert_eq!(cache.entries().len(), 4);
        assert!(cache.cut(Offset(25)));
        assert_eq!(cache.last(), Some(Epoch(6)));
    }

    #[test]
    fn the_covering_epoch_is_moved_to_the_start() {
        let mut cache = cache();
        assert!(cache.cut_before(Offset(15)));
        assert_eq!(cache.entries()[0], EpochEntry { epoch: 3, start_offset: 15 });
        assert!(!cache.cut_before(Offset(15)));
    }

    #[test]
    fn a_fetch_position_is_valid_diverging_or_below_the_log() {
        let earliest = SnapshotId::new(10, 1);
        let latest = SnapshotId::new(20, 3);
        let extent = Extent {
            start: Offset(10),
            end: Offset(25),
            earliest_snapshot: Some(earliest),
            latest_snapshot: Some(latest),
        };
        let cache = cache();
        assert_eq!(cache.validate(Offset(22), Epoch(6), extent), Validity::Valid);
        assert_eq!(cache.validate(Offset(22), Epoch(3), extent), Validity::Diverging(end(3, 20)));
        assert_eq!(cache.validate(Offset(9), Epoch(1), extent), Validity::Snapshot(latest));
        assert_eq!(cache.validate(Offset(10), Epoch(3), extent), Validity::Snapshot(latest));
        assert_eq!(cache.validate(Offset(10), Epoch(1), extent), Validity::Valid);
    }
}
