//! The records that a new cluster starts with (KIP-1170): where they stand, how they get into the log.
//!
//! [`Bootstrap`] finds them at start: in the zero checkpoint, which wins, or in the legacy file, or
//! they are the default. [`ReplayedState`] follows what a controller replays from its log, and
//! [`activate()`] says what a new leader has to append first;
//! [`MetadataLog::activate`](crate::MetadataLog::activate) appends it.

mod activate;
mod find;
mod replayed;
mod writes;

pub(crate) use find::zero_checkpoint_has_voters;

pub use activate::{ActivateError, Activated, Activation, ActivationError, activate};
pub use find::{Bootstrap, BootstrapError, BootstrapSource, BootstrapWarning, FileFault};
pub use replayed::{ReplayedState, TransactionOrderError};
pub use writes::{BootstrapTooLarge, WRITE_RECORDS_MAX, bootstrap_writes};
