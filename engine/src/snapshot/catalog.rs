//! Which checkpoints a partition directory has, from one listing.
//!
//! Sizes come from the listing, so that any number of checkpoints costs no open file (C-45). The
//! catalog knows names only; whether a file is whole is `inspect`'s business, which of them a log
//! may start from is `choose`'s.

use crate::types::{Epoch, Offset, SnapshotId};
use kraftlog_codecs::names::{self, Name};
use kraftlog_io::{Entry, EntryKind, IoError, Op};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The checkpoints of one directory, ordered by (epoch, end offset), and what writers left over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    known: BTreeMap<SnapshotId, u64>,
    left_overs: Vec<String>,
    deleted: Vec<SnapshotId>,
}

impl Catalog {
    /// Sorts a listing of `dir`. Names that are none of a checkpoint's are passed over.
    ///
    /// # Errors
    /// A finished checkpoint's name that stands for no regular file (C-39): it cannot be read, and
    /// passing it over might start the log from an older state.
    pub fn from_listing(dir: &Path, entries: &[Entry]) -> Result<Catalog, IoError> {
        let mut catalog = Catalog::default();
        for entry in entries {
            match Name::parse(&entry.name) {
                Name::Checkpoint { end_offset, epoch } => {
                    if entry.kind != EntryKind::File {
                        let cause = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
                        return Err(IoError::new(Op::Open, dir.join(&entry.name), cause));
                    }
                    catalog.known.insert(id(end_offset, epoch), entry.len);
                }
                Name::CheckpointPart { .. } => catalog.left_overs.push(entry.name.clone()),
                Name::CheckpointDeleted { end_offset, epoch } => {
                    catalog.left_overs.push(entry.name.clone());
                    catalog.deleted.push(id(end_offset, epoch));
                }
                _ => {}
            }
        }
        catalog.left_overs.sort();
        catalog.deleted.sort();
        Ok(catalog)
    }

    /// Finished checkpoints with their sizes, oldest first.
    pub fn known(&self) -> impl DoubleEndedIterator<Item = (SnapshotId, u64)> + '_ {
        self.known.iter().map(|(id, len)| (*id, *len))
    }

    /// The newest checkpoint.
    pub fn latest(&self) -> Option<SnapshotId> {
        self.known.keys().next_back().copied()
    }

    /// The oldest checkpoint.
    pub fn earliest(&self) -> Option<SnapshotId> {
        self.known.keys().next().copied()
    }

    /// Size of a checkpoint in bytes; `None` if there is none of that id.
    pub fn len_of(&self, id: SnapshotId) -> Option<u64> {
        self.known.get(&id).copied()
    }

    /// Names of `.part` and `.deleted` files that an earlier process left.
    pub fn left_overs(&self) -> &[String] {
        &self.left_overs
    }

    /// Checkpoints that were marked for deletion and are still there.
    pub fn deleted(&self) -> &[SnapshotId] {
        &self.deleted
    }

    /// A checkpoint was frozen.
    pub fn insert(&mut self, id: SnapshotId, len: u64) {
        self.known.insert(id, len);
    }

    /// A checkpoint is gone; its size, if it was known.
    pub fn remove(&mut self, id: SnapshotId) -> Option<u64> {
        self.known.remove(&id)
    }
}

/// Path of a finished checkpoint.
pub fn checkpoint_path(dir: &Path, id: SnapshotId) -> PathBuf {
    dir.join(names::checkpoint_name(id.end_offset.0, id.epoch.0))
}

fn id(end_offset: i64, epoch: i32) -> SnapshotId {
    SnapshotId { end_offset: Offset(end_offset), epoch: Epoch(epoch) }
}
