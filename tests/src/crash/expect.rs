//! What a node was promised, and what it merely asked for: what must, may and must not be found after a
//! crash.
//!
//! Kept on the client's side. It changes at the moment at which the client calls or is answered, so a
//! copy of it belongs to every moment at which the power may fail.

use kraftlog::SnapshotId;
use kraftlog_codecs::quorum::QuorumState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How an append came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not answered, or answered with "unknown": may be there or not.
    Open,
    /// Acknowledged: is there.
    Durable,
    /// Failed before anything was synced: is not there.
    Refused,
}

/// A batch that was queued.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) outcome: Outcome,
}

/// A snapshot that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Snapshot {
    Begun,
    /// Frozen, with the content of its file.
    Frozen(Arc<[u8]>),
}

/// Everything that a client of the log knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expect {
    /// By base offset. The last attempt at an offset is the one that counts; those before it failed.
    pub(crate) batches: BTreeMap<i64, Vec<Attempt>>,
    /// Everything below was acknowledged.
    pub(crate) durable_end: i64,
    /// The vote that was acknowledged.
    pub(crate) vote: Option<QuorumState>,
    /// Later ones that were asked for and not answered, or with "unknown".
    pub(crate) votes_asked: Vec<QuorumState>,
    pub(crate) snapshots: BTreeMap<SnapshotId, Snapshot>,
    /// Grows with every change; two equal ones of one history expect the same.
    pub(crate) version: u64,
}

impl Expect {
    /// A batch was queued; gives which attempt at its offset it is. There may be a later one before
    /// this one hears that it failed.
    pub(crate) fn queued(&mut self, base: i64, bytes: Vec<u8>) -> usize {
        self.version += 1;
        let attempts = self.batches.entry(base).or_default();
        attempts.push(Attempt { bytes: bytes.into(), outcome: Outcome::Open });
        attempts.len() - 1
    }

    /// An attempt at `base` was answered; `next` is the offset behind it.
    pub(crate) fn answered(&mut self, base: i64, attempt: usize, next: i64, outcome: Outcome) {
        self.version += 1;
        if let Some(attempt) = self.batches.get_mut(&base).and_then(|attempts| attempts.get_mut(attempt)) {
            attempt.outcome = outcome;
        }
        if outcome == Outcome::Durable {
            self.durable_end = self.durable_end.max(next);
        }
    }

    pub(crate) fn voting(&mut self, vote: &QuorumState) {
        self.version += 1;
        self.votes_asked.push(vote.clone());
    }

    pub(crate) fn voted(&mut self) {
        self.version += 1;
        self.vote = self.votes_asked.pop().or(self.vote.take());
        self.votes_asked.clear();
    }

    /// The vote was refused, and the old one counts.
    pub(crate) fn not_voted(&mut self) {
        self.version += 1;
        self.votes_asked.pop();
    }

    pub(crate) fn snapshot(&mut self, id: SnapshotId, state: Snapshot) {
        self.version += 1;
        self.snapshots.insert(id, state);
    }

    /// Whether `bytes` may be the batch at `base`; the error says why not.
    pub(crate) fn may_be_at(&self, base: i64, bytes: &[u8]) -> Result<(), String> {
        let attempts = self.batches.get(&base).map(Vec::as_slice).unwrap_or_default();
        match attempts.iter().rposition(|attempt| *attempt.bytes == *bytes) {
            None if attempts.is_empty() => Err(format!("nobody wrote a batch at offset {base}")),
            None => Err(format!("the batch at offset {base} is not the one that was written")),
            Some(at) if attempts[at].outcome == Outcome::Refused => {
                Err(format!("the append at offset {base} had failed, and is in the log all the same"))
            }
            // A later attempt at the offset was only made because this one was taken back.
            Some(at) if at + 1 < attempts.len() => {
                Err(format!("the append at offset {base} was taken back, and is in the log all the same"))
            }
            Some(_) => Ok(()),
        }
    }

    /// Where the last acknowledged batch begins.
    pub(crate) fn last_base(&self) -> i64 {
        let durable = |attempts: &Vec<Attempt>| {
            attempts.last().is_some_and(|attempt| attempt.outcome == Outcome::Durable)
        };
        self.batches.iter().rev().find(|(_, attempts)| durable(attempts)).map_or(0, |(base, _)| *base)
    }

    /// Whether anybody ever wrote these bytes there.
    pub(crate) fn was_written_at(&self, base: i64, bytes: &[u8]) -> bool {
        self.batches
            .get(&base)
            .is_some_and(|attempts| attempts.iter().any(|attempt| *attempt.bytes == *bytes))
    }

    /// A log was opened and ends at `end`: what it has is durable, what it has not is gone for good.
    pub(crate) fn opened(
        &mut self,
        end: i64,
        vote: Option<QuorumState>,
        snapshots: &[(SnapshotId, Arc<[u8]>)],
    ) {
        self.version += 1;
        self.batches.split_off(&end);
        for attempts in self.batches.values_mut() {
            attempts.drain(..attempts.len() - 1);
            attempts[0].outcome = Outcome::Durable;
        }
        self.durable_end = end;
        self.vote = vote;
        self.votes_asked.clear();
        self.snapshots = snapshots.iter().cloned().map(|(id, file)| (id, Snapshot::Frozen(file))).collect();
    }
}
