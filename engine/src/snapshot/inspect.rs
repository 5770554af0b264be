//! What open looks at in a checkpoint: header, footer and size; and what it does to broken ones.
//!
//! CRCs in between are checked when the snapshot is read as a whole. Only if the footer is not
//! where Kafka puts it is the file read through, to say what is wrong with it. One file is open at
//! a time, whatever their number (C-45).

use super::catalog::{Catalog, checkpoint_path};
use super::choose::Inspected;
use super::fault::SnapshotFault;
use super::whole::{BatchScan, SnapshotSummary, Step, Verifier};
use crate::control::{self, VoterSet};
use crate::types::SnapshotId;
use bytes::BytesMut;
use kraftlog_codecs::batch::{Batch, BatchHeader};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::error::DecodeError;
use kraftlog_io::{Disk, Entry, File, IoError, OpenHow};
use std::path::{Path, PathBuf};

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;
/// Bytes read first: a header batch with a few voters fits.
const HEAD_BYTES: usize = 4096;
/// A footer batch as every Kafka writes it: 61 bytes of header and a record of 14.
const FOOTER_BYTES: usize = 75;

/// What the first batch of a checkpoint says.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotHead {
    /// Append time of the last log batch that the snapshot covers, in milliseconds.
    pub last_contained_log_timestamp: i64,
    /// kraft.version; absent means 0.
    pub kraft_version: Option<i16>,
    /// The voter set, if one was known.
    pub voters: Option<VoterSet>,
}

impl SnapshotHead {
    /// Reads the first batch of a checkpoint.
    ///
    /// Kafka's writers put all control records there. (Its reader takes later ones too, which no
    /// writer makes.)
    ///
    /// # Errors
    /// [`SnapshotFault`].
    pub fn from_batch(batch: &Batch<'_>) -> Result<SnapshotHead, SnapshotFault> {
        let bad = |cause: DecodeError| SnapshotFault::BadBatch { position: 0, cause };
        let mut head = None;
        for record in batch.records().map_err(bad)? {
            let record = record.map_err(bad)?;
            let (key, value) = (record.key.unwrap_or_default(), record.value.unwrap_or_default());
            match (ControlRecord::decode(key, value).map_err(bad)?, &mut head) {
                (ControlRecord::SnapshotHeader(header), None) => {
                    head = Some(SnapshotHead {
                        last_contained_log_timestamp: header.last_contained_log_timestamp,
                        kraft_version: None,
                        voters: None,
                    });
                }
                (ControlRecord::KRaftVersion(version), Some(head)) => {
                    let found = version.kraft_version;
                    if !(0..=control::KRAFT_VERSION_MAX).contains(&found) {
                        return Err(SnapshotFault::UnsupportedKRaftVersion { found });
                    }
                    head.kraft_version = Some(found);
                }
                (ControlRecord::Voters(voters), Some(head)) => head.voters = Some(voters),
                _ => {}
            }
        }
        head.ok_or(SnapshotFault::NoHeader { len: batch.bytes().len() as u64 })
    }
}

/// Looks at every checkpoint of the catalog, oldest first.
///
/// # Errors
/// Only those of the disk, with the file's path: a file that cannot be read is no reason to start
/// from an older state (C-39). What is wrong with a content is in [`Inspected::content`].
pub async fn inspect_all(disk: &dyn Disk, dir: &Path, catalog: &Catalog) -> Result<Vec<Inspected>, IoError> {
    let mut all = Vec::new();
    for (id, len) in catalog.known() {
        let content = inspect(disk, &checkpoint_path(dir, id), len).await?;
        all.push(Inspected { id, len, content });
    }
    Ok(all)
}

/// Looks at header, footer and size of one checkpoint.
///
/// # Errors
/// Those of the disk.
pub async fn inspect(
    disk: &dyn Disk,
    path: &Path,
    len: u64,
) -> Result<Result<SnapshotHead, SnapshotFault>, IoError> {
    let file = disk.open(path, OpenHow::Read).await?;
    let head = match read_head(file.as_ref(), len).await? {
        Ok(head) => head,
        Err(fault) => return Ok(Err(fault)),
    };
    if ends_with_footer(file.as_ref(), len).await? {
        return Ok(Ok(head));
    }
    Ok(verify(file.as_ref(), len).await?.map(|_| head))
}

/// Checks a whole checkpoint, keeping no batch.
///
/// # Errors
/// Those of the disk.
pub async fn verify(file: &dyn File, len: u64) -> Result<Result<SnapshotSummary, SnapshotFault>, IoError> {
    let mut verifier = Verifier::new(len);
    let mut buf = BytesMut::with_capacity(READ_BYTES);
    let mut position = 0;
    while position < len {
        buf.clear();
        buf = file.read_at(position, piece(len - position), buf).await?;
        if buf.is_empty() {
            // The file is shorter than the listing said: judged by what is there.
            return Ok(Err(SnapshotFault::Cut { position, size: len - position, left: 0 }));
        }
        position += buf.len() as u64;
        if let Err(fault) = verifier.feed(&buf) {
            return Ok(Err(fault));
        }
    }
    Ok(verifier.finish())
}

async fn read_head(file: &dyn File, len: u64) -> Result<Result<SnapshotHead, SnapshotFault>, IoError> {
    let mut scan = BatchScan::new(len);
    let mut buf = BytesMut::with_capacity(HEAD_BYTES);
    loop {
        match scan.step(&buf) {
            Ok(Step::Batch(header)) => {
                let batch = Batch::parse(&buf[..header.size()]);
                let batch = batch.map_err(|cause| SnapshotFault::BadBatch { position: 0, cause });
                return Ok(batch.and_then(|batch| SnapshotHead::from_batch(&batch)));
            }
            Ok(Step::End(_)) => return Ok(Err(SnapshotFault::NoHeader { len })),
            Err(fault) => return Ok(Err(fault)),
            Ok(Step::More) => {}
        }
        let (position, had) = (buf.len() as u64, buf.len());
        let want = scan.missing(had).max(HEAD_BYTES).min(piece(len - position));
        buf = file.read_at(position, want, buf).await?;
        if buf.len() == had {
            return Ok(Err(SnapshotFault::Cut { position: 0, size: len, left: position }));
        }
    }
}

async fn ends_with_footer(file: &dyn File, len: u64) -> Result<bool, IoError> {
    let Some(position) = len.checked_sub(FOOTER_BYTES as u64) else { return Ok(false) };
    let buf = file.read_at(position, FOOTER_BYTES, BytesMut::with_capacity(FOOTER_BYTES)).await?;
    Ok(Batch::check(&buf)
        .is_ok_and(|batch| is_footer(batch.header(), &batch) && batch.bytes().len() == buf.len()))
}

fn is_footer(header: &BatchHeader, batch: &Batch<'_>) -> bool {
    let mut records = match batch.records() {
        Ok(records) if header.is_control() => records,
        _ => return false,
    };
    let (Some(Ok(record)), None) = (records.next(), records.next()) else { return false };
    let (key, value) = (record.key.unwrap_or_default(), record.value.unwrap_or_default());
    matches!(ControlRecord::decode(key, value), Ok(ControlRecord::SnapshotFooter(_)))
}

fn piece(left: u64) -> usize {
    READ_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Renames a checkpoint that is not whole to a name that no Kafka acts on, and keeps it:
/// `<id>.checkpoint.bad`, with a number if there is one already. Durable on return.
///
/// # Errors
/// Those of the disk.
pub async fn set_aside(disk: &dyn Disk, dir: &Path, id: SnapshotId) -> Result<PathBuf, IoError> {
    let from = checkpoint_path(dir, id);
    let mut number = 0u32;
    let to = loop {
        let mut name = from.clone().into_os_string();
        name.push(".bad");
        if number > 0 {
            name.push(number.to_string());
        }
        let to = PathBuf::from(name);
        if disk.stat(&to).await?.is_none() {
            break to;
        }
        number += 1;
    };
    disk.rename(&from, &to).await?;
    disk.sync_dir(dir).await?;
    Ok(to)
}

/// Removes what earlier writers and deletions left, durably. Call it after every check that may
/// refuse the directory (C-38, C-40), before a writer starts: a live writer's `.part` has the same
/// kind of name.
///
/// # Errors
/// Those of the disk.
pub async fn remove_left_overs(disk: &dyn Disk, dir: &Path, names: &[String]) -> Result<(), IoError> {
    for name in names {
        disk.remove(&dir.join(name)).await?;
    }
    if !names.is_empty() {
        disk.sync_dir(dir).await?;
    }
    Ok(())
}

/// Lists a partition directory and sorts its checkpoints.
///
/// # Errors
/// Those of [`Catalog::from_listing`] and of the disk.
pub async fn list(disk: &dyn Disk, dir: &Path) -> Result<Catalog, IoError> {
    let entries: Vec<Entry> = disk.list(dir).await?;
    Catalog::from_listing(dir, &entries)
}
