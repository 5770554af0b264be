//! The first batch of an epoch: who leads, and at kraft.version 1 what followers could not know
//! otherwise (behaviour.md B-86, formats.md 3.8).

use crate::control::LeaderChangeRefusal;
use crate::handle::MetadataLog;
use crate::ticket::{AppendError, Ticket};
use crate::types::{Epoch, NodeId, Voter};
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};

/// Why the first batch of an epoch was not appended. The log is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderChangeError {
    /// The voter set does not allow this node to lead.
    #[error(transparent)]
    Refused(#[from] LeaderChangeRefusal),
    /// The voter set does not fit into a batch.
    #[error("the control records cannot be encoded")]
    Encode(#[from] kraftlog_codecs::batch::AppendError),
    /// The append failed.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl LeaderChangeError {
    /// What the caller can do.
    pub fn kind(&self) -> crate::ErrorKind {
        match self {
            LeaderChangeError::Refused(_) => crate::ErrorKind::Refused,
            LeaderChangeError::Encode(_) => crate::ErrorKind::Invalid,
            LeaderChangeError::Append(error) => error.kind(),
        }
    }
}

impl MetadataLog {
    /// Appends the first batch of `epoch`: LeaderChange and, in the same batch, KRaftVersion and Voters
    /// where the newest voter set comes from the zero checkpoint or `leader`'s own entry has changed.
    ///
    /// `leader` is this node as it is now; `granting` are the voters that elected it, itself included.
    /// Call it right after [`initialize_leader_epoch`](MetadataLog::initialize_leader_epoch), before any
    /// other append of the epoch.
    ///
    /// # Errors
    /// [`LeaderChangeError`]; the log is unchanged.
    pub fn append_leader_change(
        &self,
        epoch: Epoch,
        leader: &Voter,
        granting: &[NodeId],
    ) -> Result<Ticket, LeaderChangeError> {
        let start = self.shared().control.lock().epoch_start(leader)?;
        let granting: Vec<i32> = granting.iter().map(|node| node.0).collect();
        let mut batch = Vec::new();
        let mut builder = BatchBuilder::new(&mut batch, BatchOptions::control(0, epoch.0, self.now_ms()));
        for record in start.records(&granting) {
            builder.append_control(&record)?;
        }
        builder.finish();
        Ok(self.append_as_leader(epoch, batch)?)
    }
}
