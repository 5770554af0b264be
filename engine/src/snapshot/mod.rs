//! Checkpoints of the metadata state: writing, publishing, reading, serving, and which of them a log
//! starts from.
//!
//! - `catalog`, `inspect`, `choose`: what a directory has, whether it is whole, what open does with it;
//! - `encode`, `write`: records in, a published checkpoint out (the files belong to the bulk lane);
//! - `whole`, `file`, `read`: is it whole; read as a plain file; read as a stream beside a log;
//! - `serve`: bytes for a follower that fetches it.
//!
//! A checkpoint is immutable once it has its name. After a crash there are `.part` files, which the
//! next open removes, never half a checkpoint under its final name.
//!
//! Not here: receiving a snapshot from the leader, and removing old ones.

mod catalog;
mod channel;
mod choose;
mod encode;
mod fault;
mod file;
mod inspect;
mod log;
mod read;
mod serve;
mod store;
mod whole;
mod write;

pub use catalog::{Catalog, checkpoint_path};
pub use choose::{Inspected, LogExtent, SnapshotPlan, SnapshotRefusal, Truncation, choose};
pub use encode::{EncodeRefusal, Head, SnapshotEncoder};
pub use fault::{SnapshotError, SnapshotFault};
pub use file::{SnapshotFile, SnapshotSummary, verify_file};
pub use inspect::{SnapshotHead, inspect, inspect_all, list, remove_left_overs, set_aside, verify};
pub use read::{SnapshotBatch, SnapshotReader};
pub use serve::SnapshotBytes;
pub(crate) use store::Snapshots;
pub use write::{Frozen, SnapshotWriteError, SnapshotWriter};
