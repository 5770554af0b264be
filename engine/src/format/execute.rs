//! The writes of a format, in the order of the [module](super).
//!
//! All directories that will be written are made and locked first: what cannot be written or is in
//! use shows before any identity is laid down. Under the locks each is looked at again, so that two
//! formats at once cannot both win. A failure leaves the directories that were done whole, the others
//! without `meta.properties`; a part file of ours is removed again as far as possible.

use super::checkpoint::{CheckpointTimes, legacy_checkpoint, zero_checkpoint};
use super::plan::{FormatPlan, PlannedDir};
use super::{FormatError, Layout};
use bytes::Bytes;
use kraftlog_codecs::meta_properties::{MetaProperties, MetaVersion};
use kraftlog_codecs::{names, properties};
use kraftlog_io::atomic::{create_dir_durably, publish, remove_durably, replace};
use kraftlog_io::disk::parent;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, IoError, OpenHow, Rt};
use std::path::{Path, PathBuf};

/// Something that happened while formatting, for whoever watches.
#[derive(Debug)]
pub enum FormatEvent<'a> {
    /// This directory is formatted next.
    Begin(&'a PlannedDir),
    /// This directory is formatted, durably.
    Done(&'a PlannedDir),
    /// A legacy `bootstrap.checkpoint` was removed.
    LegacyRemoved(&'a Path),
}

/// A format that stopped: why, and what was done before.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct FormatFailure {
    /// Why.
    #[source]
    pub error: FormatError,
    /// Directories that are formatted, durably.
    pub done: Vec<PathBuf>,
    /// Directories of the file system that were made and may be left empty, outermost first.
    pub made: Vec<PathBuf>,
}

impl FormatPlan {
    /// Does what the plan says. On return every directory of it is formatted, durably.
    ///
    /// # Errors
    /// [`FormatFailure`] with what was done. Another run with `ignore_formatted` finishes the rest.
    ///
    /// # Cancel safety
    /// Dropping it stops between two steps, as a crash would.
    pub async fn execute(
        &self,
        disk: &dyn Disk,
        rt: &dyn Rt,
        mut watch: impl FnMut(FormatEvent<'_>),
    ) -> Result<(), FormatFailure> {
        let mut done = Vec::new();
        let mut made = Vec::new();
        match self.run(disk, rt, &mut watch, &mut done, &mut made).await {
            Ok(()) => Ok(()),
            Err(error) => Err(FormatFailure { error, done, made }),
        }
    }

    async fn run(
        &self,
        disk: &dyn Disk,
        rt: &dyn Rt,
        watch: &mut dyn FnMut(FormatEvent<'_>),
        done: &mut Vec<PathBuf>,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), FormatError> {
        let mut locks = Vec::new();
        for dir in self.dirs() {
            make_dirs(disk, &dir.path, made).await?;
            locks.push(rt.lock_dir(&dir.path)?);
        }
        for dir in self.dirs() {
            let meta = dir.path.join(names::META_PROPERTIES);
            if disk.stat(&meta).await?.is_some() {
                return Err(FormatError::Changed { path: meta });
            }
        }
        for dir in self.dirs() {
            watch(FormatEvent::Begin(dir));
            self.format_dir(disk, rt, dir, watch, made).await?;
            done.push(dir.path.clone());
            watch(FormatEvent::Done(dir));
        }
        drop(locks);
        Ok(())
    }

    async fn format_dir(
        &self,
        disk: &dyn Disk,
        rt: &dyn Rt,
        dir: &PlannedDir,
        watch: &mut dyn FnMut(FormatEvent<'_>),
        made: &mut Vec<PathBuf>,
    ) -> Result<(), FormatError> {
        let now = || millis(rt);
        let legacy = dir.path.join(names::BOOTSTRAP_CHECKPOINT);
        if self.layout() == Layout::V4_3 {
            let times = CheckpointTimes { header: 0, control: now(), data: now(), footer: now() };
            let bytes = legacy_checkpoint(self.records(), times)?;
            replace(disk, &legacy, &bytes, 0o644).await?;
        }
        if planted::is(Plant::FormatMetaPropertiesFirst) {
            self.write_identity(disk, rt, dir).await?;
        }
        if dir.zero_checkpoint {
            let times = CheckpointTimes { header: now(), control: now(), data: now(), footer: now() };
            let records = match self.layout() {
                Layout::V4_4 => self.records(),
                Layout::V4_3 => &[],
            };
            let bytes = zero_checkpoint(self.kraft_version(), self.voters(), records, times)?;
            let partition_dir = dir.path.join(names::METADATA_PARTITION_DIR);
            make_dirs(disk, &partition_dir, made).await?;
            write_snapshot(disk, &partition_dir, bytes, rt.random()).await?;
        }
        if self.layout() == Layout::V4_4 && dir.legacy_bootstrap {
            remove_durably(disk, &legacy).await?;
            watch(FormatEvent::LegacyRemoved(&legacy));
        }
        self.write_identity(disk, rt, dir).await
    }

    /// The commit point: from here on the directory is formatted.
    async fn write_identity(
        &self,
        disk: &dyn Disk,
        rt: &dyn Rt,
        dir: &PlannedDir,
    ) -> Result<(), FormatError> {
        let props = MetaProperties {
            version: MetaVersion::V1,
            cluster_id: Some(self.cluster_id().to_owned()),
            node_id: Some(self.node_id()),
            directory_id: Some(dir.directory_id),
        };
        let bytes = props.encode(&properties::java_date_utc(millis(rt)));
        replace(disk, &dir.path.join(names::META_PROPERTIES), &bytes, 0o644).await?;
        Ok(())
    }
}

/// Makes a directory and its missing parents durably, and notes what was made.
async fn make_dirs(disk: &dyn Disk, path: &Path, made: &mut Vec<PathBuf>) -> Result<(), IoError> {
    let mut missing = Vec::new();
    let mut at = path.to_path_buf();
    while disk.stat(&at).await?.is_none() {
        missing.push(at.clone());
        let above = parent(&at);
        if above == at {
            break;
        }
        at = above;
    }
    if missing.is_empty() {
        // Its own name may still hang in the air after a crash of whoever made it.
        return create_dir_durably(disk, path).await;
    }
    for dir in missing.into_iter().rev() {
        create_dir_durably(disk, &dir).await?;
        made.push(dir);
    }
    Ok(())
}

/// Writes a zero checkpoint in the way of every snapshot: part file, sync, read-only, rename,
/// directory sync. An old one of that name is replaced.
async fn write_snapshot(disk: &dyn Disk, dir: &Path, bytes: Vec<u8>, random: u64) -> Result<(), IoError> {
    // Java's random numbers in these names are 63 bits.
    let part = dir.join(names::checkpoint_part_name(0, 0, random >> 1));
    let written = async {
        let file = disk.open(&part, OpenHow::CreateNew { mode: 0o600 }).await?;
        file.write_at(0, vec![Bytes::from(bytes)]).await?;
        file.set_mode(0o400).await?;
        file.sync_all().await
    };
    let published = match written.await {
        Ok(()) => publish(disk, &part, &dir.join(names::checkpoint_name(0, 0))).await,
        Err(error) => Err(error),
    };
    if published.is_err() {
        // Best effort: a part file is never read, and the first error is the one to tell of.
        let _ = disk.remove(&part).await;
    }
    published
}

/// Wall clock in Kafka's unit.
fn millis(rt: &dyn Rt) -> i64 {
    i64::try_from(rt.now().as_millis()).unwrap_or(i64::MAX)
}
