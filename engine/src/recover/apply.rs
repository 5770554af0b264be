//! The writing half of recovery: does what the survey decided, in an order that a crash may break off
//! anywhere.
//!
//! Order: keep and cut; finish deletes and a full truncation; write again what may not be on the disk;
//! index files, epoch checkpoint, `partition.metadata`; the side file; left-overs last.

use crate::log::active::{ActiveSegment, FoundActive};
use crate::log::open_report::{Cut, OpenReport};
use crate::recover::found::{FoundDir, FoundSegment};
use crate::recover::keep;
use crate::recover::survey::{KnownSegment, Survey};
use crate::segment::{Segment, encode_time_index};
use crate::snapshot::{self, SnapshotPlan};
use crate::state::{STATE_FILE, State};
use crate::types::{Offset, SnapshotId};
use bytes::{Bytes, BytesMut};
use kraftlog_codecs::epochs::{self, EpochEntry};
use kraftlog_codecs::names;
use kraftlog_codecs::partition_metadata::PartitionMetadata;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, IoError, IoErrorKind, Op, OpenHow, Rt, atomic};
use std::path::Path;
use std::sync::Arc;

const FILE_MODE: u32 = 0o644;
const CHUNK_BYTES: u64 = 1 << 20;

/// Everything in its place: what the lane takes over.
pub(crate) struct Applied {
    pub(crate) active: ActiveSegment,
    /// All segments, the active one last.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) sealed: Vec<crate::state::SegmentLen>,
    pub(crate) epochs: Vec<EpochEntry>,
}

/// What the writing half works with.
pub(crate) struct Apply<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) rt: &'a dyn Rt,
    pub(crate) part_dir: &'a Path,
    pub(crate) found: &'a FoundDir,
    pub(crate) report: &'a mut OpenReport,
}

impl Apply<'_> {
    /// Does everything up to the side file; the caller writes that, then calls [`Apply::clean_up`].
    pub(crate) async fn apply(&mut self, survey: &mut Survey) -> Result<Applied, IoError> {
        self.cut(survey).await?;
        for segment in std::mem::take(&mut survey.deleted) {
            self.remove_segment(&segment.path, segment.base).await?;
        }
        if let Some(id) = survey.plan.truncate_fully_to {
            return self.truncate_fully(survey, id).await;
        }
        self.rewrite(survey).await?;
        let mut sealed = Vec::new();
        let mut segments = Vec::new();
        let mut active = None;
        let count = survey.segments.len();
        for (at, mut known) in std::mem::take(&mut survey.segments).into_iter().enumerate() {
            let segment = Arc::new(Segment::new(self.part_dir, known.base, std::mem::take(&mut known.index)));
            segments.push(Arc::clone(&segment));
            self.write_index_files(&segment, &mut known).await?;
            if at + 1 < count {
                sealed.push(crate::state::SegmentLen { base: known.base, bytes: known.valid });
                continue;
            }
            let time_entries_written = known.indexer.time_entries();
            let found = FoundActive {
                index_entries_written: segment.index_len(),
                time_entries_written,
                segment,
                written: known.valid,
                indexer: known.indexer,
                first_timestamp: known.first_timestamp,
                last: survey.gathered.last,
            };
            active = Some(ActiveSegment::open(self.disk, self.part_dir, found).await?);
        }
        let active = match active {
            Some(active) => active,
            None => {
                let active = ActiveSegment::create(self.disk, self.part_dir, survey.gathered.end).await?;
                self.disk.sync_dir(self.part_dir).await?;
                segments.push(Arc::clone(&active.segment));
                active
            }
        };
        let epochs = self.epochs(survey).await?;
        self.partition_metadata().await?;
        Ok(Applied { active, segments, sealed, epochs })
    }

    /// Keeps what is cut, then cuts: later segments newest first, then the torn one.
    async fn cut(&mut self, survey: &mut Survey) -> Result<(), IoError> {
        let Some(cut) = &survey.cut else { return Ok(()) };
        let known = &mut survey.segments[cut.segment];
        let now = self.rt.now().as_millis();
        let mut kept = Vec::new();
        let file = self.disk.open(&known.path, OpenHow::Write).await?;
        let mut bytes = cut.data_end - cut.position;
        if bytes > 0 {
            let range = (cut.position, cut.data_end);
            kept.push(keep::keep(self.disk, self.part_dir, known.base, &*file, range, now).await?);
        }
        for later in survey.behind_cut.iter().rev() {
            if later.len > 0 {
                let file = self.disk.open(&later.path, OpenHow::Read).await?;
                kept.push(
                    keep::keep(self.disk, self.part_dir, later.base, &*file, (0, later.len), now).await?,
                );
                bytes += later.len;
            }
            self.remove_segment(&later.path, later.base).await?;
        }
        file.set_len(cut.position).await?;
        file.sync_all().await?;
        self.disk.sync_dir(self.part_dir).await?;
        self.report.zero_tail_bytes = known.file_len - cut.data_end;
        known.file_len = cut.position;
        if bytes > 0 || !survey.behind_cut.is_empty() {
            self.report.torn_tail = Some(Cut {
                path: known.path.clone(),
                position: cut.position,
                bytes,
                end: survey.gathered.end,
                reason: cut.reason.clone(),
                kept,
            });
        }
        Ok(())
    }

    /// Removes a segment: the log first, so that an index without a log is all that a crash leaves.
    async fn remove_segment(&mut self, path: &Path, base: Offset) -> Result<(), IoError> {
        self.disk.remove(path).await?;
        for name in [names::offset_index_name(base.0), names::time_index_name(base.0)] {
            remove_if_there(self.disk, &self.part_dir.join(name)).await?;
        }
        self.disk.sync_dir(self.part_dir).await?;
        self.report.removed.push(names::segment_name(base.0));
        Ok(())
    }

    /// The log is replaced by a snapshot: intent, old segments oldest first, a new one at its end.
    async fn truncate_fully(&mut self, survey: &mut Survey, id: SnapshotId) -> Result<Applied, IoError> {
        let intent = State {
            clean: false,
            durable_end: Offset::ZERO,
            last: None,
            committed: Offset::ZERO,
            checked_level: 0,
            intent: Some(id),
            segments: Vec::new(),
            epochs: Vec::new(),
            control: Vec::new(),
        };
        self.replace(STATE_FILE, intent.encode().as_bytes()).await?;
        let old: Vec<FoundSegment> = survey
            .segments
            .drain(..)
            .map(|known| FoundSegment { base: known.base, path: known.path, len: known.valid })
            .collect();
        for segment in old {
            self.remove_segment(&segment.path, segment.base).await?;
        }
        let active = ActiveSegment::create(self.disk, self.part_dir, id.end_offset).await?;
        self.disk.sync_dir(self.part_dir).await?;
        survey.gathered.end = id.end_offset;
        survey.gathered.epochs.clear();
        survey.gathered.control.clear();
        survey.gathered.last = None;
        self.report.truncated_to = Some(id);
        let epochs = self.epochs(survey).await?;
        self.partition_metadata().await?;
        let segments = vec![Arc::clone(&active.segment)];
        Ok(Applied { active, segments, sealed: Vec::new(), epochs })
    }

    /// Writes bytes again that the cache may have and the disk may not: after a failed sync, a second
    /// one says that all is well.
    async fn rewrite(&mut self, survey: &Survey) -> Result<(), IoError> {
        let Some((first, from)) = survey.rewrite_from else { return Ok(()) };
        if planted::is(Plant::OpenWithoutRewrite) {
            return Ok(());
        }
        for (at, known) in survey.segments.iter().enumerate().skip(first) {
            let from = if at == first { from } else { 0 };
            let file = self.disk.open(&known.path, OpenHow::Write).await?;
            let mut position = from;
            while position < known.valid {
                let want = usize::try_from((known.valid - position).min(CHUNK_BYTES)).unwrap_or(usize::MAX);
                let buf = file.read_at(position, want, BytesMut::new()).await?;
                if buf.is_empty() {
                    let cause = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                    return Err(IoError::new(Op::Read, &known.path, cause));
                }
                let read = buf.len() as u64;
                file.write_at(position, vec![Bytes::from(buf)]).await?;
                position += read;
            }
            // The length too, also where it is right: the sync that was to make a cut durable may be the one
            // that failed, and zeros behind a segment's end are in the way once another follows it.
            file.set_len(known.valid).await?;
            file.sync_all().await?;
            self.report.rewritten_bytes += position - from;
        }
        self.disk.sync_dir(self.part_dir).await
    }

    /// Replaces index files that do not say what is in memory. They are caches: not synced.
    async fn write_index_files(
        &mut self,
        segment: &Segment,
        known: &mut KnownSegment,
    ) -> Result<(), IoError> {
        let path = self.part_dir.join(names::offset_index_name(known.base.0));
        if known.index_written != segment.index_len() {
            self.write_cache(&path, segment.index_bytes(0)).await?;
        }
        if let Some(fault) = known.index_fault.take() {
            self.report.indexes_rebuilt.push((path, fault));
        }
        let path = self.part_dir.join(names::time_index_name(known.base.0));
        // What a clean close left is not in memory; what a scan found is.
        let from_memory = !known.indexer.time.is_empty() || known.time_written == usize::MAX;
        if from_memory && known.time_written != known.indexer.time.len() {
            self.write_cache(&path, encode_time_index(&known.indexer.time)).await?;
        }
        known.indexer.time.clear();
        if let Some(fault) = known.time_fault.take() {
            self.report.indexes_rebuilt.push((path, fault));
        }
        Ok(())
    }

    async fn write_cache(&self, path: &Path, bytes: Vec<u8>) -> Result<(), IoError> {
        // Removed and made anew: an index may be a link, or of a mode that forbids writing.
        remove_if_there(self.disk, path).await?;
        let file = self.disk.open(path, OpenHow::CreateNew { mode: FILE_MODE }).await?;
        if !bytes.is_empty() {
            file.write_at(0, vec![Bytes::from(bytes)]).await?;
        }
        Ok(())
    }

    /// Holds the epoch checkpoint against the batches.
    async fn epochs(&mut self, survey: &Survey) -> Result<Vec<EpochEntry>, IoError> {
        let derived = cut_before(survey.gathered.epochs.clone(), survey.plan.start);
        let agrees = match &self.found.epochs {
            Ok(entries) => {
                let entries: Vec<EpochEntry> = entries
                    .iter()
                    .copied()
                    .filter(|entry| entry.start_offset < survey.gathered.end.0)
                    .collect();
                // An epoch that was begun and got no batch is dropped, as Kafka does at its start.
                entries == derived
                    || cut_before(entries.clone(), survey.plan.start) == derived
                    || was_cut_at_a_snapshot(survey, &derived, &entries)
            }
            Err(_) => false,
        };
        if agrees && self.found.epochs_exist {
            return Ok(derived);
        }
        if self.found.epochs_exist {
            self.report.epochs_rebuilt = Some(match &self.found.epochs {
                Err(fault) => fault.to_string(),
                Ok(_) => "it disagreed with the batches".to_string(),
            });
        }
        // A new log has the empty file (formats.md 7.3).
        let text = if derived.is_empty() { String::new() } else { epochs::format(&derived) };
        self.replace(names::LEADER_EPOCH_CHECKPOINT, text.as_bytes()).await?;
        Ok(derived)
    }

    async fn partition_metadata(&self) -> Result<(), IoError> {
        if self.found.partition_metadata_exists {
            return Ok(());
        }
        self.replace(names::PARTITION_METADATA, PartitionMetadata::CLUSTER_METADATA.format().as_bytes()).await
    }

    async fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), IoError> {
        atomic::replace(self.disk, &self.part_dir.join(name), bytes, FILE_MODE).await
    }

    /// The last step, behind the side file: sets broken snapshots aside and removes left-overs.
    pub(crate) async fn clean_up(
        &mut self,
        plan: &SnapshotPlan,
        segments: &[Arc<Segment>],
    ) -> Result<(), IoError> {
        for (id, fault) in &plan.set_aside {
            let path = snapshot::set_aside(self.disk, self.part_dir, *id).await?;
            self.report.set_aside.push((path, fault.clone()));
        }
        let mut names: Vec<String> = plan
            .stale
            .iter()
            .map(|id| names::checkpoint_name(id.end_offset.0, id.epoch.0))
            .chain(self.found.left_overs.iter().cloned())
            .chain(self.found.producer_snapshots.iter().cloned())
            .collect();
        let orphans = self.found.indexes.iter().filter(|(base, _)| !segments.iter().any(|s| s.base == *base));
        names.extend(orphans.map(|(_, name)| name.clone()));
        for name in &names {
            remove_if_there(self.disk, &self.part_dir.join(name)).await?;
        }
        if !names.is_empty() {
            self.disk.sync_dir(self.part_dir).await?;
        }
        let left = self.found.catalog.left_overs();
        if !left.is_empty() {
            snapshot::remove_left_overs(self.disk, self.part_dir, left).await?;
        }
        names.retain(|name| !self.found.producer_snapshots.contains(name));
        self.report.removed.extend(names);
        self.report.removed.extend(left.iter().cloned());
        Ok(())
    }
}

/// A Kafka forgets its log start at a restart, but not that it has cut the epochs there (behaviour.md
/// B-128): what the file lacks then lies below a snapshot, and is right as far as it goes.
fn was_cut_at_a_snapshot(survey: &Survey, derived: &[EpochEntry], file: &[EpochEntry]) -> bool {
    let Some(first) = file.first() else { return false };
    let start = Offset(first.start_offset);
    survey.inspected.iter().any(|one| one.id.end_offset == start)
        && cut_before(derived.to_vec(), start) == file
}

/// As the cache does when the log starts at `start`.
fn cut_before(entries: Vec<EpochEntry>, start: Offset) -> Vec<EpochEntry> {
    let mut cache = crate::epochs::EpochCache::new(entries);
    cache.cut_before(start);
    cache.entries().to_vec()
}

async fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), IoError> {
    match disk.remove(path).await {
        Err(error) if error.kind() != IoErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
