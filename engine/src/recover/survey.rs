//! The reading half of recovery: scans what must be scanned, and decides. Writes nothing.

use crate::config::{LogConfig, Role};
use crate::log::open_error::{Evidence, OpenError, ValidBehind};
use crate::log::open_report;
use crate::recover::damage::{self, Behind};
use crate::recover::found::{FoundDir, FoundSegment, small_file};
use crate::recover::scan::{self, Fault, Gathered, NewerRecord, Scanned};
use crate::segment::Indexer;
use crate::snapshot::{Inspected, LogExtent, SnapshotPlan, Truncation, choose, inspect_all};
use crate::state::{LastBatch, State};
use crate::types::{Epoch, Offset};
use kraftlog_codecs::batch::Batch;
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::index::{
    INDEX_BYTES_MAX, OffsetEntry, OffsetIndex, TIME_INDEX_BYTES_MAX, TimeEntry, TimeIndex,
};
use kraftlog_codecs::names;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, File, IoError, OpenHow};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// One segment as it will be.
pub(crate) struct KnownSegment {
    pub(crate) base: Offset,
    pub(crate) path: PathBuf,
    pub(crate) file_len: u64,
    pub(crate) valid: u64,
    pub(crate) index: Vec<OffsetEntry>,
    pub(crate) indexer: Indexer,
    pub(crate) first_timestamp: Option<i64>,
    /// Why the offset index file is replaced, if it is to be reported.
    pub(crate) index_fault: Option<String>,
    pub(crate) time_fault: Option<String>,
    /// The files say exactly what is in memory.
    pub(crate) index_written: usize,
    pub(crate) time_written: usize,
}

/// Bytes to be cut off.
pub(crate) struct CutPlan {
    /// Number of the segment that is cut; all later ones go.
    pub(crate) segment: usize,
    pub(crate) position: u64,
    pub(crate) reason: String,
    /// Where the sectors end that are not all zero.
    pub(crate) data_end: u64,
}

/// Everything that was decided.
pub(crate) struct Survey {
    /// Oldest first, those to be removed not among them.
    pub(crate) segments: Vec<KnownSegment>,
    /// Segments below a gap that a delete left, and empty ones that a failed roll left.
    pub(crate) deleted: Vec<FoundSegment>,
    /// Segments behind a cut.
    pub(crate) behind_cut: Vec<FoundSegment>,
    pub(crate) cut: Option<CutPlan>,
    pub(crate) gathered: Gathered,
    pub(crate) plan: SnapshotPlan,
    pub(crate) inspected: Vec<Inspected>,
    pub(crate) scanned: open_report::Scanned,
    pub(crate) batches: u64,
    /// From this segment and position on the bytes are written again; `None` after a clean close.
    pub(crate) rewrite_from: Option<(usize, u64)>,
}

/// Where the pass begins, and what is known of the log before.
struct Begin {
    segment: usize,
    position: u64,
    gathered: Gathered,
    /// Segments before, taken over from the side file.
    before: Vec<KnownSegment>,
    index: Vec<OffsetEntry>,
    indexer: Indexer,
    first_timestamp: Option<i64>,
    scanned: open_report::Scanned,
}

/// Reads the directory and decides.
pub(crate) async fn survey(
    disk: &dyn Disk,
    part_dir: &Path,
    config: &LogConfig,
    found: &FoundDir,
) -> Result<Survey, OpenError> {
    let inspected = inspect_all(disk, part_dir, &found.catalog).await?;
    let kafka = found.kafka_was_here();
    let trusted = found.state.as_ref().filter(|_| !kafka);
    let (mut deleted, mut segments) = (Vec::new(), found.segments.clone());
    let covered = inspected.iter().filter(|one| one.content.is_ok()).map(|one| one.id.end_offset).max();

    let begin = match trusted {
        Some(state) => resume(disk, part_dir, config, state, &segments).await?,
        None => None,
    };
    let resumed = begin.is_some();
    let begin = begin.unwrap_or_else(|| from_scratch(&segments));
    let mut pass = Pass {
        disk,
        part_dir,
        config,
        evidence: trusted.and_then(|state| state.last),
        gathered: begin.gathered,
        known: begin.before,
        batches: 0,
    };
    let mut cut = None;
    let mut at = begin.segment;
    let mut first = Some((begin.position, begin.index, begin.indexer, begin.first_timestamp));
    while at < segments.len() {
        let segment = segments[at].clone();
        // A pass that begins with the last durable batch begins inside of its segment.
        let is_resumed_here = first.as_ref().is_some_and(|(position, ..)| *position > 0);
        if segment.base != pass.gathered.end && !is_resumed_here {
            // What a roll left that failed halfway: the log went on in the segment before.
            if segment.len == 0 && segment.base < pass.gathered.end {
                deleted.push(segments.remove(at));
                continue;
            }
            let delete_left_it =
                segment.base > pass.gathered.end && covered.is_some_and(|covered| covered >= segment.base);
            if delete_left_it && !resumed {
                deleted.extend(segments.drain(..at));
                let fresh = from_scratch(&segments);
                (pass.gathered, pass.known, at) = (fresh.gathered, Vec::new(), 0);
                continue;
            }
            if config.role == Role::Observer && at > 0 {
                let position = pass.known.last().map_or(0, |known| known.valid);
                let reason = "the next segment does not begin where this one ends".to_string();
                cut = Some(CutPlan { segment: at - 1, position, reason, data_end: position });
                break;
            }
            let (path, expected) = (segment.path, pass.gathered.end);
            return Err(OpenError::SegmentsDoNotMeet { path, expected, found: segment.base });
        }
        let file = disk.open(&segment.path, OpenHow::Read).await?;
        let fault = pass.scan(&*file, &segment, first.take()).await?;
        if let Some(fault) = fault {
            cut = Some(pass.judge(&file, &segments[at..], at, fault, trusted).await?);
            break;
        }
        at += 1;
    }
    let behind_cut = match &cut {
        Some(cut) => segments.split_off(cut.segment + 1),
        None => Vec::new(),
    };
    let (gathered, known) = (pass.gathered, pass.known);
    refuse_newer(part_dir, &gathered)?;
    let path = known.last().map_or(part_dir.to_path_buf(), |known| known.path.clone());
    let position = known.last().map_or(0, |known| known.valid);
    if config.role == Role::Voter {
        hold_against_evidence(found.state.as_ref(), trusted.is_some(), &gathered, path, position)?;
    }
    let extent = LogExtent {
        first_base: segments.first().map_or(Offset::ZERO, |segment| segment.base),
        end: gathered.end,
        last_epoch: gathered.last_epoch,
    };
    let truncation = Truncation {
        intent: found.state.as_ref().and_then(|state| state.intent),
        kafka_was_here: kafka || config.role == Role::Observer,
    };
    let plan = choose(extent, &inspected, found.catalog.deleted(), truncation)?;
    let clean = resumed && trusted.is_some_and(|state| state.clean) && cut.is_none();
    let scanned = match (clean, begin.scanned) {
        (false, open_report::Scanned::Tail) => open_report::Scanned::SinceDurable,
        (_, scanned) => scanned,
    };
    Ok(Survey {
        segments: known,
        deleted,
        behind_cut,
        cut,
        gathered,
        plan,
        inspected,
        scanned,
        batches: pass.batches,
        rewrite_from: (!clean).then_some((begin.segment, begin.position)),
    })
}

struct Pass<'a> {
    disk: &'a dyn Disk,
    part_dir: &'a Path,
    config: &'a LogConfig,
    evidence: Option<LastBatch>,
    gathered: Gathered,
    known: Vec<KnownSegment>,
    batches: u64,
}

impl Pass<'_> {
    /// Scans one segment and adds it to what is known. The fault that ended the scan, if any.
    async fn scan(
        &mut self,
        file: &dyn File,
        segment: &FoundSegment,
        first: Option<(u64, Vec<OffsetEntry>, Indexer, Option<i64>)>,
    ) -> Result<Option<Fault>, OpenError> {
        let files = IndexFiles::read(self.disk, self.part_dir, segment.base).await?;
        let (position, index, indexer, first_timestamp) =
            first.unwrap_or_else(|| (0, Vec::new(), Indexer::new(segment.base), None));
        let from = scan::From {
            base: segment.base,
            position,
            index,
            indexer,
            index_file: files.offsets.as_deref().unwrap_or_default(),
            check_records: self.config.check_records,
            evidence: self.evidence,
        };
        let scanned = scan::scan(file, from, &mut self.gathered).await?;
        self.batches += scanned.batches;
        let fault = scanned.fault;
        self.known.push(known(segment, scanned, files, self.gathered.end, first_timestamp));
        Ok(fault)
    }

    /// Torn, so that it is cut, or an error.
    async fn judge(
        &self,
        file: &Rc<dyn File>,
        segments: &[FoundSegment],
        number: usize,
        fault: Fault,
        trusted: Option<&State>,
    ) -> Result<CutPlan, OpenError> {
        let Some(known) = self.known.last() else { unreachable!("a fault comes from a scanned segment") };
        let (position, file_len) = (known.valid, known.file_len);
        let data_end = damage::data_end(&**file, position, file_len).await?;
        let plan = CutPlan { segment: number, position, reason: fault.describe(), data_end };
        if self.config.role == Role::Observer || planted::is(Plant::CutWhateverIsBad) {
            return Ok(plan);
        }
        let (path, expected) = (known.path.clone(), self.gathered.end);
        let (cause, crcs) = match fault {
            Fault::BadBatch { cause, crcs, .. } => (cause, crcs),
            Fault::Misplaced { base } => {
                return Err(OpenError::MisplacedBatch { path, position, expected, found: Offset(base) });
            }
            Fault::EpochGoesDown { epoch } => {
                let (found, last) = (Epoch(epoch), self.gathered.last_epoch);
                return Err(OpenError::EpochGoesDown { path, position, offset: expected, found, last });
            }
        };
        let corrupt = |valid_behind| OpenError::CorruptBatch {
            path: path.clone(),
            position,
            offset: expected,
            cause,
            stored_crc: crcs.map(|(stored, _)| stored),
            computed_crc: crcs.map(|(_, computed)| computed),
            valid_behind,
        };
        let epoch = self.gathered.last_epoch;
        // A later segment with a batch in it is as much behind as one in this file.
        for later in &segments[1..] {
            let later_file = self.disk.open(&later.path, OpenHow::Read).await?;
            match damage::look_behind(&*later_file, later.len, 0, expected, epoch).await? {
                Behind::Nothing => {}
                Behind::Valid(follower) => return Err(corrupt(Some(behind(follower, 0)))),
                Behind::Unknown => return Err(corrupt(None)),
            }
        }
        match damage::look_behind(&**file, file_len, position + 1, expected, epoch).await? {
            Behind::Nothing => Ok(plan),
            Behind::Unknown => Err(corrupt(None)),
            Behind::Valid(follower) => {
                let above_durable = trusted.is_some_and(|state| expected >= state.durable_end);
                let next = follower.position;
                if above_durable && damage::is_torn_group(&**file, file_len, position, next).await? {
                    return Ok(plan);
                }
                Err(corrupt(Some(behind(follower, next))))
            }
        }
    }
}

fn behind(follower: damage::Follower, position: u64) -> ValidBehind {
    let damage::Follower { base, last, batches, .. } = follower;
    ValidBehind { position, first: Offset(base), last: Offset(last), batches }
}

/// The index files of one segment, as far as they are sound in themselves.
#[derive(Default)]
struct IndexFiles {
    offsets: Option<Vec<OffsetEntry>>,
    times: Option<Vec<TimeEntry>>,
    offset_fault: Option<String>,
    time_fault: Option<String>,
    /// Lengths of the files.
    offset_bytes: Option<usize>,
    time_bytes: Option<usize>,
}

impl IndexFiles {
    async fn read(disk: &dyn Disk, part_dir: &Path, base: Offset) -> Result<IndexFiles, IoError> {
        let mut files = IndexFiles::default();
        let path = part_dir.join(names::offset_index_name(base.0));
        if let Some(bytes) = small_file(disk, &path, INDEX_BYTES_MAX).await? {
            files.offset_bytes = Some(bytes.len());
            match OffsetIndex::check(&bytes) {
                Ok(index) => files.offsets = Some(index.entries().collect()),
                Err(fault) => files.offset_fault = Some(fault.to_string()),
            }
        }
        let path = part_dir.join(names::time_index_name(base.0));
        if let Some(bytes) = small_file(disk, &path, TIME_INDEX_BYTES_MAX).await? {
            files.time_bytes = Some(bytes.len());
            match TimeIndex::check(&bytes) {
                Ok(index) => files.times = Some(index.entries().collect()),
                Err(fault) => files.time_fault = Some(fault.to_string()),
            }
        }
        Ok(files)
    }
}

/// A scanned segment, its index files held against what was found.
fn known(
    segment: &FoundSegment,
    mut scanned: Scanned,
    files: IndexFiles,
    end: Offset,
    first_timestamp: Option<i64>,
) -> KnownSegment {
    let last_relative = end.0 - segment.base.0 - 1;
    let mut index_fault = files.offset_fault;
    if index_fault.is_none() && scanned.index_differs {
        index_fault = Some("an entry points at no batch".to_string());
    }
    let mut time_fault = files.time_fault;
    if time_fault.is_none()
        && let Some(last) = files.times.as_ref().and_then(|times| times.last())
        && i64::from(last.relative_offset) > last_relative
    {
        time_fault = Some("an entry lies beyond the log".to_string());
    }
    // As at the end of Kafka's recovery.
    scanned.indexer.add_time();
    // A file that says what we would write stays as it is.
    let same = files.offsets.as_deref() == Some(&scanned.index)
        && files.offset_bytes == Some(scanned.index.len() * 8);
    let times_same = files.times.as_deref() == Some(&scanned.indexer.time)
        && files.time_bytes == Some(scanned.indexer.time.len() * 12);
    KnownSegment {
        base: segment.base,
        path: segment.path.clone(),
        file_len: scanned.file_len,
        valid: scanned.valid,
        index_written: if same { scanned.index.len() } else { usize::MAX },
        time_written: if times_same { scanned.indexer.time.len() } else { usize::MAX },
        index: scanned.index,
        indexer: scanned.indexer,
        first_timestamp: scanned.first_timestamp.or(first_timestamp),
        index_fault,
        time_fault,
    }
}

fn empty(end: Offset) -> Gathered {
    Gathered {
        end,
        last_epoch: Epoch::ZERO,
        epochs: Vec::new(),
        control: Vec::new(),
        last: None,
        newer: None,
        migration: None,
        evidence_differs: None,
    }
}

/// A pass over everything.
fn from_scratch(segments: &[FoundSegment]) -> Begin {
    let base = segments.first().map_or(Offset::ZERO, |segment| segment.base);
    Begin {
        segment: 0,
        position: 0,
        gathered: empty(base),
        before: Vec::new(),
        index: Vec::new(),
        indexer: Indexer::new(base),
        first_timestamp: None,
        scanned: open_report::Scanned::All,
    }
}

/// A pass that begins with the last durable batch, if the side file's hints hold; `None` if anything
/// disagrees.
async fn resume(
    disk: &dyn Disk,
    part_dir: &Path,
    config: &LogConfig,
    state: &State,
    segments: &[FoundSegment],
) -> Result<Option<Begin>, OpenError> {
    let Some(last) = state.last else { return Ok(None) };
    let level = MetadataVersion::LATEST_TESTING.0;
    if (config.check_records && state.checked_level != level)
        || !state.epochs_ascend()
        || segments.len() < state.segments.len()
        || state.intent.is_some()
    {
        return Ok(None);
    }
    let newest = state.segments.len().wrapping_sub(1);
    for (at, (recorded, found)) in state.segments.iter().zip(segments).enumerate() {
        let grown = at == newest && !state.clean && found.len >= recorded.bytes;
        if recorded.base != found.base || (recorded.bytes != found.len && !grown) {
            return Ok(None);
        }
    }
    let Some(number) = segments.iter().position(|segment| segment.base == last.segment) else {
        return Ok(None);
    };
    if number > newest || (state.clean && segments.len() != state.segments.len()) {
        return Ok(None);
    }
    let segment = &segments[number];
    if !is_last_batch(disk, segment, last, state.durable_end).await? {
        return Ok(None);
    }
    let mut gathered = empty(last.base);
    gathered.last_epoch = last.epoch;
    gathered.epochs.clone_from(&state.epochs);
    // The batch is seen again, and with it an epoch that begins there.
    gathered.epochs.retain(|entry| entry.start_offset < last.base.0);
    for offset in state.control.iter().filter(|offset| **offset < last.base) {
        let Some(batch) = control_batch(disk, part_dir, segments, *offset).await? else { return Ok(None) };
        gathered.control.push((*offset, batch));
    }
    let mut before = Vec::new();
    for (at, segment) in segments[..number].iter().enumerate() {
        let files = IndexFiles::read(disk, part_dir, segment.base).await?;
        let (Some(index), Some(times)) = (files.offsets, files.times) else { return Ok(None) };
        let last_relative = segments[at + 1].base.0 - segment.base.0 - 1;
        if !index_fits(&index, segment.len, last_relative) {
            return Ok(None);
        }
        before.push(KnownSegment {
            base: segment.base,
            path: segment.path.clone(),
            file_len: segment.len,
            valid: segment.len,
            index_written: index.len(),
            time_written: times.len(),
            index,
            indexer: Indexer::resume(segment.base, times.len(), times.last().copied()),
            first_timestamp: None,
            index_fault: None,
            time_fault: None,
        });
    }
    let files = IndexFiles::read(disk, part_dir, segment.base).await?;
    let (Some(mut index), Some(mut times)) = (files.offsets, files.times) else { return Ok(None) };
    let last_relative = last.base.0 - segment.base.0;
    index.retain(|entry| i64::from(entry.position).cast_unsigned() < last.position);
    if !index_fits(&index, last.position, last_relative - 1) {
        return Ok(None);
    }
    times.retain(|entry| i64::from(entry.relative_offset) < last_relative);
    let mut indexer = Indexer::resume(segment.base, 0, None);
    indexer.take_over(&times);
    let first_timestamp = first_timestamp(disk, segment).await?;
    let scanned = open_report::Scanned::Tail;
    let position = last.position;
    Ok(Some(Begin { segment: number, position, gathered, before, index, indexer, first_timestamp, scanned }))
}

/// No entry of a checked index lies beyond a segment, and the tail that it leaves open is short.
fn index_fits(index: &[OffsetEntry], log_bytes: u64, last_relative: i64) -> bool {
    let (position, relative) =
        index.last().map_or((0, -1), |last| (i64::from(last.position), i64::from(last.relative_offset)));
    // The largest batches that Kafka writes may stand without an entry between them.
    let open_max = 3 * kraftlog_codecs::batch::BATCH_BYTES_MAX as u64;
    position.cast_unsigned() <= log_bytes
        && relative <= last_relative
        && log_bytes - position.cast_unsigned() <= open_max
}

/// True if the recorded last batch is where it should be, whole, and ends at the durable end.
async fn is_last_batch(
    disk: &dyn Disk,
    segment: &FoundSegment,
    last: LastBatch,
    durable_end: Offset,
) -> Result<bool, IoError> {
    let file = disk.open(&segment.path, OpenHow::Read).await?;
    let Some(bytes) = read_batch(&*file, segment.len, last.position).await? else { return Ok(false) };
    let Ok(batch) = Batch::check(&bytes) else { return Ok(false) };
    let header = batch.header();
    Ok(header.base_offset == last.base.0
        && header.leader_epoch == last.epoch.0
        && header.crc == last.crc
        && header.next_offset() == durable_end.0)
}

/// The bytes of the batch at a position, as its header claims them, if they are there.
async fn read_batch(file: &dyn File, len: u64, position: u64) -> Result<Option<Vec<u8>>, IoError> {
    use bytes::BytesMut;
    use kraftlog_codecs::batch::{BatchHeader, HEADER_BYTES};
    if position.checked_add(HEADER_BYTES as u64).is_none_or(|end| end > len) {
        return Ok(None);
    }
    let head = file.read_at(position, HEADER_BYTES, BytesMut::new()).await?;
    let Ok(header) = BatchHeader::parse(&head) else { return Ok(None) };
    if position + header.size() as u64 > len {
        return Ok(None);
    }
    Ok(Some(file.read_at(position, header.size(), BytesMut::new()).await?.into()))
}

/// The control batch with this base offset, found by the index.
async fn control_batch(
    disk: &dyn Disk,
    part_dir: &Path,
    segments: &[FoundSegment],
    offset: Offset,
) -> Result<Option<bytes::Bytes>, IoError> {
    let above = segments.partition_point(|segment| segment.base <= offset);
    let Some(segment) = above.checked_sub(1).map(|at| &segments[at]) else { return Ok(None) };
    let files = IndexFiles::read(disk, part_dir, segment.base).await?;
    let index = files.offsets.unwrap_or_default();
    let relative = offset.0 - segment.base.0;
    let floor = index.partition_point(|entry| i64::from(entry.relative_offset) <= relative);
    let mut position = floor.checked_sub(1).map_or(0, |at| i64::from(index[at].position).cast_unsigned());
    let file = disk.open(&segment.path, OpenHow::Read).await?;
    loop {
        let Some(bytes) = read_batch(&*file, segment.len, position).await? else { return Ok(None) };
        let Ok(batch) = Batch::check(&bytes) else { return Ok(None) };
        let base = batch.header().base_offset;
        if base >= offset.0 {
            return Ok((base == offset.0).then(|| bytes::Bytes::from(bytes)));
        }
        position += bytes.len() as u64;
    }
}

async fn first_timestamp(disk: &dyn Disk, segment: &FoundSegment) -> Result<Option<i64>, IoError> {
    use bytes::BytesMut;
    use kraftlog_codecs::batch::{BatchHeader, HEADER_BYTES};
    let file = disk.open(&segment.path, OpenHow::Read).await?;
    let head = file.read_at(0, HEADER_BYTES, BytesMut::new()).await?;
    Ok(BatchHeader::parse(&head).ok().map(|header| header.max_timestamp))
}

fn refuse_newer(part_dir: &Path, gathered: &Gathered) -> Result<(), OpenError> {
    let path = part_dir.to_path_buf();
    match gathered.newer {
        Some(NewerRecord::Level { offset, level }) => {
            return Err(OpenError::UnsupportedMetadataVersion { path, offset, level });
        }
        Some(NewerRecord::Type { offset, api_key, version }) => {
            return Err(OpenError::UnknownRecordType { path, offset, api_key, version });
        }
        None => {}
    }
    match gathered.migration {
        // None, and post-migration: there is nothing to finish.
        None | Some((_, 0 | 3)) => Ok(()),
        Some((offset, state)) => Err(OpenError::MigrationUnfinished { offset, state }),
    }
}

/// What the side file says was durable or committed must be there.
fn hold_against_evidence(
    state: Option<&State>,
    durable_end_binds: bool,
    gathered: &Gathered,
    path: PathBuf,
    position: u64,
) -> Result<(), OpenError> {
    let Some(state) = state else { return Ok(()) };
    // A full truncation that had begun takes the log away for good.
    if state.intent.is_some() {
        return Ok(());
    }
    let lost =
        |evidence, offset| OpenError::LostRecords { evidence, offset, end: gathered.end, path, position };
    if durable_end_binds && gathered.end < state.durable_end {
        return Err(lost(Evidence::DurableEnd, state.durable_end));
    }
    if gathered.end < state.committed {
        return Err(lost(Evidence::HighWatermark, state.committed));
    }
    if let Some(last) = gathered.evidence_differs {
        return Err(OpenError::OtherBatch { offset: last.base, epoch: last.epoch, crc: last.crc });
    }
    Ok(())
}
