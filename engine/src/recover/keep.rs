//! `kraftlog.cut/` in the part directory: what was cut off the log, for whoever wants to look.
//!
//! At most 64 MiB, the oldest dropped. The bytes are durable here before they are cut from the log.
//! Names do not end in a suffix that Kafka acts on, and Kafka leaves the folder alone.

use crate::types::Offset;
use bytes::{Bytes, BytesMut};
use kraftlog_io::{Disk, EntryKind, File, IoError, OpenHow, atomic};
use std::path::{Path, PathBuf};

/// Name of the folder.
pub(crate) const CUT_DIR: &str = "kraftlog.cut";
const CUT_BYTES_MAX: u64 = 64 << 20;
const CHUNK_BYTES: u64 = 1 << 20;
const FILE_MODE: u32 = 0o644;

/// Copies `[from, to)` of a segment into the folder, durably. At most 64 MiB of it are kept.
pub(crate) async fn keep(
    disk: &dyn Disk,
    part_dir: &Path,
    segment: Offset,
    file: &dyn File,
    (from, to): (u64, u64),
    now_ms: u128,
) -> Result<PathBuf, IoError> {
    let dir = part_dir.join(CUT_DIR);
    atomic::create_dir_durably(disk, &dir).await?;
    let len = (to - from).min(CUT_BYTES_MAX);
    make_room(disk, &dir, CUT_BYTES_MAX - len).await?;
    // The time comes first, so that the names sort by age.
    let path = dir.join(format!("{now_ms:015}-{:020}-{from}.bytes", segment.0));
    let kept = disk.open(&path, OpenHow::CreateOrTruncate { mode: FILE_MODE }).await?;
    let copied = copy(file, from, &*kept, len).await;
    if let Err(error) = copied {
        // A part of it takes room and helps nobody.
        let _ = disk.remove(&path).await;
        return Err(error);
    }
    kept.sync_all().await?;
    disk.sync_dir(&dir).await?;
    Ok(path)
}

async fn copy(file: &dyn File, from: u64, kept: &dyn File, len: u64) -> Result<(), IoError> {
    let mut done = 0;
    while done < len {
        let want = usize::try_from((len - done).min(CHUNK_BYTES)).unwrap_or(usize::MAX);
        let buf = file.read_at(from + done, want, BytesMut::new()).await?;
        if buf.is_empty() {
            break;
        }
        let read = buf.len() as u64;
        kept.write_at(done, vec![Bytes::from(buf)]).await?;
        done += read;
    }
    Ok(())
}

/// Drops the oldest files until at most `bytes_max` are left.
async fn make_room(disk: &dyn Disk, dir: &Path, bytes_max: u64) -> Result<(), IoError> {
    let mut entries = disk.list(dir).await?;
    entries.retain(|entry| entry.kind == EntryKind::File && entry.name.ends_with(".bytes"));
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut bytes: u64 = entries.iter().map(|entry| entry.len).sum();
    for entry in entries {
        if bytes <= bytes_max {
            break;
        }
        disk.remove(&dir.join(&entry.name)).await?;
        bytes -= entry.len;
    }
    Ok(())
}
