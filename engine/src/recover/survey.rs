//! The reading half of recovery: scans what must be scanned, and decides. Writes nothing.

use crate::config::{LogConfig, Role};
use crate::log::open_error::{Evidence, OpenError, ValidBehind};
use crate::log::open_report;
use crate::recover::begin::{from_scratch, resume};
use crate::recover::damage::{self, Behind};
use crate::recover::found::{FoundDir, FoundSegment};
use crate::recover::index_files::IndexFiles;
use crate::recover::scan::{self, Fault, Gathered, NewerRecord, Scanned};
use crate::segment::Indexer;
use crate::snapshot::{Inspected, LogExtent, SnapshotPlan, Truncation, choose, inspect_all};
use crate::state::{LastBatch, State};
use crate::types::{Epoch, Offset};
use kraftlog_codecs::index::OffsetEntry;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, File, OpenHow};
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
