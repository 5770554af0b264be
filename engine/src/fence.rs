//! The fence of a directory: the first failed or unknown sync, kept for as long as the log is open.
//!
//! Invariants: the first cause wins, for everybody; whoever has seen the fence, or was told by somebody who
//! has, never sees the log without it; whoever waits for a border of the log is woken, because a fenced log
//! may move none any more. A group commit that is under way when another lane raises the fence still ends by
//! its own sync; what waits behind it is refused.

use crate::error::Fenced;
use crate::sync::OnceLock;
use crate::watermark::Watermark;
use kraftlog_io::IoError;

/// Empty until the first sync of a directory fails.
pub(crate) struct Fence {
    first: OnceLock<Fenced>,
}

impl Fence {
    pub(crate) fn new() -> Fence {
        Fence { first: OnceLock::new() }
    }

    /// Keeps `cause` if it is the first, and wakes who waits for the borders; gives the first cause.
    pub(crate) fn raise(&self, cause: IoError, watermark: &Watermark) -> Fenced {
        let fenced = self.first.get_or_init(|| {
            tracing::error!(%cause, path = %cause.path.display(), "sync failed, the directory is fenced");
            Fenced { cause }
        });
        watermark.wake_all();
        fenced.clone()
    }

    /// The first cause, if there is one.
    pub(crate) fn get(&self) -> Option<&Fenced> {
        self.first.get()
    }
}
