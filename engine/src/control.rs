//! Voter sets and kraft.version over offsets, as the control records of the log and of the newest
//! snapshot tell them (Kafka's `KRaftControlRecordStateMachine`).
//!
//! The history is fed with every batch in log order, at open from the snapshot and then the whole
//! log, later by each append, *uncommitted records included*: a voter set counts from the moment it
//! is in the log. Data batches are passed over by their header, without decoding.
//!
//! Invariants:
//! - entries have strictly increasing offsets, all below `next`, none below -1;
//! - offset -1 is the zero checkpoint, the only entry that was never in a log.
//!
//! [`ControlHistory`] is pure: no files, no locks. Which batches exist and what is cut is the log
//! lane's business.

use crate::handle::MetadataLog;
use crate::types::{NodeId, Offset, SnapshotId};
use kraftlog_codecs::batch::Batch;
use kraftlog_codecs::control::{ControlRecord, KRaftVersion, LeaderChange, LeaderVoters, Voter};
use kraftlog_codecs::error::DecodeError;
use kraftlog_codecs::uuid::Uuid;

pub use kraftlog_codecs::control::Voters as VoterSet;

/// Highest kraft.version that is known here.
pub const KRAFT_VERSION_MAX: i16 = 1;

/// Why the control records cannot be taken over, or a question about them not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A control record does not decode.
    #[error("control record at offset {offset} cannot be decoded")]
    Undecodable {
        /// Offset of the record, or of its batch when the walk itself fails.
        offset: Offset,
        /// What is wrong with it.
        #[source]
        cause: DecodeError,
    },
    /// A kraft.version that only a newer build knows.
    #[error(
        "kraft.version {found} at offset {offset} is above {KRAFT_VERSION_MAX}, the newest known here; use a newer build"
    )]
    UnsupportedKRaftVersion {
        /// Offset of the record.
        offset: Offset,
        /// The version found.
        found: i16,
    },
    /// A question about an offset that is not in the log yet (B-152).
    #[error("offset {offset} is not below the log end {next}: what holds there is not known yet")]
    NotReadYet {
        /// The offset asked for.
        offset: Offset,
        /// First offset that is not read yet.
        next: Offset,
    },
}

/// Why no leader change can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderChangeRefusal {
    /// Neither log nor snapshot has a voter set, and none was configured.
    #[error("kraft.version is {kraft_version} but no voter set is in the log, in a snapshot or configured")]
    NoVoterSet {
        /// The kraft.version in force.
        kraft_version: i16,
    },
    /// The leader is not one of the voters.
    #[error("node {leader} is not in the voter set and cannot be leader")]
    NotAVoter {
        /// The node that asked.
        leader: NodeId,
    },
    /// The leader's id is a voter, under another directory id.
    #[error("node {leader} is a voter with directory id {expected}, not {found}: another disk")]
    OtherDirectory {
        /// The node that asked.
        leader: NodeId,
        /// Directory id in the voter set.
        expected: Uuid,
        /// Directory id of the node that asked.
        found: Uuid,
    },
}

/// What the first batch of an epoch holds, in this order (B-86).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochStart {
    /// Id of the leader.
    pub leader: i32,
    /// Ids of the voters of this epoch.
    pub voters: Vec<i32>,
    /// KRaftVersion and Voters records that go into the same batch, behind the leader change.
    pub rewrite: Option<(i16, VoterSet)>,
}

impl EpochStart {
    /// The records of the batch. `granting` are the voters that granted their vote, the leader
    /// included.
    pub fn records<'a>(&'a self, granting: &'a [i32]) -> Vec<ControlRecord<'a>> {
        let mut records = vec![ControlRecord::LeaderChange(LeaderChange {
            leader_id: self.leader,
            voters: LeaderVoters::from_ids(&self.voters),
            granting_voters: LeaderVoters::from_ids(granting),
            ..LeaderChange::default()
        })];
        if let Some((kraft_version, voters)) = &self.rewrite {
            let kraft_version = *kraft_version;
            records
                .push(ControlRecord::KRaftVersion(KRaftVersion { kraft_version, ..KRaftVersion::default() }));
            records.push(ControlRecord::Voters(voters.clone()));
        }
        records
    }
}

/// Voter sets and kraft.version over offsets.
#[derive(Debug, Clone)]
pub struct ControlHistory {
    voters: History<VoterSet>,
    kraft_version: History<i16>,
    static_voters: Option<VoterSet>,
    next: Offset,
}

impl ControlHistory {
    /// An empty history. `static_voters` are those of `controller.quorum.voters`, which count while
    /// no voter set is in the log.
    pub fn new(static_voters: Option<VoterSet>) -> ControlHistory {
        ControlHistory {
            voters: History::new(),
            kraft_version: History::new(),
            static_voters,
            next: Offset(0),
        }
    }

    /// Forgets everything and begins with what the snapshot `id` says: its control records count
    /// from `id.end_offset - 1`, which is -1 for the zero checkpoint (B-150). The log is to be fed
    /// from `id.end_offset` on.
    ///
    /// # Errors
    /// [`ControlError::UnsupportedKRaftVersion`]; the history is empty then.
    pub fn load_snapshot(
        &mut self,
        id: SnapshotId,
        kraft_version: Option<i16>,
        voters: Option<VoterSet>,
    ) -> Result<(), ControlError> {
        self.reset(id.end_offset);
        let offset = Offset(id.end_offset.0 - 1);
        if let Some(version) = kraft_version {
            check_kraft_version(offset, version)?;
            self.kraft_version.push(offset, version);
        }
        if let Some(voters) = voters {
            self.voters.push(offset, voters);
        }
        Ok(())
    }

    /// Forgets everything; the log is to be fed from `next` on.
    pub fn reset(&mut self, next: Offset) {
        self.voters.entries.clear();
        self.kraft_version.entries.clear();
        self.next = next;
    }

    /// Takes the next batch of the log. True if it changed the voters or kraft.version.
    ///
    /// A batch that lies wholly below the offsets read so far is passed over, so that a snapshot
    /// and a log that overlap can be fed one after the other. Unknown control types take up their
    /// offset and nothing else (C-28).
    ///
    /// # Errors
    /// [`ControlError`]; the history is as it was before.
    pub fn apply(&mut self, batch: &Batch<'_>) -> Result<bool, ControlError> {
        let header = batch.header();
        let next = Offset(header.next_offset());
        if next <= self.next {
            return Ok(false);
        }
        let mut found = Found::default();
        if header.is_control() {
            found = Found::read(batch, self.next)?;
        }
        self.next = next;
        let changed = found.voters.is_some() || found.kraft_version.is_some();
        if let Some((offset, version)) = found.kraft_version {
            self.kraft_version.push(offset, version);
        }
        if let Some((offset, voters)) = found.voters {
            self.voters.push(offset, voters);
        }
        Ok(changed)
    }

    /// Nothing that matters here lies below `end`: for open, which feeds only the batches that do.
    pub(crate) fn known_up_to(&mut self, end: Offset) {
        self.next = self.next.max(end);
    }

    /// The log was cut to `end`: forgets what was said at or above it.
    pub fn truncate_to(&mut self, end: Offset) {
        self.voters.truncate(end);
        self.kraft_version.truncate(end);
        self.next = self.next.min(end);
    }

    /// A snapshot that ends at `end` is durable: forgets all but the newest of what was said below
    /// it (B-151).
    pub fn truncate_before(&mut self, end: Offset) {
        let last = Offset(end.0 - 1);
        self.voters.compact(last);
        self.kraft_version.compact(last);
    }

    /// The voter set in force after the record at `offset`, if log or snapshot has one; never the
    /// configured static voters. Offset -1 asks for the zero checkpoint's.
    ///
    /// # Errors
    /// [`ControlError::NotReadYet`] at or above the log end.
    pub fn voters_at(&self, offset: Offset) -> Result<Option<&VoterSet>, ControlError> {
        self.check_read(offset)?;
        Ok(self.voters.at_or_before(offset))
    }

    /// kraft.version in force after the record at `offset`; 0 if nothing says more.
    ///
    /// # Errors
    /// [`ControlError::NotReadYet`] at or above the log end.
    pub fn kraft_version_at(&self, offset: Offset) -> Result<i16, ControlError> {
        self.check_read(offset)?;
        Ok(self.kraft_version.at_or_before(offset).copied().unwrap_or(0))
    }

    /// The newest voter set with its offset, uncommitted ones included; the static voters have none.
    pub fn last_voters(&self) -> Option<(Option<Offset>, &VoterSet)> {
        match self.voters.entries.last() {
            Some((offset, voters)) => Some((Some(*offset), voters)),
            None => self.static_voters.as_ref().map(|voters| (None, voters)),
        }
    }

    /// The newest kraft.version, uncommitted ones included.
    pub fn last_kraft_version(&self) -> i16 {
        self.kraft_version.entries.last().map_or(0, |(_, version)| *version)
    }

    /// First offset that was not fed yet.
    pub fn next_offset(&self) -> Offset {
        self.next
    }

    /// What `leader` has to write as the first batch of its epoch (B-86, formats.md 3.8).
    ///
    /// At kraft.version 1 the batch repeats KRaftVersion and Voters when the newest voter set comes
    /// from the zero checkpoint, which no follower ever gets, or when the leader's own endpoints or
    /// version range have changed. Below it, LeaderChange stands alone.
    ///
    /// # Errors
    /// [`LeaderChangeRefusal`]; nothing may be written then.
    pub fn epoch_start(&self, leader: &Voter) -> Result<EpochStart, LeaderChangeRefusal> {
        let kraft_version = self.last_kraft_version();
        let no_voter_set = LeaderChangeRefusal::NoVoterSet { kraft_version };
        let (offset, set) = self.last_voters().ok_or(no_voter_set.clone())?;
        // Of two entries with one id the last counts, as in Kafka.
        let known = set
            .voters
            .iter()
            .rfind(|voter| voter.id == leader.id)
            .ok_or(LeaderChangeRefusal::NotAVoter { leader: NodeId(leader.id) })?;
        let voters = set.voters.iter().map(|voter| voter.id).collect();
        if kraft_version == 0 {
            return Ok(EpochStart { leader: leader.id, voters, rewrite: None });
        }

        // At kraft.version 1 static voters do not count any more.
        let offset = offset.ok_or(no_voter_set)?;
        if known.directory_id != Uuid::ZERO && known.directory_id != leader.directory_id {
            return Err(LeaderChangeRefusal::OtherDirectory {
                leader: NodeId(leader.id),
                expected: known.directory_id,
                found: leader.directory_id,
            });
        }
        let rewrite = (offset < Offset(0) || known != leader).then(|| {
            let mut set = set.clone();
            for voter in set.voters.iter_mut().filter(|voter| voter.id == leader.id) {
                *voter = leader.clone();
            }
            (kraft_version, set)
        });
        Ok(EpochStart { leader: leader.id, voters, rewrite })
    }

    fn check_read(&self, offset: Offset) -> Result<(), ControlError> {
        if offset >= self.next {
            return Err(ControlError::NotReadYet { offset, next: self.next });
        }
        Ok(())
    }
}

impl MetadataLog {
    /// The voter set in force after the record at `offset`, uncommitted records included; `None` if
    /// neither log nor snapshot has one. Configured static voters are never given. Offset -1 asks
    /// for the zero checkpoint's. Below the newest snapshot older sets may be forgotten (B-151).
    ///
    /// # Errors
    /// [`ControlError::NotReadYet`] at or above the log end.
    pub fn voters_at(&self, offset: Offset) -> Result<Option<VoterSet>, ControlError> {
        Ok(self.shared().control.lock().voters_at(offset)?.cloned())
    }

    /// kraft.version in force after the record at `offset`; 0 if nothing says more.
    ///
    /// # Errors
    /// [`ControlError::NotReadYet`] at or above the log end.
    pub fn kraft_version_at(&self, offset: Offset) -> Result<i16, ControlError> {
        self.shared().control.lock().kraft_version_at(offset)
    }
}

fn check_kraft_version(offset: Offset, found: i16) -> Result<(), ControlError> {
    if (0..=KRAFT_VERSION_MAX).contains(&found) {
        return Ok(());
    }
    Err(ControlError::UnsupportedKRaftVersion { offset, found })
}

/// What one control batch says; the last one wins, as in Kafka.
#[derive(Default)]
struct Found {
    kraft_version: Option<(Offset, i16)>,
    voters: Option<(Offset, VoterSet)>,
}

impl Found {
    /// Reads the records of a control batch at and above `from`.
    fn read(batch: &Batch<'_>, from: Offset) -> Result<Found, ControlError> {
        let (base, next) = (Offset(batch.header().base_offset), Offset(batch.header().next_offset()));
        let undecodable = |offset, cause| ControlError::Undecodable { offset, cause };
        let mut found = Found::default();
        for record in batch.records().map_err(|cause| undecodable(base, cause))? {
            let record = record.map_err(|cause| undecodable(base, cause))?;
            let offset = Offset(record.offset);
            if offset < from {
                continue;
            }
            if offset >= next {
                return Err(undecodable(offset, DecodeError::BadOffset));
            }
            let (key, value) = (record.key.unwrap_or_default(), record.value.unwrap_or_default());
            match ControlRecord::decode(key, value).map_err(|cause| undecodable(offset, cause))? {
                ControlRecord::KRaftVersion(version) => {
                    check_kraft_version(offset, version.kraft_version)?;
                    found.kraft_version = Some((offset, version.kraft_version));
                }
                ControlRecord::Voters(voters) => found.voters = Some((offset, voters)),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Values by the offset from which they hold.
#[derive(Debug, Clone)]
struct History<T> {
    entries: Vec<(Offset, T)>,
}

impl<T> History<T> {
    fn new() -> History<T> {
        History { entries: Vec::new() }
    }

    fn last_offset(&self) -> Option<Offset> {
        self.entries.last().map(|(offset, _)| *offset)
    }

    fn push(&mut self, offset: Offset, value: T) {
        assert!(offset >= Offset(-1), "an entry at offset {offset} cannot be in a log or snapshot");
        let last = self.last_offset();
        assert!(last.is_none_or(|last| last < offset), "entry at {offset} after one at {last:?}");
        self.entries.push((offset, value));
    }

    fn at_or_before(&self, offset: Offset) -> Option<&T> {
        let above = self.entries.partition_point(|(at, _)| *at <= offset);
        self.entries[..above].last().map(|(_, value)| value)
    }

    fn truncate(&mut self, end: Offset) {
        let keep = self.entries.partition_point(|(at, _)| *at < end);
        self.entries.truncate(keep);
    }

    fn compact(&mut self, offset: Offset) {
        let at_or_before = self.entries.partition_point(|(at, _)| *at <= offset);
        self.entries.drain(..at_or_before.saturating_sub(1));
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
