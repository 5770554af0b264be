//! Which checkpoint a log starts from: the rows on snapshots in the table of what open finds.
//!
//! Pure: recovery brings what it found and does what the plan says. Nothing may be renamed or
//! removed before a plan is there, so that a refusal leaves every byte as it was.

use super::fault::SnapshotFault;
use super::inspect::SnapshotHead;
use crate::types::{Epoch, Offset, SnapshotId};

/// What the log has, as far as recovery found it sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogExtent {
    /// Base offset of the first segment; 0 for a directory without one.
    pub first_base: Offset,
    /// Log end offset, after any cut.
    pub end: Offset,
    /// Epoch of the last batch, 0 if there is none.
    pub last_epoch: Epoch,
}

/// A checkpoint and what a look at its header, footer and size said.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// Its id, by the file name.
    pub id: SnapshotId,
    /// Its length in bytes.
    pub len: u64,
    /// What it begins with, or why it is not whole.
    pub content: Result<SnapshotHead, SnapshotFault>,
}

/// Whether a snapshot ahead of the log may replace it. Without a reason it is a lost tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Truncation {
    /// A full truncation to this snapshot had begun (our side file says so).
    pub intent: Option<SnapshotId>,
    /// A Kafka has used the directory since; it records no intent.
    pub kafka_was_here: bool,
}

/// How the log starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPlan {
    /// Log start offset.
    pub start: Offset,
    /// The newest usable snapshot: where voters, kraft.version and state come from.
    pub latest: Option<SnapshotId>,
    /// The log is to be replaced by this snapshot (it is `latest` then): start and end become its end offset.
    pub truncate_fully_to: Option<SnapshotId>,
    /// Not whole, and not needed: to be renamed and reported, never offered.
    pub set_aside: Vec<(SnapshotId, SnapshotFault)>,
    /// Below the first segment and covered by a newer one: to be deleted.
    pub stale: Vec<SnapshotId>,
}

/// Why the log must not start. Nothing may be changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotRefusal {
    /// The log begins above zero and no whole snapshot covers what came before (C-38).
    #[error(
        "log starts at {log_start} and no snapshot ends between there and its end {log_end} (newest usable: {}{}); put the snapshot back or fetch everything again",
        newest.map_or("none".to_owned(), |id| id.to_string()),
        deleted.map_or(String::new(), |id| format!("; {id} is there, marked as deleted"))
    )]
    MissingSnapshot {
        /// Base offset of the first segment.
        log_start: Offset,
        /// Log end offset.
        log_end: Offset,
        /// The newest whole snapshot, which does not help.
        newest: Option<SnapshotId>,
        /// A checkpoint marked for deletion that would have helped.
        deleted: Option<SnapshotId>,
    },
    /// A snapshot is not whole, and the log does not hold what was in it (C-41).
    #[error(
        "snapshot {id} is not whole and the log, from {log_start} to {log_end}, does not hold all that was in it; put back a good copy or fetch it again"
    )]
    SnapshotInvalid {
        /// The snapshot.
        id: SnapshotId,
        /// Base offset of the first segment.
        log_start: Offset,
        /// Log end offset.
        log_end: Offset,
        /// What is wrong with it.
        #[source]
        fault: SnapshotFault,
    },
    /// The newest snapshot ends behind the log: the log has lost its tail (V-10).
    #[error(
        "log ends at {log_end} in epoch {last_epoch}, before the end of snapshot {id}: its tail is lost; put it back, or fetch everything again"
    )]
    LostTail {
        /// The snapshot.
        id: SnapshotId,
        /// Log end offset.
        log_end: Offset,
        /// Epoch of the last batch.
        last_epoch: Epoch,
    },
}

/// Decides how the log starts. `inspected` are all checkpoints in any order, `deleted` those
/// marked for deletion (for the hint of an error).
///
/// # Errors
/// [`SnapshotRefusal`].
pub fn choose(
    log: LogExtent,
    inspected: &[Inspected],
    deleted: &[SnapshotId],
    truncation: Truncation,
) -> Result<SnapshotPlan, SnapshotRefusal> {
    let mut sorted: Vec<&Inspected> = inspected.iter().collect();
    sorted.sort_by_key(|found| found.id);
    let whole = |found: &&&Inspected| found.content.is_ok();
    let newest = sorted.iter().rfind(whole).map(|found| found.id);

    if let Some(id) = newest
        && is_ahead(id, log, truncation)
    {
        return replace_log(id, log, &sorted, truncation);
    }

    let in_log = |id: SnapshotId| (log.first_base..=log.end).contains(&id.end_offset);
    let usable: Vec<SnapshotId> =
        sorted.iter().filter(whole).map(|found| found.id).filter(|id| in_log(*id)).collect();
    let latest = usable.last().copied();
    let set_aside = broken(&sorted, log, latest)?;
    let start = match usable.iter().map(|id| id.end_offset).min() {
        _ if log.first_base == Offset(0) => Offset(0),
        Some(start) => start,
        None => {
            return Err(SnapshotRefusal::MissingSnapshot {
                log_start: log.first_base,
                log_end: log.end,
                newest,
                deleted: deleted.iter().rfind(|id| in_log(**id)).copied(),
            });
        }
    };
    let stale = sorted.iter().filter(whole).map(|found| found.id).filter(|id| id.end_offset < log.first_base);
    Ok(SnapshotPlan { start, latest, truncate_fully_to: None, set_aside, stale: stale.collect() })
}

/// B-108, held against the reasons a log can rightly be behind a snapshot. Without such a reason
/// only the end counts: a snapshot of a newer epoch that the log reaches does no harm.
fn is_ahead(id: SnapshotId, log: LogExtent, truncation: Truncation) -> bool {
    id.end_offset > log.end || (id.epoch > log.last_epoch && allows(truncation, id))
}

fn allows(truncation: Truncation, id: SnapshotId) -> bool {
    truncation.kafka_was_here || truncation.intent == Some(id)
}

fn replace_log(
    id: SnapshotId,
    log: LogExtent,
    sorted: &[&Inspected],
    truncation: Truncation,
) -> Result<SnapshotPlan, SnapshotRefusal> {
    // A snapshot of an older epoch than the log's is not one that the log was truncated for.
    if !allows(truncation, id) || id.epoch < log.last_epoch {
        return Err(SnapshotRefusal::LostTail { id, log_end: log.end, last_epoch: log.last_epoch });
    }
    let mut set_aside = Vec::new();
    let mut stale = Vec::new();
    for found in sorted.iter().filter(|found| found.id != id) {
        match &found.content {
            // A broken one that is newer still may hold more than the whole one.
            Err(fault) if found.id > id => return Err(invalid(found.id, fault, log)),
            Err(fault) => set_aside.push((found.id, fault.clone())),
            Ok(_) => stale.push(found.id),
        }
    }
    let (start, latest) = (id.end_offset, Some(id));
    Ok(SnapshotPlan { start, latest, truncate_fully_to: latest, set_aside, stale })
}

/// The snapshots that are not whole, if the log starts without them.
fn broken(
    sorted: &[&Inspected],
    log: LogExtent,
    latest: Option<SnapshotId>,
) -> Result<Vec<(SnapshotId, SnapshotFault)>, SnapshotRefusal> {
    let mut set_aside = Vec::new();
    for found in sorted {
        let Err(fault) = &found.content else { continue };
        let covered = latest.is_some_and(|latest| latest > found.id && latest.end_offset > Offset(0));
        // The zero checkpoint is the only place of the first voters and bootstrap records until a
        // snapshot covers them, and a log from zero does not tell whether it has taken them over.
        let zero = found.id.end_offset == Offset(0);
        let reached = found.id.end_offset <= log.end;
        let from = log.first_base == Offset(0) || latest.is_some();
        let newer_build = matches!(fault, SnapshotFault::UnsupportedKRaftVersion { .. });
        if !covered && (newer_build || zero || !reached || !from) {
            return Err(invalid(found.id, fault, log));
        }
        set_aside.push((found.id, fault.clone()));
    }
    Ok(set_aside)
}

fn invalid(id: SnapshotId, fault: &SnapshotFault, log: LogExtent) -> SnapshotRefusal {
    let (log_start, log_end) = (log.first_base, log.end);
    SnapshotRefusal::SnapshotInvalid { id, log_start, log_end, fault: fault.clone() }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
