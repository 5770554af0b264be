//! Durable bytes. This crate has never heard of Kafka.
//!
//! A **lane** is a future that owns a [`Disk`] and serves a queue of its owner; [`Rt`] starts it and is
//! its only clock and source of randomness. [`ThreadRt`] gives each lane a thread and one of two back
//! ends: [portable](PortableDisk) system calls, or io_uring (Linux, feature `uring`). Both show the
//! same list of behaviours (`conformance`, feature `testing`), so the choice changes speed, never
//! meaning. `sim` (feature `sim`) is a whole machine that crashes on demand, for testing. [`atomic`] has the orders of steps that make a new content or name durable, [`DirLock`]
//! keeps a running JVM and us out of each other's directory.
//!
//! ```
//! use kraftlog_io::{BackendChoice, PortableDisk, ThreadRt, atomic, disk, rt};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("vote");
//!
//! // A tool without lanes: a disk on the calling thread.
//! let disk = PortableDisk::new();
//! rt::block_on(atomic::replace(&*disk, &path, b"for 3", 0o644))?;
//! assert_eq!(rt::block_on(disk::read_file(&*disk, &path, 100))?.as_deref(), Some(&b"for 3"[..]));
//!
//! // A lane with a thread of its own.
//! let (rt, report) = ThreadRt::open(dir.path(), BackendChoice::from_env_or(BackendChoice::Auto)?)?;
//! println!("back end: {report}");
//! let (answer, answered) = std::sync::mpsc::channel();
//! let lane_dir = dir.path().to_path_buf();
//! rt.spawn_lane("my-lane", dir.path(), Box::new(move |disk| Box::pin(async move {
//!     let _ = answer.send(disk.list(&lane_dir).await);
//! })))?;
//! assert_eq!(answered.recv()??.len(), 1);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod atomic;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod disk;
pub mod error;
pub mod lock;
#[doc(hidden)]
pub mod planted;
pub mod probe;
pub mod rt;
#[cfg(feature = "sim")]
pub mod sim;

mod buf;
mod executor;
mod portable;
mod registry;
mod thread_rt;
mod timer;
#[cfg(all(target_os = "linux", feature = "uring"))]
mod uring;
#[cfg(not(all(target_os = "linux", feature = "uring")))]
#[path = "uring/absent.rs"]
mod uring;

pub use disk::{Allocate, AppendSyncError, Disk, Entry, EntryKind, File, LocalFuture, OpenHow};
pub use error::{IoError, IoErrorKind, Op};
pub use lock::{DirId, DirLock, HeldLock, LockError, LockHolder};
pub use portable::PortableDisk;
pub use probe::{BackendChoice, BackendError, BackendReport, UringRefusal};
pub use rt::{LaneFn, Rt};
pub use thread_rt::ThreadRt;
