//! kraftlog: the storage engine of a KRaft node, in the files of Apache Kafka 4.x.
#![forbid(unsafe_code)]

mod config;
pub mod control;
mod error;
pub mod format;
pub mod node;
pub mod scram;
pub mod snapshot;
mod sync;
mod types;
mod watermark;

pub use config::{LogConfig, Preallocation, Role};
pub use error::{ErrorKind, Fenced};
pub use types::{Epoch, NodeId, Offset, SnapshotId};
pub use watermark::{Ends, Watch};
