//! The vote: `quorum-state`, read and written through the log lane.
//!
//! The lane keeps what is on disk. A write replaces the file in one step; until it is durable the old
//! vote counts. What is refused here would be a vote taken back: a lower epoch, or another candidate in
//! an epoch in which this node has voted (behaviour.md B-163 to B-169 have Kafka's rules).

use crate::error::{ErrorKind, Fenced, fences, io_kind};
use crate::handle::{MetadataLog, Shared, block_on};
use crate::lane::log_lane::LogOp;
use crate::lane::oneshot::oneshot;
use crate::lane::queue::QueueClosed;
use crate::metrics::Metrics;
use crate::types::{Epoch, NodeId};
use kraftlog_codecs::names;
use kraftlog_codecs::quorum::QuorumState;
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::{Disk, IoError, atomic};

const FILE_MODE: u32 = 0o644;

/// Why a vote was not written. The old one counts.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum QuorumWriteError {
    /// The epoch is below the one on disk.
    #[error("epoch {given} is below {stored}, the one in quorum-state")]
    EpochGoesDown {
        /// The epoch given.
        given: i32,
        /// The epoch on disk.
        stored: i32,
    },
    /// This node has voted for another candidate in this epoch.
    #[error("this node voted for {stored} in epoch {epoch} and cannot vote for {given}")]
    VotedAlready {
        /// The epoch.
        epoch: i32,
        /// Candidate on disk.
        stored: i32,
        /// Candidate given.
        given: i32,
    },
    /// This node has voted in this epoch, and the state given says neither for whom nor who leads it: after
    /// a restart the node could vote again.
    #[error(
        "this node voted for {stored} in epoch {epoch}, which has no leader yet; the vote cannot be left out"
    )]
    VoteLeftOut {
        /// The epoch.
        epoch: i32,
        /// Candidate on disk.
        stored: i32,
    },
    /// The file could not be written.
    #[error("the vote could not be written")]
    Io(#[source] IoError),
    /// A sync failed, now or earlier. Whether the new vote counts is found out by the next open.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl QuorumWriteError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            QuorumWriteError::EpochGoesDown { .. }
            | QuorumWriteError::VotedAlready { .. }
            | QuorumWriteError::VoteLeftOut { .. } => ErrorKind::Refused,
            QuorumWriteError::Io(cause) => io_kind(cause),
            QuorumWriteError::Fenced(_) | QuorumWriteError::Closed => ErrorKind::Fenced,
        }
    }
}

impl From<QueueClosed> for QuorumWriteError {
    fn from(_: QueueClosed) -> QuorumWriteError {
        QuorumWriteError::Closed
    }
}

/// Reads and writes the vote of an open log's directory. Clones share it.
#[derive(Clone)]
pub struct QuorumStateFile {
    log: MetadataLog,
}

impl MetadataLog {
    /// The vote beside this log: one lane and one fence for both.
    pub fn quorum_state(&self) -> QuorumStateFile {
        QuorumStateFile { log: self.clone() }
    }
}

impl QuorumStateFile {
    /// The vote as it is on disk; `None` if there never was one.
    ///
    /// # Errors
    /// [`QuorumWriteError::Closed`].
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn read(&self) -> Result<Option<QuorumState>, QuorumWriteError> {
        let (answer, read) = oneshot();
        self.log.shared().log_queue.push(LogOp::ReadQuorumState { answer })?;
        read.into_answer().await.ok_or(QuorumWriteError::Closed)
    }

    /// As [`read`](QuorumStateFile::read), blocking this thread.
    ///
    /// # Errors
    /// Those of [`read`](QuorumStateFile::read).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn read_blocking(&self) -> Result<Option<QuorumState>, QuorumWriteError> {
        block_on(&*self.log.shared().rt, self.read())
    }

    /// Replaces the vote. On return it is durable; act on it only then.
    ///
    /// Which version is written is the caller's choice: 0 at kraft.version 0, 1 at 1 (B-164).
    ///
    /// # Errors
    /// [`QuorumWriteError`].
    ///
    /// # Cancel safety
    /// The vote may be written anyway.
    pub async fn write(&self, state: &QuorumState) -> Result<(), QuorumWriteError> {
        let (answer, written) = oneshot();
        let state = state.clone();
        self.log.shared().log_queue.push(LogOp::WriteQuorumState { state, answer })?;
        written.into_answer().await.unwrap_or(Err(QuorumWriteError::Closed))
    }

    /// As [`write`](QuorumStateFile::write), blocking this thread.
    ///
    /// # Errors
    /// Those of [`write`](QuorumStateFile::write).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn write_blocking(&self, state: &QuorumState) -> Result<(), QuorumWriteError> {
        block_on(&*self.log.shared().rt, self.write(state))
    }
}

/// The lane's knowledge of the file.
pub(crate) struct QuorumKeeper {
    state: Option<QuorumState>,
    /// The epoch that this node led before it was opened now.
    led_before: Option<Epoch>,
}

impl QuorumKeeper {
    pub(crate) fn new(state: Option<QuorumState>, node_id: Option<NodeId>) -> QuorumKeeper {
        let led = state.as_ref().filter(|state| node_id.is_some_and(|node| state.leader_id == Some(node.0)));
        let led_before = led.map(|state| Epoch(state.leader_epoch));
        QuorumKeeper { state, led_before }
    }

    pub(crate) fn state(&self) -> Option<&QuorumState> {
        self.state.as_ref()
    }

    pub(crate) fn led_before(&self) -> Option<Epoch> {
        self.led_before
    }

    pub(crate) async fn write(
        &mut self,
        disk: &dyn Disk,
        shared: &Shared,
        state: QuorumState,
    ) -> Result<(), QuorumWriteError> {
        if let Some(fenced) = shared.fenced() {
            return Err(QuorumWriteError::Fenced(fenced.clone()));
        }
        if let Some(stored) = &self.state {
            check(stored, &state)?;
        }
        let path = shared.part_dir.join(names::QUORUM_STATE);
        match atomic::replace(disk, &path, state.format().as_bytes(), FILE_MODE).await {
            Ok(()) => {
                Metrics::add(&shared.metrics.files_replaced, 1);
                self.state = Some(state);
                Ok(())
            }
            Err(cause) if fences(&cause) => Err(QuorumWriteError::Fenced(shared.fence(cause))),
            Err(cause) => Err(QuorumWriteError::Io(cause)),
        }
    }
}

/// A vote is not taken back.
fn check(stored: &QuorumState, given: &QuorumState) -> Result<(), QuorumWriteError> {
    if given.leader_epoch < stored.leader_epoch {
        return Err(QuorumWriteError::EpochGoesDown {
            given: given.leader_epoch,
            stored: stored.leader_epoch,
        });
    }
    // Once the leader is known no vote is given any more, and version 0 has it in the vote's place.
    if given.leader_epoch == stored.leader_epoch
        && let (Some(old), None, None) = (&stored.voted, &given.voted, given.leader_id)
    {
        return Err(QuorumWriteError::VoteLeftOut { epoch: stored.leader_epoch, stored: old.id });
    }
    if given.leader_epoch == stored.leader_epoch
        && let (Some(old), Some(new)) = (&stored.voted, &given.voted)
    {
        // Version 0 has no directory ids: a zero one says nothing.
        let other_dir = old.directory_id != Uuid::ZERO
            && new.directory_id != Uuid::ZERO
            && old.directory_id != new.directory_id;
        if old.id != new.id || other_dir {
            let epoch = stored.leader_epoch;
            return Err(QuorumWriteError::VotedAlready { epoch, stored: old.id, given: new.id });
        }
    }
    Ok(())
}
