//! The bare system calls that do the same work as kraftlog, with nothing around them.
//!
//! One thread, no checks of content, no queue, buffers made beforehand: what is left is what the file
//! system and the disk cost. The layouts are those that kraftlog has: a file that `fallocate` extended
//! (its length need not change at a sync), and one that grows with each write.

use crate::place::must;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fdatasync, fsync};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are reserved at once, as the log does by default.
pub const EXTEND_BYTES: u64 = 4 << 20;
/// Bytes of one read, as the log's and snapshots' readers take.
pub const READ_BYTES: usize = 256 * 1024;

/// How the file of [`BareLog`] gets its space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `fallocate` extends it in steps of [`EXTEND_BYTES`], ahead of the data.
    Extended,
    /// Every write makes it longer.
    Growing,
}

/// A file that is appended to with `pwrite` and `fdatasync`.
#[derive(Debug)]
pub struct BareLog {
    path: PathBuf,
    file: File,
    layout: Layout,
    written: u64,
    reserved: u64,
}

impl BareLog {
    /// Makes the file and its name durable.
    ///
    /// # Panics
    /// On any I/O error, as all functions here: a bench has no use for a broken disk.
    pub fn create(path: &Path, layout: Layout) -> BareLog {
        let file = create(path);
        sync_dir(path);
        BareLog { path: path.to_path_buf(), file, layout, written: 0, reserved: 0 }
    }

    /// One durable append.
    pub fn append(&mut self, bytes: &[u8]) {
        let end = self.written + bytes.len() as u64;
        if self.layout == Layout::Extended && end > self.reserved {
            let len = EXTEND_BYTES.max(bytes.len() as u64);
            must(fallocate(&self.file, FallocateFlags::empty(), self.reserved, len), &self.path);
            self.reserved += len;
        }
        must(self.file.write_all_at(bytes, self.written), &self.path);
        must(fdatasync(&self.file), &self.path);
        self.written = end;
    }
}

/// Reads a file from front to end in pieces of [`READ_BYTES`] into one buffer; gives back its length.
pub fn read(path: &Path, buf: &mut Vec<u8>) -> u64 {
    buf.resize(READ_BYTES, 0);
    let mut file = must(File::open(path), path);
    let mut total = 0;
    loop {
        match must(file.read(buf), path) {
            0 => return total,
            read => total += read as u64,
        }
    }
}

/// Drops the file's clean pages from the page cache, so that the next read is cold.
pub fn forget(path: &Path) {
    let file = must(File::open(path), path);
    must(fsync(&file), path);
    must(fadvise(&file, 0, None, Advice::DontNeed), path);
}

/// Writes `pieces` to a new file and makes it durable under its name: as a checkpoint is written, but
/// for its content.
pub fn write_and_publish<'a>(path: &Path, pieces: impl Iterator<Item = &'a [u8]>) -> u64 {
    let part = path.with_extension("part");
    let file = create(&part);
    let mut written = 0;
    for piece in pieces {
        must(file.write_all_at(piece, written), &part);
        written += piece.len() as u64;
    }
    must(fsync(&file), &part);
    rename(&part, path);
    sync_dir(path);
    written
}

/// Replaces a small file: write beside it, sync, rename over it, sync the directory.
pub fn replace(path: &Path, bytes: &[u8]) {
    let temporary = path.with_extension("tmp");
    let file = create(&temporary);
    must(file.write_all_at(bytes, 0), &temporary);
    must(fsync(&file), &temporary);
    drop(file);
    rename(&temporary, path);
    sync_dir(path);
}

fn create(path: &Path) -> File {
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(true).truncate(true).mode(0o644);
    must(how.open(path), path)
}

fn rename(from: &Path, to: &Path) {
    must(rustix::fs::rename(from, to), from);
}

/// Makes the names beside `path` durable.
fn sync_dir(path: &Path) {
    let dir = path.parent().unwrap_or(Path::new("."));
    must(must(File::open(dir), dir).sync_all(), dir);
}
