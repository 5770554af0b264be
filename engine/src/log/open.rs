//! Opening a log: the lane starts, looks, decides, mends, and says what it did.

use crate::config::LogConfig;
use crate::control::ControlHistory;
use crate::dir::{LogLease, MetadataDir};
use crate::epochs::EpochCache;
use crate::fence::Fence;
use crate::handle::{MetadataLog, Shared, block_on};
use crate::lane::budget::Budget;
use crate::lane::log_lane::{LogLane, Order};
use crate::lane::oneshot::oneshot;
use crate::lane::queue::Queue;
use crate::lane::read_lane;
use crate::log::open_error::OpenError;
use crate::log::open_report::{OpenReport, Scanned};
use crate::log::tail::TailCache;
use crate::metrics::Metrics;
use crate::quorum::QuorumKeeper;
use crate::recover::apply::{Applied, Apply};
use crate::recover::found::{self, FoundDir};
use crate::recover::survey::{Survey, survey};
use crate::segment::Segments;
use crate::snapshot::{Catalog, Snapshots};
use crate::sync::Mutex;
use crate::types::{Epoch, Offset};
use crate::watermark::Watermark;
use kraftlog_codecs::batch::Batch;
use kraftlog_codecs::names;
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{Disk, IoError, Op, atomic};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

impl MetadataLog {
    /// Opens the metadata log of a locked directory, making it if there is none, and recovers it from
    /// whatever stopped it. See [`OpenReport`] for what was found and done.
    ///
    /// On return everything that the log says is durable is so: bytes that were not known to be on the
    /// disk have been written again. If an earlier log in the same directory still drains in this
    /// process, this waits for it.
    ///
    /// # Errors
    /// [`OpenError`]. A refusal changes no byte, except that a missing part directory is made.
    ///
    /// # Cancel safety
    /// Dropping the future closes the log again as soon as it is open.
    pub async fn open(dir: MetadataDir, config: LogConfig) -> Result<(MetadataLog, OpenReport), OpenError> {
        let lease = loop {
            if let Some(lease) = dir.inner().claim_log() {
                break lease;
            }
            if !dir.inner().log_is_draining() {
                return Err(OpenError::AlreadyOpen { path: dir.path().to_path_buf() });
            }
            dir.inner().log_freed().await;
        };
        let rt = Arc::clone(dir.rt());
        let (answer, opened) = oneshot();
        let lane_dir = dir.path().to_path_buf();
        rt.spawn_lane(
            "kraftlog-log",
            &lane_dir,
            Box::new(move |disk| {
                Box::pin(async move {
                    match open(&disk, dir, lease, config).await {
                        Ok((log, report, lane)) => {
                            let running = lane.shared.running.enter();
                            // If nobody waits any more, the handle is dropped here and the lane ends.
                            answer.send(Ok((log, report)));
                            lane.run().await;
                            drop(disk);
                            drop(running);
                        }
                        Err(error) => answer.send(Err(error)),
                    }
                })
            }),
        )?;
        opened.into_answer().await.unwrap_or(Err(OpenError::LaneGone))
    }

    /// As [`open`](MetadataLog::open), blocking this thread.
    ///
    /// # Errors
    /// Those of [`open`](MetadataLog::open).
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn open_blocking(
        dir: MetadataDir,
        config: LogConfig,
    ) -> Result<(MetadataLog, OpenReport), OpenError> {
        let rt = Arc::clone(dir.rt());
        block_on(&*rt, MetadataLog::open(dir, config))
    }
}

async fn open(
    disk: &Rc<dyn Disk>,
    dir: MetadataDir,
    lease: LogLease,
    config: LogConfig,
) -> Result<(MetadataLog, OpenReport, LogLane), OpenError> {
    // Before the first write: in the lock's own words, it may be ours and keep nobody out.
    if !dir.inner().lock_is_intact() {
        return Err(OpenError::LockLost { path: dir.path().to_path_buf() });
    }
    let part_dir = part_dir(&**disk, dir.path()).await?;
    let found = found::look(&**disk, &part_dir, &config).await?;
    let mut survey = survey(&**disk, &part_dir, &config, &found).await?;
    let mut control = control_history(&config, &survey)?;
    let mut report = report(&dir, &part_dir, &found, &survey);
    let mut apply =
        Apply { disk: &**disk, rt: &**dir.rt(), part_dir: &part_dir, found: &found, report: &mut report };
    let applied = apply.apply(&mut survey).await?;
    if survey.plan.truncate_fully_to.is_some() {
        control = control_history(&config, &survey)?;
    }
    let control_offsets = survey.gathered.control.iter().map(|(offset, _)| *offset).collect();
    let (shared, mut lane) =
        lane(disk, &dir, lease, config, part_dir, &found, &survey, applied, control, control_offsets);
    lane.write_state(false).await?;
    let mut apply = Apply {
        disk: &**disk,
        rt: &**dir.rt(),
        part_dir: &shared.part_dir,
        found: &found,
        report: &mut report,
    };
    apply.clean_up(&survey.plan, &shared.segments.all()).await?;
    report.start = shared.watermark.start();
    report.end = shared.watermark.end();
    report.segments = shared.segments.all().len();
    spawn_read_lane(&shared)?;
    if !report.is_quiet() {
        tracing::warn!("{report}");
    }
    Ok((MetadataLog::new(Arc::clone(&shared), dir), report, lane))
}

/// The part directory; made if it is missing. On return its name is durable, also when it was there:
/// whoever made it may have been killed before the sync, and a Kafka never syncs it (behaviour.md B-68).
async fn part_dir(disk: &dyn Disk, dir: &Path) -> Result<PathBuf, IoError> {
    let path = dir.join(names::METADATA_PARTITION_DIR);
    if let Some(entry) = disk.stat(&path).await?
        && entry.kind != kraftlog_io::EntryKind::Dir
    {
        let cause = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(IoError::new(Op::Open, path, cause));
    }
    atomic::create_dir_durably(disk, &path).await?;
    Ok(path)
}

/// Voters and kraft.version from the newest snapshot and the log behind it.
fn control_history(config: &LogConfig, survey: &Survey) -> Result<ControlHistory, OpenError> {
    let mut control = ControlHistory::new(config.static_voters.clone());
    let latest = survey.plan.latest.and_then(|id| survey.inspected.iter().find(|one| one.id == id));
    match latest.map(|one| (one.id, &one.content)) {
        Some((id, Ok(head))) => control.load_snapshot(id, head.kraft_version, head.voters.clone())?,
        _ => control.reset(survey.plan.start),
    }
    for (_, bytes) in &survey.gathered.control {
        if let Ok(batch) = Batch::parse(bytes) {
            control.apply(&batch)?;
        }
    }
    control.known_up_to(survey.gathered.end);
    Ok(control)
}

fn report(dir: &MetadataDir, part_dir: &Path, found: &FoundDir, survey: &Survey) -> OpenReport {
    OpenReport {
        path: part_dir.to_path_buf(),
        backend: dir.backend().clone(),
        start: survey.plan.start,
        end: survey.gathered.end,
        last_epoch: survey.gathered.last_epoch,
        segments: survey.segments.len(),
        scanned: if survey.gathered.end == Offset::ZERO { Scanned::All } else { survey.scanned },
        batches: survey.batches,
        snapshot: survey.plan.latest,
        kafka_was_here: found.state.is_some() && found.kafka_was_here(),
        torn_tail: None,
        zero_tail_bytes: 0,
        rewritten_bytes: 0,
        indexes_rebuilt: Vec::new(),
        epochs_rebuilt: None,
        state_fault: found.state_fault.clone(),
        quorum_state_missing: found.quorum.is_none() && survey.gathered.end > Offset::ZERO,
        truncated_to: None,
        set_aside: Vec::new(),
        removed: Vec::new(),
        malformed: found.malformed.clone(),
    }
}

#[expect(clippy::too_many_arguments, reason = "everything that open found comes together here, once")]
fn lane(
    disk: &Rc<dyn Disk>,
    dir: &MetadataDir,
    lease: LogLease,
    config: LogConfig,
    part_dir: PathBuf,
    found: &FoundDir,
    survey: &Survey,
    applied: Applied,
    control: ControlHistory,
    control_offsets: Vec<Offset>,
) -> (Arc<Shared>, LogLane) {
    let Applied { active, segments, sealed, epochs } = applied;
    let end = survey.gathered.end;
    let epochs = EpochCache::new(epochs);
    let newest = epochs.last();
    let epoch_before = survey.plan.latest.map_or(Epoch::ZERO, |id| id.epoch);
    let start = match planted::is(Plant::OpenForgetsSegments) {
        true => active.base(),
        false => survey.plan.start,
    };
    let order = Order { next: end, last_epoch: newest.unwrap_or(epoch_before), leading: None };
    let mut catalog = found.catalog.clone();
    forget_removed(&mut catalog, survey);
    let quorum = QuorumKeeper::new(found.quorum.clone(), config.node_id);
    let shared = Arc::new(Shared {
        rt: Arc::clone(dir.rt()),
        part_dir,
        log_queue: Queue::new(order),
        read_queue: Queue::new(()),
        watermark: Arc::new(Watermark::new(start, end)),
        budget: Arc::new(Budget::new(config.queue_bytes_max)),
        epochs: Mutex::new(epochs),
        segments: Segments::new(segments),
        tail: Mutex::new(TailCache::new(config.tail_cache_bytes_max)),
        control: Mutex::new(control),
        snapshots: Snapshots::new(catalog),
        metrics: Arc::new(Metrics::new(dir.backend().clone())),
        running: Arc::default(),
        config,
        fence: Fence::new(),
        lease,
    });
    let lane = LogLane {
        disk: Rc::clone(disk),
        active,
        sealed,
        control: control_offsets,
        quorum,
        epochs_on_disk: newest,
        epoch_before,
        bytes_since_state: 0,
        state_written_at: shared.rt.monotonic(),
        pending: VecDeque::new(),
        shared: Arc::clone(&shared),
    };
    (shared, lane)
}

/// Snapshots that the plan removes or renames are not offered.
fn forget_removed(catalog: &mut Catalog, survey: &Survey) {
    for id in survey.plan.stale.iter().chain(survey.plan.set_aside.iter().map(|(id, _)| id)) {
        catalog.remove(*id);
    }
}

/// The lane for reads; those for checkpoints start when they are first needed. All end when the log
/// lane has.
fn spawn_read_lane(shared: &Arc<Shared>) -> Result<(), IoError> {
    shared.spawn_lane("kraftlog-read", read_lane::run)
}
