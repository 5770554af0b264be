//! What can go wrong in one step, besides a crash.

use crate::error::Op;
use rustix::io::Errno;
use std::fmt;
use std::path::PathBuf;

/// One operation on the disk: the smallest thing that a crash can come before or behind. A write that
/// comes up short goes on in another step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Counted from 1 over the life of the disk.
    pub number: u64,
    /// What is about to be done.
    pub op: Op,
    /// To what; for a rename the old name.
    pub path: PathBuf,
    /// The new name of a rename.
    pub to: Option<PathBuf>,
    /// Position in the file, of a read or write; the new length of a [`SetLen`](Op::SetLen).
    pub position: u64,
    /// How many bytes it is about.
    pub len: u64,
}

impl Step {
    /// Whether it can change what a crash finds.
    pub fn changes(&self) -> bool {
        !matches!(self.op, Op::Open | Op::List | Op::Stat | Op::Read | Op::Lock | Op::StartLane)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {} {}", self.number, self.op, self.path.display())?;
        match (self.op, &self.to) {
            (Op::Rename, Some(to)) => write!(f, " to {}", to.display()),
            (Op::Read | Op::Write | Op::Allocate, _) => write!(f, " [{}, +{})", self.position, self.len),
            (Op::SetLen, _) => write!(f, " to {} bytes", self.position),
            _ => Ok(()),
        }
    }
}

/// What goes wrong in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The operation answers with an error. A write may have left a part of its bytes, by the seed; a
    /// sync did nothing, which is known, and is *not* what disks do: see [`LostSync`](Fault::LostSync).
    Fails(Errno),
    /// A sync answers `EIO`. What was pending has reached the medium or not, sector by sector by the
    /// seed, and the kernel forgets about it: the next sync says `Ok`. (Of a directory, what has not
    /// arrived stays pending: a journal that cannot be written stops the file system, it does not forget.)
    LostSync {
        /// Whether reads go on showing the new bytes (ext4, xfs), or the page goes back to what the
        /// medium has (btrfs, or any cache under pressure).
        cache_keeps: bool,
    },
    /// A write takes only a part, at least a byte. Right callers go on with the rest.
    ShortWrite,
    /// The operation answers `Ok` and does nothing: a drive that lies, or a step that somebody forgot.
    Skipped,
    /// One bit of the bytes is other than it should be: of a write on the medium, of a read in memory.
    BitFlip,
    /// A write goes to, or a read comes from, another sector of the same file.
    Misdirected,
}
