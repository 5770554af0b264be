//! A simulated machine (feature `sim`), for seeing what a power cut does to a node.
//!
//! A [`Machine`] has a [`SimDisk`], a clock and one thread on which lanes and clients take turns. One
//! seed decides everything that chance decides in life, so a seed replays a run, step for step and byte
//! for byte. Between any two steps the disk can be [forked](SimDisk::fork) or [crashed](SimDisk::crash)
//! while the run goes on, and each step can be made to [fail](Fault).
//!
//! # What a crash leaves
//!
//! On a [weak](FileSystem::Weak) file system nothing but a sync orders anything. Of every 512-byte
//! sector, file length and name in a directory, the medium has what the last sync brought there or any
//! later version, each independent of all others: a length may be there before the bytes (which then
//! read as zeros), one half of a rename without the other, the third write without the first. fsync and
//! fdatasync bring a file's content and length to the medium, never its name; an fsync of the directory
//! brings its names, never its own name in its parent. [`Ext4`](FileSystem::Ext4) is stricter, see
//! there. What passes on the weak one passes on both, which is what the weak one is for; that a rule of
//! ext4 is not *relied* on is shown by it.
//!
//! # An example: a node that crashes
//!
//! ```
//! use kraftlog_io::sim::{AllCrashes, Machine};
//! use kraftlog_io::{Disk, OpenHow, Rt, atomic, disk};
//! use std::path::Path;
//!
//! let machine = Machine::new(7);
//! let file = Path::new("/vote");
//! machine.disk().write(file, b"for 1").unwrap();
//!
//! // The node: it votes for 3, in a lane of its own. Before each step we note how the disk stands.
//! let (tell, seen) = std::sync::mpsc::channel();
//! machine.disk().on_step(move |disk, _step| {
//!     tell.send(disk.fork(0)).unwrap();
//!     None
//! });
//! machine.rt().spawn_lane("voter", Path::new("/"), Box::new(move |disk| Box::pin(async move {
//!     atomic::replace(&*disk, file, b"for 3", 0o644).await.unwrap();
//! }))).unwrap();
//! machine.run_until_idle();
//! machine.disk().clear_hook();
//!
//! // Whatever a power cut leaves, before whichever step: one vote or the other, never half of one.
//! let mut crashes = 0;
//! for moment in seen {
//!     let mut all = AllCrashes::default();
//!     while let Some(found) = moment.next_crash(&mut all, 0) {
//!         let vote = found.read(file).expect("a vote never gets lost");
//!         assert!(vote == b"for 1" || vote == b"for 3");
//!         crashes += 1;
//!     }
//! }
//! assert!(crashes > 10);
//! // And once it is answered, it stays.
//! let mut all = AllCrashes::default();
//! while let Some(found) = machine.disk().next_crash(&mut all, 0) {
//!     assert_eq!(found.read(file).unwrap(), b"for 3");
//! }
//! ```

mod crash;
mod disk;
mod fault;
mod image;
mod machine;
mod versions;

pub use crash::AllCrashes;
pub use disk::{SimDisk, StepHook};
pub use fault::{Fault, Step};
pub use machine::Machine;
/// The errors that a [`Fault`] can answer with.
pub use rustix::io::Errno;

use crate::error::Op;

/// What a disk writes whole or not at all.
pub const SECTOR_BYTES: usize = image::SECTOR_BYTES;

/// How much the file system orders by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileSystem {
    /// Only syncs order anything.
    Weak,
    /// As ext4 with a journal and `data=ordered`: names and lengths reach the medium in the order in
    /// which they were set, a rename whole, and a grown length not before the bytes that it uncovers. An
    /// fsync of anything brings all earlier names. Sectors that were there before are as on the weak one.
    Ext4,
}

/// How long operations take, in simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Latency {
    /// None: an operation is done at its first poll, and others run between two operations only.
    None,
    /// Between two bounds in microseconds, by the seed; syncs take ten times as long.
    Between(u64, u64),
    /// The same, of one operation only.
    Of(Op, u64, u64),
}

impl Latency {
    fn range(self, op: Op) -> Option<(u64, u64)> {
        match self {
            Latency::None => None,
            Latency::Between(min, max) if matches!(op, Op::Sync | Op::SyncDir) => {
                Some((10 * min, 10 * max.max(min)))
            }
            Latency::Between(min, max) => Some((min, max.max(min))),
            Latency::Of(slow, min, max) => (slow == op).then_some((min, max.max(min))),
        }
    }
}
