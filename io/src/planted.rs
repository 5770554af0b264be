//! Faults planted in our own code (feature `planted`), one at a time, chosen at run time.
//!
//! A crash test that never fails proves nothing. Each plant is a mistake that somebody could make, in
//! the place where he would make it; the crash tests must find every one. Without the feature [`is`] is
//! `false` at compile time and the planted lines are gone.

/// The mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Plant {
    /// A write that came up short is taken for a whole one.
    TrustShortWrite,
    /// Appends are acknowledged before their sync.
    AcknowledgeBeforeSync,
    /// The durable end moves before the sync.
    DurableEndBeforeSync,
    /// Open offers the last segment only.
    OpenForgetsSegments,
    /// A failed sync of the log is taken for a good one.
    IgnoreFailedSync,
    /// A failed sync of the log is asked for again, and believed then.
    RetryFailedSync,
    /// A replaced file is renamed before it is synced.
    RenameBeforeSync,
    /// The name of a replaced file is not synced.
    ReplaceWithoutDirSync,
    /// A new directory's name is not synced.
    DirWithoutParentSync,
    /// A snapshot gets its name before it is synced.
    SnapshotPublishedBeforeSync,
    /// A snapshot gets its name without having been read back.
    SnapshotUnverified,
    /// The name of a published snapshot is not synced.
    SnapshotWithoutDirSync,
    /// What a failed write left is cut off, but not durably.
    CutBackWithoutSync,
    /// A rolled segment's name is not synced.
    RollWithoutDirSync,
    /// An old segment is not synced when the log rolls.
    RollWithoutTrim,
    /// `kraftlog.state` claims what is written instead of what is durable.
    StateClaimsWritten,
    /// Open answers before what a crash left in the cache is written again.
    OpenWithoutRewrite,
    /// Any bad batch is cut, also one with acknowledged batches behind it.
    CutWhateverIsBad,
    /// A vote is answered before it is on the disk.
    VoteBeforeSync,
    /// The group's tickets resolve `Ok` although its write failed.
    AcknowledgeFailedWrite,
    /// meta.properties is laid down before the rest of a format.
    FormatMetaPropertiesFirst,
}

#[cfg(feature = "planted")]
mod chosen {
    use super::Plant;
    use std::cell::Cell;

    thread_local! {
        static CHOSEN: Cell<Option<Plant>> = const { Cell::new(None) };
    }

    /// Plants one mistake, or none, in everything that this thread does from now on.
    pub fn choose(plant: Option<Plant>) {
        CHOSEN.set(plant);
    }

    /// Whether this mistake is to be made.
    pub fn is(plant: Plant) -> bool {
        CHOSEN.get() == Some(plant)
    }
}

#[cfg(feature = "planted")]
pub use chosen::{choose, is};

/// Whether this mistake is to be made: never in this build.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is(_plant: Plant) -> bool {
    false
}
