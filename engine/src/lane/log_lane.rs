//! The log lane: the one owner of all ordered changes of a directory, and its group commit.
//!
//! It takes everything that waits, makes one vectored write of it (at most
//! [`LogConfig::group_bytes_max`](crate::LogConfig) bytes or `group_batches_max` batches), moves the log
//! end offset when the bytes can be read, syncs once, moves the durable end and resolves the tickets in
//! order. While nobody holds a [`Watch`](crate::Watch), that is, nobody replicates what is not durable yet,
//! the back end may write and sync in one step, and both ends move together. No timer; one group is in
//! flight.
//!
//! - A write that fails before the sync is cut back: its group and all appends queued behind it fail,
//!   then the log goes on.
//! - A sync that fails fences the directory: nothing more is written, ever, by this log.
//!
//! After a crash at any point the bytes behind the durable end may be anything; `recover` decides. What
//! follows the commits (epoch checkpoint, side file, index files) is written when it is due, behind the
//! tickets.

use crate::error::{Fenced, fences};
use crate::handle::Shared;
use crate::lane::budget::Share;
use crate::lane::oneshot::Sender;
use crate::log::active::ActiveSegment;
use crate::log::close::{CloseError, CloseReport};
use crate::log::epoch::EpochError;
use crate::log::tail::CachedBatch;
use crate::metrics::Metrics;
use crate::quorum::{QuorumKeeper, QuorumWriteError};
use crate::state::{STATE_FILE, SegmentLen, State};
use crate::ticket::{AppendError, Appended};
use crate::types::{Epoch, Offset};
use bytes::Bytes;
use kraftlog_codecs::batch::Batch;
use kraftlog_codecs::control::{ControlKey, ControlType};
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::quorum::QuorumState;
use kraftlog_codecs::{epochs as epochs_file, names};
use kraftlog_io::planted::{self, Plant};
use kraftlog_io::{AppendSyncError, Disk, File, IoError, IoErrorKind, atomic};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The side file follows the log after so many bytes...
const STATE_EVERY_BYTES: u64 = 64 << 20;
/// ...or so much time of appends.
const STATE_EVERY: Duration = Duration::from_secs(30);
const FILE_MODE: u32 = 0o644;

/// What the log lane does, in order.
pub(crate) enum LogOp {
    /// Whole, checked batches with their final offsets.
    Append(AppendOp),
    /// Begins an epoch as leader.
    BeginEpoch(BeginEpochOp),
    /// The vote, as it is on disk.
    ReadQuorumState { answer: Sender<Option<QuorumState>> },
    /// Replaces the vote.
    WriteQuorumState { state: QuorumState, answer: Sender<Result<(), QuorumWriteError>> },
    /// Answers when everything queued before is done.
    Flush { answer: Sender<Result<(), Fenced>> },
    /// Makes the directory clean; nothing is queued behind it.
    Close { answer: Sender<Result<CloseReport, CloseError>> },
}

/// One append.
pub(crate) struct AppendOp {
    pub(crate) bytes: Bytes,
    pub(crate) appended: Appended,
    pub(crate) share: Share,
    pub(crate) answer: Sender<Result<Appended, AppendError>>,
}

/// The begin of an epoch. It is `last_epoch` from the call on, if it is above it: nothing older is taken
/// while it is written down.
pub(crate) struct BeginEpochOp {
    pub(crate) epoch: Epoch,
    /// Newest epoch before the call.
    pub(crate) last: Epoch,
    /// What this handle led before the call, and leads again if it fails.
    pub(crate) led: Option<Epoch>,
    pub(crate) answer: Sender<Result<(), EpochError>>,
}

impl LogOp {
    /// The epoch that this operation brings into the log.
    fn epoch(&self) -> Option<Epoch> {
        match self {
            LogOp::Append(op) => Some(op.appended.epoch),
            LogOp::BeginEpoch(op) => (op.epoch > op.last).then_some(op.epoch),
            _ => None,
        }
    }
}

/// What callers change in the same step as they queue.
pub(crate) struct Order {
    /// Where the next append begins, with all that waits.
    pub(crate) next: Offset,
    /// Newest epoch, with all that waits or is being begun.
    pub(crate) last_epoch: Epoch,
    /// The epoch that this handle leads.
    pub(crate) leading: Option<Epoch>,
}

/// What open hands over to the lane.
pub(crate) struct LogLane {
    pub(crate) shared: Arc<Shared>,
    pub(crate) disk: Rc<dyn Disk>,
    pub(crate) active: ActiveSegment,
    /// All segments before the active one.
    pub(crate) sealed: Vec<SegmentLen>,
    /// Base offsets of batches with voters or kraft.version.
    pub(crate) control: Vec<Offset>,
    pub(crate) quorum: QuorumKeeper,
    /// Newest epoch in the checkpoint file; the file is behind when the cache has another one.
    pub(crate) epochs_on_disk: Option<Epoch>,
    /// Newest epoch of what lies before the log's first batch: the snapshot's.
    pub(crate) epoch_before: Epoch,
    pub(crate) bytes_since_state: u64,
    pub(crate) state_written_at: Duration,
    pub(crate) pending: VecDeque<LogOp>,
}

impl LogLane {
    /// Serves the queue until it is closed and drained, then leaves the directory clean.
    pub(crate) async fn run(mut self) {
        let mut taken = Vec::new();
        let mut closed = false;
        while self.shared.log_queue.take(&mut taken).await {
            self.pending.extend(taken.drain(..));
            while !self.pending.is_empty() {
                // Whatever came meanwhile joins the next group.
                let pending = &mut self.pending;
                self.shared.log_queue.with(|_, waiting| pending.extend(waiting.drain(..)));
                match self.pending.front() {
                    Some(LogOp::Append(_)) => self.commit_group().await,
                    _ => closed |= self.serve_front().await,
                }
            }
            self.follow_up().await;
        }
        if !closed && let Err(error) = self.close().await {
            tracing::warn!(%error, "the log was dropped and could not be left clean; the next open scans it");
        }
    }

    /// Serves the first waiting operation, which is no append. True if it closed the log.
    async fn serve_front(&mut self) -> bool {
        match self.pending.pop_front() {
            Some(LogOp::BeginEpoch(op)) => {
                let begun = self.begin_epoch(&op).await;
                op.answer.send(begun);
            }
            Some(LogOp::ReadQuorumState { answer }) => answer.send(self.quorum.state().cloned()),
            Some(LogOp::WriteQuorumState { state, answer }) => {
                if planted::is(Plant::VoteBeforeSync) {
                    answer.send(Ok(()));
                    let _ = self.quorum.write(&*self.disk, &self.shared, state).await;
                    return false;
                }
                let written = self.quorum.write(&*self.disk, &self.shared, state).await;
                answer.send(written);
            }
            Some(LogOp::Flush { answer }) => {
                answer.send(self.shared.fenced().map_or(Ok(()), |fenced| Err(fenced.clone())));
            }
            Some(LogOp::Close { answer }) => {
                let closed = self.close().await;
                answer.send(closed);
                return true;
            }
            Some(LogOp::Append(_)) | None => {}
        }
        false
    }

    /// Takes appends that go into one segment, up to the bounds of a group; at least one.
    fn take_group(&mut self) -> Vec<AppendOp> {
        let config = &self.shared.config;
        let mut group: Vec<AppendOp> = Vec::new();
        let mut bytes = 0;
        while let Some(LogOp::Append(next)) = self.pending.front() {
            let len = next.bytes.len();
            let full = bytes + len > config.group_bytes_max || group.len() >= config.group_batches_max;
            if !group.is_empty() && (full || self.active.must_roll(&next.bytes, bytes as u64, config)) {
                break;
            }
            bytes += len;
            match self.pending.pop_front() {
                Some(LogOp::Append(op)) => group.push(op),
                _ => unreachable!("the first operation was an append"),
            }
        }
        group
    }

    async fn commit_group(&mut self) {
        if let Some(fenced) = self.shared.fenced().cloned() {
            self.fail_appends(Vec::new(), AppendError::Fenced(fenced));
            return;
        }
        if let Some(LogOp::Append(first)) = self.pending.front()
            && self.active.must_roll(&first.bytes, 0, &self.shared.config)
            && let Err(cause) = self.roll().await
        {
            let bytes = first_len(&self.pending);
            self.failed_before_sync(Vec::new(), bytes, cause).await;
            return;
        }
        let group = self.take_group();
        let bytes: usize = group.iter().map(|op| op.bytes.len()).sum();
        let begun = self.shared.rt.monotonic();
        if let Err(cause) = self.active.reserve(bytes as u64, self.shared.config.preallocation).await {
            self.failed_before_sync(group, bytes, cause).await;
            return;
        }
        let bufs: Vec<Bytes> = group.iter().map(|op| op.bytes.clone()).collect();
        let file = Rc::clone(&self.active.file);
        let position = self.active.written;
        let shared = Arc::clone(&self.shared);
        // Who only waits for what is durable is served sooner by one step that writes and syncs.
        let watched = shared.watermark.is_watched();
        let written = || publish_written(&shared, &group);
        if planted::is(Plant::DurableEndBeforeSync)
            && let Some(last) = group.last()
        {
            self.shared.watermark.set_end(Offset(last.appended.last.0 + 1));
            self.shared.watermark.set_durable_end(Offset(last.appended.last.0 + 1));
        }
        if planted::is(Plant::StateClaimsWritten) {
            self.claim(&group).await;
        }
        let outcome = match planted::is(Plant::AcknowledgeBeforeSync) {
            false => {
                let early = watched.then(|| Box::new(written) as Box<dyn FnOnce()>);
                file.append_and_sync(position, bufs, early).await
            }
            true => file.write_at(position, bufs).await.map(|()| written()).map_err(AppendSyncError::Write),
        };
        match mistaken(&*file, outcome).await {
            Ok(()) => {
                if !watched {
                    publish_written(&self.shared, &group);
                }
                self.take_over(&group);
                let metrics = &self.shared.metrics;
                Metrics::add(&metrics.groups_committed, 1);
                Metrics::add(&metrics.bytes_appended, bytes as u64);
                let spent = self.shared.rt.monotonic().saturating_sub(begun).as_nanos();
                Metrics::add(&metrics.commit_nanos, u64::try_from(spent).unwrap_or(u64::MAX));
                self.active.durable = self.active.written;
                if let Some(last) = group.last() {
                    self.shared.watermark.set_durable_end(Offset(last.appended.last.0 + 1));
                }
                for op in group {
                    drop(op.share);
                    op.answer.send(Ok(op.appended));
                }
                self.bytes_since_state += bytes as u64;
                self.follow_commit().await;
            }
            Err(AppendSyncError::Write(cause)) => self.failed_before_sync(group, bytes, cause).await,
            Err(AppendSyncError::Sync(cause)) => {
                let fenced = self.shared.fence(cause);
                self.fail_appends(group, AppendError::Fenced(fenced));
            }
        }
    }

    /// A mistake for the crash tests to find: the side file says that a group is durable which is not.
    async fn claim(&mut self, group: &[AppendOp]) {
        let mut state = self.state(false);
        state.durable_end = group.last().map_or(state.durable_end, |last| Offset(last.appended.last.0 + 1));
        state.last = None;
        let path = self.shared.part_dir.join(STATE_FILE);
        let _ = atomic::replace(&*self.disk, &path, state.encode().as_bytes(), FILE_MODE).await;
    }

    /// Keeps account of what the group put into the active segment.
    fn take_over(&mut self, group: &[AppendOp]) {
        let mut batches = 0;
        for op in group {
            for batch in checked_batches(&op.bytes) {
                self.active.took(batch.header());
                batches += 1;
                if changes_quorum(&batch) {
                    self.control.push(Offset(batch.header().base_offset));
                }
            }
        }
        Metrics::add(&self.shared.metrics.batches_appended, batches);
    }

    /// The group is not in the log, nothing was synced: cut back, fail it and all appends behind it.
    async fn failed_before_sync(&mut self, group: Vec<AppendOp>, bytes: usize, cause: IoError) {
        Metrics::add(&self.shared.metrics.groups_failed, 1);
        // A roll syncs; what it could not sync is unknown like any other.
        if fences(&cause) {
            let fenced = self.shared.fence(cause);
            self.fail_appends(group, AppendError::Fenced(fenced));
            return;
        }
        // Left in place, whole batches of the failed write could one day follow a new one and look valid.
        if let Err(cut) = self.active.cut_back().await {
            let fenced = self.shared.fence(cut);
            self.fail_appends(group, AppendError::Fenced(fenced));
            return;
        }
        let error = match cause.kind() {
            IoErrorKind::NoSpace => AppendError::NoSpace { bytes, cause },
            _ => AppendError::Io(cause),
        };
        self.fail_appends(group, error);
    }

    /// Fails a group and every append that waits, and takes their offsets back, in one step with what
    /// callers queue meanwhile.
    fn fail_appends(&mut self, group: Vec<AppendOp>, error: AppendError) {
        let behind = match &error {
            AppendError::Fenced(fenced) => AppendError::Fenced(fenced.clone()),
            first => AppendError::Behind(Arc::new(first.clone())),
        };
        let end = self.log_end();
        let last_epoch = self.last_epoch();
        let mut failed = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        let rest = &mut self.pending;
        let shared = Arc::clone(&self.shared);
        shared.log_queue.with(|order, waiting| {
            for op in pending.into_iter().chain(waiting.drain(..)) {
                match op {
                    LogOp::Append(op) => failed.push(op),
                    other => rest.push_back(other),
                }
            }
            order.next = end;
            order.last_epoch = newest_epoch(last_epoch, rest.iter());
        });
        let first = if group.is_empty() { failed.len().min(1) } else { group.len() };
        for (at, op) in group.into_iter().chain(failed).enumerate() {
            drop(op.share);
            op.answer.send(Err(if at < first { error.clone() } else { behind.clone() }));
        }
    }

    /// Where the log ends, by what is written in the active segment.
    fn log_end(&self) -> Offset {
        self.shared.watermark.end()
    }

    /// What is due after a commit: epoch checkpoint, index entries, side file.
    async fn follow_commit(&mut self) {
        if let Err(error) = self.active.write_indexes(false).await {
            tracing::warn!(%error, "index entries wait; the index is rebuilt at open if they are lost");
        }
        let due = self.bytes_since_state >= STATE_EVERY_BYTES
            || self.shared.rt.monotonic().saturating_sub(self.state_written_at) >= STATE_EVERY;
        if due {
            let _ = self.write_state(false).await;
        }
    }

    /// What is due when nothing waits.
    async fn follow_up(&mut self) {
        if self.epochs_are_behind() && self.shared.fenced().is_none() {
            let _ = self.write_epochs().await;
        }
    }

    /// Newest epoch of what is written.
    fn last_epoch(&self) -> Epoch {
        self.shared.epochs.lock().last().unwrap_or(self.epoch_before)
    }

    /// Begins an epoch as leader: in memory, and in the checkpoint file (behaviour.md B-103).
    async fn begin_epoch(&mut self, op: &BeginEpochOp) -> Result<(), EpochError> {
        let begun = self.write_begun(op).await;
        let (written, pending) = (self.last_epoch(), &self.pending);
        self.shared.log_queue.with(|order, waiting| match begun {
            // What came meanwhile, from a newer leader, was taken before us.
            Ok(()) if order.last_epoch > op.epoch => {
                Err(EpochError::NotAbove { given: op.epoch, last: order.last_epoch })
            }
            Ok(()) => {
                order.leading = Some(op.epoch);
                Ok(())
            }
            Err(error) => {
                order.last_epoch = newest_epoch(written, pending.iter().chain(waiting.iter()));
                order.leading = order.leading.or(op.led).filter(|led| *led >= order.last_epoch);
                Err(error)
            }
        })
    }

    async fn write_begun(&mut self, op: &BeginEpochOp) -> Result<(), EpochError> {
        if let Some(fenced) = self.shared.fenced() {
            return Err(EpochError::Fenced(fenced.clone()));
        }
        if let Some(led) = self.quorum.led_before()
            && op.epoch <= led
        {
            return Err(EpochError::LedBefore { given: op.epoch, led });
        }
        if op.epoch <= op.last {
            return Err(EpochError::NotAbove { given: op.epoch, last: op.last });
        }
        let end = self.log_end();
        let before = self.shared.epochs.lock().clone();
        self.shared.epochs.lock().assign(op.epoch, end);
        if let Err(cause) = self.write_epochs().await {
            *self.shared.epochs.lock() = before;
            return Err(match fences(&cause) {
                true => EpochError::Fenced(self.shared.fence(cause)),
                false => EpochError::Io(cause),
            });
        }
        Ok(())
    }

    /// Replaces `leader-epoch-checkpoint` by what the cache says.
    pub(crate) async fn write_epochs(&mut self) -> Result<(), IoError> {
        let (text, last) = {
            let epochs = self.shared.epochs.lock();
            (epochs_file::format(epochs.entries()), epochs.last())
        };
        let path = self.shared.part_dir.join(names::LEADER_EPOCH_CHECKPOINT);
        let replaced = atomic::replace(&*self.disk, &path, text.as_bytes(), FILE_MODE).await;
        self.replaced(replaced)?;
        self.epochs_on_disk = last;
        Ok(())
    }

    /// True if `leader-epoch-checkpoint` lacks an epoch.
    pub(crate) fn epochs_are_behind(&self) -> bool {
        self.shared.epochs.lock().last() != self.epochs_on_disk
    }

    /// Replaces the side file.
    pub(crate) async fn write_state(&mut self, clean: bool) -> Result<(), IoError> {
        // The index files belong to the state that is about to be written.
        if let Err(error) = self.active.write_indexes(true).await {
            tracing::debug!(%error, "index entries wait");
        }
        let state = self.state(clean);
        let path = self.shared.part_dir.join(STATE_FILE);
        let replaced = atomic::replace(&*self.disk, &path, state.encode().as_bytes(), FILE_MODE).await;
        self.bytes_since_state = 0;
        self.state_written_at = self.shared.rt.monotonic();
        self.replaced(replaced)
    }

    /// What the side file says now. Called between groups, when everything written is durable.
    fn state(&self, clean: bool) -> State {
        let ends = self.shared.watermark.ends();
        let mut segments = self.sealed.clone();
        segments.push(self.active.len());
        State {
            clean,
            durable_end: ends.durable_end,
            last: self.active.last,
            committed: ends.high_watermark.min(ends.durable_end),
            checked_level: match self.shared.config.check_records {
                true => MetadataVersion::LATEST_TESTING.0,
                false => 0,
            },
            intent: None,
            segments,
            epochs: self.shared.epochs.lock().entries().to_vec(),
            control: self.control.clone(),
        }
    }

    /// Counts a replaced small file, and fences after a failed sync.
    pub(crate) fn replaced(&self, replaced: Result<(), IoError>) -> Result<(), IoError> {
        match &replaced {
            Ok(()) => Metrics::add(&self.shared.metrics.files_replaced, 1),
            Err(cause) if fences(cause) => drop(self.shared.fence(cause.clone())),
            Err(cause) => tracing::warn!(%cause, path = %cause.path.display(), "small file not replaced"),
        }
        replaced
    }
}

/// The newest epoch when these operations are done.
fn newest_epoch<'a>(written: Epoch, waiting: impl Iterator<Item = &'a LogOp>) -> Epoch {
    waiting.filter_map(LogOp::epoch).fold(written, Epoch::max)
}

fn first_len(pending: &VecDeque<LogOp>) -> usize {
    match pending.front() {
        Some(LogOp::Append(op)) => op.bytes.len(),
        _ => 0,
    }
}

/// What a commit came to, unless a mistake is planted for the crash tests to find.
async fn mistaken(file: &dyn File, outcome: Result<(), AppendSyncError>) -> Result<(), AppendSyncError> {
    match outcome {
        Err(AppendSyncError::Sync(_)) if planted::is(Plant::IgnoreFailedSync) => Ok(()),
        Err(AppendSyncError::Sync(_)) if planted::is(Plant::RetryFailedSync) => {
            file.sync_data().await.map_err(AppendSyncError::Sync)
        }
        Err(AppendSyncError::Write(_)) if planted::is(Plant::AcknowledgeFailedWrite) => Ok(()),
        outcome => outcome,
    }
}

/// The bytes can be read: readers may have them, and epochs, voters and end offset follow.
fn publish_written(shared: &Shared, group: &[AppendOp]) {
    let mut end = None;
    {
        let mut tail = shared.tail.lock();
        let mut epochs = shared.epochs.lock();
        let mut control = shared.control.lock();
        for op in group {
            for batch in checked_batches(&op.bytes) {
                let header = batch.header();
                if let Err(error) = control.apply(&batch) {
                    tracing::error!(%error, "control record not understood; voters stay as they were");
                }
                epochs.assign(Epoch(header.leader_epoch), Offset(header.base_offset));
                let bytes = op.bytes.slice_ref(batch.bytes());
                let next = Offset(header.next_offset());
                tail.push(CachedBatch { base: Offset(header.base_offset), next, bytes });
                end = Some(next);
            }
        }
    }
    if let Some(end) = end {
        shared.watermark.set_end(end);
    }
}

/// Whole, checked batches back to back.
fn checked_batches(bytes: &[u8]) -> impl Iterator<Item = Batch<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Ok(batch) = Batch::parse(rest) else {
            unreachable!("batches were checked when they were queued")
        };
        rest = &rest[batch.header().size()..];
        Some(batch)
    })
}

/// True for a control batch with voters or kraft.version, which open has to find again.
pub(crate) fn changes_quorum(batch: &Batch<'_>) -> bool {
    if !batch.header().is_control() {
        return false;
    }
    let Ok(records) = batch.records() else { return false };
    records.flatten().any(|record| {
        let key = ControlKey::decode(record.key.unwrap_or_default());
        key.is_ok_and(|key| matches!(key.kind, ControlType::KRaftVersion | ControlType::KRaftVoters))
    })
}

/// However the lane ends, nobody waits for it: what is queued is dropped, and with it the answers.
impl Drop for LogLane {
    fn drop(&mut self) {
        self.shared.close_queues();
        let left = self.shared.log_queue.with(|_, waiting| std::mem::take(waiting));
        drop(left);
    }
}
