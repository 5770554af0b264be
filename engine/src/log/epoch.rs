//! Beginning an epoch as leader.

use crate::error::{ErrorKind, Fenced, io_kind};
use crate::handle::{MetadataLog, block_on};
use crate::lane::log_lane::{BeginEpochOp, LogOp};
use crate::lane::oneshot::oneshot;
use crate::lane::queue::QueueClosed;
use crate::types::Epoch;
use kraftlog_io::IoError;

/// Why an epoch was not begun. The log is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EpochError {
    /// The log has this epoch, or a higher one.
    #[error("epoch {given} is not above {last}, the newest in the log")]
    NotAbove {
        /// The epoch given.
        given: Epoch,
        /// The newest in the log.
        last: Epoch,
    },
    /// `quorum-state` says that this node led the epoch in an earlier life; it may have told others of
    /// records that are gone (behaviour.md B-168).
    #[error(
        "this node was leader of epoch {led} before its restart and cannot lead epoch {given}; it needs a new epoch"
    )]
    LedBefore {
        /// The epoch given.
        given: Epoch,
        /// The epoch in `quorum-state`.
        led: Epoch,
    },
    /// The epoch checkpoint could not be written.
    #[error("the epoch checkpoint could not be written")]
    Io(#[source] IoError),
    /// A sync failed, now or earlier.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
}

impl EpochError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            EpochError::NotAbove { .. } | EpochError::LedBefore { .. } => ErrorKind::Refused,
            EpochError::Io(cause) => io_kind(cause),
            EpochError::Fenced(_) | EpochError::Closed => ErrorKind::Fenced,
        }
    }
}

impl From<QueueClosed> for EpochError {
    fn from(_: QueueClosed) -> EpochError {
        EpochError::Closed
    }
}

impl MetadataLog {
    /// Begins `epoch` as leader: `append_as_leader` takes batches of it from then on (behaviour.md B-103).
    ///
    /// From the call on nothing of an older epoch is taken; if it fails, the log goes on as before.
    /// On return the epoch is in `leader-epoch-checkpoint`, durably. The caller has written its vote
    /// before, with [`quorum_state`](MetadataLog::quorum_state).
    ///
    /// # Errors
    /// [`EpochError::NotAbove`] and [`EpochError::LedBefore`] refuse the epoch for good.
    ///
    /// # Cancel safety
    /// The epoch may be begun anyway.
    pub async fn initialize_leader_epoch(&self, epoch: Epoch) -> Result<(), EpochError> {
        let (answer, begun) = oneshot();
        self.shared().log_queue.push_with(|order| {
            let (last, led) = (order.last_epoch, order.leading);
            if epoch > last {
                order.last_epoch = epoch;
                order.leading = None;
            }
            let op = BeginEpochOp { epoch, last, led, answer };
            Ok::<_, QueueClosed>((LogOp::BeginEpoch(op), ()))
        })?;
        begun.into_answer().await.unwrap_or(Err(EpochError::Closed))
    }

    /// As [`initialize_leader_epoch`](MetadataLog::initialize_leader_epoch), blocking this thread.
    ///
    /// # Errors
    /// Those of [`initialize_leader_epoch`](MetadataLog::initialize_leader_epoch).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn initialize_leader_epoch_blocking(&self, epoch: Epoch) -> Result<(), EpochError> {
        block_on(&*self.shared().rt, self.initialize_leader_epoch(epoch))
    }
}
