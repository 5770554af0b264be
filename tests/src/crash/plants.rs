//! Mistakes on purpose. Each must be found by the explorations, or they prove nothing.
//!
//! Some are made by the disk, which leaves out a step as a forgetful programmer would ([`Mistake::Skips`]);
//! the others are planted in the code where somebody could make them (feature `planted`).

use super::exhaustive::{self, Bounds, Scenario};
use super::faults;
use super::identity::{self, STORIES};
use super::report::{Tally, Violation};
use kraftlog_io::Op;
use kraftlog_io::planted::Plant;
use kraftlog_io::sim::{Fault, Step};

/// One mistake.
#[derive(Debug, Clone, Copy)]
pub enum Mistake {
    /// The step is never taken: operation, and a part of the file's name.
    Skips(Op, &'static str),
    /// The mistake is in the code.
    Planted(Plant),
}

/// All of them, each with what it is.
pub const MISTAKES: &[(&str, Mistake)] = &[
    ("the log is not synced behind a write", Mistake::Skips(Op::Sync, ".log")),
    ("a vote is renamed without having been synced", Mistake::Skips(Op::Sync, "quorum-state.tmp")),
    ("the side file is renamed without having been synced", Mistake::Skips(Op::Sync, "kraftlog.state.tmp")),
    ("a snapshot is renamed without having been synced", Mistake::Skips(Op::Sync, ".checkpoint")),
    ("no directory is ever synced", Mistake::Skips(Op::SyncDir, "__cluster_metadata-0")),
    ("the name of the part directory is not synced", Mistake::Skips(Op::SyncDir, "/node")),
    ("a short write is taken for a whole one", Mistake::Planted(Plant::TrustShortWrite)),
    ("appends are acknowledged before their sync", Mistake::Planted(Plant::AcknowledgeBeforeSync)),
    ("the durable end moves before the sync", Mistake::Planted(Plant::DurableEndBeforeSync)),
    ("open offers the last segment only", Mistake::Planted(Plant::OpenForgetsSegments)),
    ("a failed sync is ignored", Mistake::Planted(Plant::IgnoreFailedSync)),
    ("a failed sync is asked for again and believed", Mistake::Planted(Plant::RetryFailedSync)),
    ("a failed write is acknowledged", Mistake::Planted(Plant::AcknowledgeFailedWrite)),
    ("a replaced file is renamed before it is synced", Mistake::Planted(Plant::RenameBeforeSync)),
    ("a replaced file's name is not synced", Mistake::Planted(Plant::ReplaceWithoutDirSync)),
    ("a snapshot is published before it is synced", Mistake::Planted(Plant::SnapshotPublishedBeforeSync)),
    ("a snapshot's name is not synced", Mistake::Planted(Plant::SnapshotWithoutDirSync)),
    ("a snapshot is published without having been read back", Mistake::Planted(Plant::SnapshotUnverified)),
    ("what a failed write left is cut off, but not durably", Mistake::Planted(Plant::CutBackWithoutSync)),
    ("a new segment's name is not synced", Mistake::Planted(Plant::RollWithoutDirSync)),
    ("an old segment keeps its reserve when the log rolls", Mistake::Planted(Plant::RollWithoutTrim)),
    ("the side file claims what is not durable", Mistake::Planted(Plant::StateClaimsWritten)),
    ("open trusts what is in the cache", Mistake::Planted(Plant::OpenWithoutRewrite)),
    ("whatever is bad is cut", Mistake::Planted(Plant::CutWhateverIsBad)),
    ("a new directory's name is not synced", Mistake::Planted(Plant::DirWithoutParentSync)),
    ("a directory is called formatted before it is", Mistake::Planted(Plant::FormatMetaPropertiesFirst)),
    ("a vote is answered before it is durable", Mistake::Planted(Plant::VoteBeforeSync)),
];

/// Leaves out the steps that somebody forgot.
pub(crate) type Skipper = Box<dyn FnMut(&Step) -> Option<Fault> + Send>;

impl Mistake {
    /// What leaves its steps out, if the disk makes the mistake.
    pub(crate) fn skipper(&self) -> Option<Skipper> {
        let Mistake::Skips(op, name) = *self else { return None };
        Some(Box::new(move |step| {
            let names = step.path.to_string_lossy().ends_with(name)
                || (op == Op::Sync && step.path.to_string_lossy().contains(name));
            (step.op == op && names).then_some(Fault::Skipped)
        }))
    }
}

/// Explores with a mistake in place until something shows it; `None` if nothing does.
pub fn find(mistake: &Mistake, tally: &mut Tally) -> Option<Violation> {
    if let Mistake::Planted(plant) = mistake {
        plant_it(Some(*plant));
    }
    let found = explore(mistake, tally);
    plant_it(None);
    found
}

fn explore(mistake: &Mistake, tally: &mut Tally) -> Option<Violation> {
    for story in 0..STORIES.len() {
        if let Some(violation) = identity::explore(story, Some(mistake), tally) {
            return Some(violation);
        }
    }
    for length in 0..=2 {
        for scenario in Scenario::all(length) {
            if let Some(violation) = exhaustive::explore(&scenario, Bounds::default(), Some(mistake), tally) {
                return Some(violation);
            }
            if length == 1
                && let Some(violation) = faults::explore(&scenario, Some(mistake), tally)
            {
                return Some(violation);
            }
        }
    }
    None
}

#[cfg(feature = "planted")]
fn plant_it(plant: Option<Plant>) {
    kraftlog_io::planted::choose(plant);
}

/// Without the feature there is nothing to plant, and the caller has said so.
#[cfg(not(feature = "planted"))]
fn plant_it(_plant: Option<Plant>) {}
