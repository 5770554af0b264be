//! Durable bytes. This crate has never heard of Kafka.
#![deny(unsafe_code)]

pub mod disk;
pub mod error;
pub mod rt;

pub use disk::{Allocate, AppendSyncError, Disk, Entry, EntryKind, File, LocalFuture, OpenHow};
pub use error::{IoError, IoErrorKind, Op};
pub use rt::{LaneFn, Rt};
