//! kraftlog: the storage engine of a KRaft node, in the files of Apache Kafka 4.x.
#![forbid(unsafe_code)]

pub mod bootstrap;
mod config;
pub mod control;
mod dir;
mod epochs;
mod error;
pub mod format;
mod handle;
mod lane;
mod log;
mod metrics;
pub mod node;
mod quorum;
mod recover;
mod replay;
pub mod scram;
mod segment;
pub mod snapshot;
mod state;
mod sync;
mod ticket;
mod types;
mod watermark;

pub use config::{LogConfig, Preallocation, Role};
pub use dir::{DirError, MetadataDir};
pub use epochs::{EpochEnd, Validity};
pub use error::{ErrorKind, Fenced};
pub use handle::{FlushError, HighWatermarkError, MetadataLog};
pub use log::append::{FollowerAppend, Permit};
pub use log::close::{CloseError, CloseReport};
pub use log::epoch::EpochError;
pub use log::leader_change::LeaderChangeError;
pub use log::open_error::{Evidence, OpenError, ValidBehind};
pub use log::open_report::{Cut, OpenReport, Scanned};
pub use log::read::{Fetched, Isolation, ReadError};
pub use metrics::Metrics;
pub use quorum::{QuorumStateFile, QuorumWriteError};
pub use replay::{Replay, ReplayBatch, ReplayError, Replayed};
pub use state::StateFault;
pub use ticket::{AppendError, Appended, Ticket};
pub use types::{Endpoint, Epoch, NodeId, Offset, SnapshotId, Voter, VoterSet};
pub use watermark::{Ends, Watch};
