//! The orders of steps after which a name stands for the whole new content or the whole old one.
//!
//! Built from the single steps of [`Disk`], so that every back end has the same order and a simulated
//! disk can crash between any two of them. After a crash there may be a left-over `X.tmp`, of which
//! nothing is to be read; whoever opens the directory removes it.
//!
//! What failed tells what is on the disk. An error whose [`op`](IoError::op) is [`Op::Sync`] or
//! [`Op::SyncDir`] is a failed sync: its outcome is unknown, it must not be retried, and after a
//! `SyncDir` either content may be there after a crash. With any other `op` the old content stands.

use crate::disk::{Disk, EntryKind, OpenHow, parent};
use crate::error::{IoError, IoErrorKind, Op, Result};
use crate::planted::{self, Plant};
use bytes::Bytes;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// What a replacement is called until it is complete.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// The name under which the next content of `path` is written: `path` with `.tmp` behind it, as Kafka's.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(TEMPORARY_SUFFIX);
    PathBuf::from(name)
}

/// Puts `bytes` in the place of the file at `path`, or makes it, with these Unix permission bits
/// (before the umask): temporary file, sync, rename, directory sync.
///
/// On return the new content and the name are durable.
///
/// # Errors
/// Those of the disk, with the path of the file that the failing step was about. The temporary file
/// is removed again as far as possible. See the [module](self) for what each error leaves.
///
/// # Cancel safety
/// Dropping it stops between two steps: the old content or the new one stands, perhaps with a
/// temporary file beside it, and nothing is known to be durable.
pub async fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let temporary = temporary(path);
    let renamed = async {
        write_new(disk, &temporary, bytes, mode).await?;
        disk.rename(&temporary, path).await
    };
    if let Err(error) = renamed.await {
        // Best effort: the first error is the one to tell of, and a left-over does no harm.
        let _ = disk.remove(&temporary).await;
        return Err(error);
    }
    if planted::is(Plant::RenameBeforeSync) {
        disk.open(path, OpenHow::Write).await?.sync_all().await?;
    }
    if planted::is(Plant::ReplaceWithoutDirSync) {
        return Ok(());
    }
    disk.sync_dir(&parent(path)).await
}

/// Writes and syncs a file that was not there; a left-over of that name goes first. It is never
/// opened and emptied instead: it may be a link into other data, or carry another mode.
async fn write_new(disk: &dyn Disk, path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let file = match disk.open(path, OpenHow::CreateNew { mode }).await {
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => {
            disk.remove(path).await?;
            disk.open(path, OpenHow::CreateNew { mode }).await?
        }
        opened => opened?,
    };
    file.write_at(0, vec![Bytes::copy_from_slice(bytes)]).await?;
    if planted::is(Plant::RenameBeforeSync) {
        return Ok(());
    }
    file.sync_all().await
}

/// Gives a complete, synced file its final name, replacing what has it.
///
/// On return the name is durable. The content is as durable as it was before: sync it first.
///
/// # Errors
/// Those of the disk; with [`Op::Rename`] the file has its old name still.
///
/// # Cancel safety
/// Dropping it stops between two steps: the file has one of the two names, not known to be durable.
pub async fn publish(disk: &dyn Disk, from: &Path, to: &Path) -> Result<()> {
    disk.rename(from, to).await?;
    let (old, new) = (parent(from), parent(to));
    disk.sync_dir(&new).await?;
    if old != new {
        disk.sync_dir(&old).await?;
    }
    Ok(())
}

/// Makes a directory, or takes one that is there. Its parent must be there.
///
/// On return its name is durable, also when it was there already: whoever made it may have died
/// before the sync. Only if this process may not sync the parent of a directory that it found, the
/// name is taken as it is.
///
/// # Errors
/// Those of the disk; a file of that name is [`IoErrorKind::NotADirectory`].
///
/// # Cancel safety
/// The directory may be there, not known to be durable; calling again finishes it.
pub async fn create_dir_durably(disk: &dyn Disk, path: &Path) -> Result<()> {
    let above = parent(path);
    match disk.create_dir(path).await {
        Ok(()) if planted::is(Plant::DirWithoutParentSync) => Ok(()),
        Ok(()) => disk.sync_dir(&above).await,
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => {
            match disk.stat(path).await? {
                Some(entry) if entry.kind == EntryKind::Dir => {}
                _ => return Err(IoError::new(Op::CreateDir, path, io::ErrorKind::NotADirectory)),
            }
            match disk.sync_dir(&above).await {
                Err(e) if matches!(e.kind(), IoErrorKind::PermissionDenied | IoErrorKind::ReadOnly) => Ok(()),
                synced => synced,
            }
        }
        Err(error) => Err(error),
    }
}

/// Makes a directory and what is missing above it, each as [`create_dir_durably`] does.
///
/// # Errors
/// As [`create_dir_durably`], with the path of the directory that could not be made.
///
/// # Cancel safety
/// A part of the path may be there; calling again finishes it.
pub async fn create_dir_all_durably(disk: &dyn Disk, path: &Path) -> Result<()> {
    let mut missing = vec![path];
    for above in path.ancestors().skip(1) {
        if above.as_os_str().is_empty() || disk.stat(above).await?.is_some() {
            break;
        }
        missing.push(above);
    }
    for dir in missing.into_iter().rev() {
        create_dir_durably(disk, dir).await?;
    }
    Ok(())
}

/// Removes a file; one that is not there is fine.
///
/// On return it is durable that the name is gone.
///
/// # Errors
/// Those of the disk.
///
/// # Cancel safety
/// The file may be gone, not known to be durable; calling again finishes it.
pub async fn remove_durably(disk: &dyn Disk, path: &Path) -> Result<()> {
    match disk.remove(path).await {
        Err(error) if error.kind() != IoErrorKind::NotFound => Err(error),
        // Also if it was gone: whoever removed it may have died before the sync.
        _ => disk.sync_dir(&parent(path)).await,
    }
}
