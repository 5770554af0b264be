//! What is found after a crash, held against what was promised.

use super::expect::{Expect, Snapshot};
use super::{NODE_DIR, part_dir};
use kraftlog::{Epoch, EpochEnd, Isolation, LogConfig, MetadataDir, MetadataLog, Offset, SnapshotId};
use kraftlog_codecs::batch::Batches;
use kraftlog_codecs::quorum::QuorumState;
use kraftlog_io::sim::{Latency, Machine, SimDisk};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// How hard a found disk is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    /// Fail the power again during recovery, so often at each of its steps.
    pub(crate) crashes_in_recovery: usize,
    /// Fail it again right after recovery, when all that was found has become a promise.
    pub(crate) crash_after: bool,
    /// Lead, append, close and open again.
    pub(crate) go_on: bool,
}

/// What a log held when it had been opened.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) end: i64,
    pub(crate) vote: Option<QuorumState>,
    pub(crate) snapshots: Vec<(SnapshotId, Arc<[u8]>)>,
}

/// Opens what a crash left and says what is wrong with it.
pub(crate) fn check(
    disk: &SimDisk,
    config: &LogConfig,
    expect: &Expect,
    depth: Depth,
    seed: u64,
) -> Result<(), String> {
    if depth.crashes_in_recovery > 0 {
        crash_in_recovery(disk, config, expect, depth, seed)?;
    }
    let machine = Machine::with_disk(disk.fork(seed), Latency::None, seed);
    let opened = guarded(|| machine.block_on(open_and_look(&machine, config, expect)))?;
    let (log, found) = match opened {
        Ok(opened) => opened,
        Err(Wrong::Failed(why)) => return Err(format!("refused: {why}")),
        Err(Wrong::Broken(why)) => return Err(why),
    };
    let mut promised = expect.clone();
    promised.opened(found.end, found.vote.clone(), &found.snapshots);
    if depth.crash_after {
        let after = machine.disk().crash_choosing(seed, &mut |_| 0);
        let again = Depth { crashes_in_recovery: 0, crash_after: false, go_on: false };
        check(&after, config, &promised, again, seed)
            .map_err(|why| format!("opened, then a crash that kept nothing unsynced: {why}"))?;
    }
    if depth.go_on {
        guarded(|| machine.block_on(go_on(&machine, config, log, &mut promised)))?
            .map_err(|why| format!("opened, then went on: {why}"))?;
    }
    Ok(())
}

fn crash_in_recovery(
    disk: &SimDisk,
    config: &LogConfig,
    expect: &Expect,
    depth: Depth,
    seed: u64,
) -> Result<(), String> {
    let machine = Machine::with_disk(disk.fork(seed), Latency::None, seed);
    let (note, moments) = std::sync::mpsc::channel();
    machine.disk().on_step(move |disk, step| {
        if step.changes() {
            let _ = note.send((step.to_string(), disk.fork(seed)));
        }
        None
    });
    // Whatever comes of it: what it leaves on its way is looked at.
    let _ = guarded(|| machine.block_on(async { open_and_look(&machine, config, expect).await.is_ok() }));
    machine.disk().clear_hook();
    drop(machine);
    let again = Depth { crashes_in_recovery: 0, go_on: false, ..depth };
    for (step, moment) in moments {
        for crash in 0..depth.crashes_in_recovery {
            let seed = seed.wrapping_mul(31).wrapping_add(crash as u64);
            check(&moment.crash(seed), config, expect, again, seed)
                .map_err(|why| format!("a second crash, in recovery, before {step}: {why}"))?;
        }
    }
    Ok(())
}

/// A panic is something wrong, like any other.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    })
}

/// Why a directory is not as it should be.
pub(crate) enum Wrong {
    /// It cannot be opened or read: after a fault it may say so.
    Failed(String),
    /// It can, and something is missing or too much.
    Broken(String),
}

/// Opens the log and holds everything in it against what is expected.
pub(crate) async fn open_and_look(
    machine: &Machine,
    config: &LogConfig,
    expect: &Expect,
) -> Result<(MetadataLog, Found), Wrong> {
    let log =
        open(machine, config).await.map_err(|error| Wrong::Failed(format!("open: {}", chain(&*error))))?;
    let found = look(machine.disk(), &log, expect).await?;
    Ok((log, found))
}

pub(crate) async fn open(machine: &Machine, config: &LogConfig) -> Result<MetadataLog, Box<dyn Error>> {
    let dir = MetadataDir::with_rt(Path::new(NODE_DIR), machine.rt(), machine.backend()).await?;
    let (log, _) = MetadataLog::open(dir, config.clone()).await?;
    Ok(log)
}

async fn look(disk: &SimDisk, log: &MetadataLog, expect: &Expect) -> Result<Found, Wrong> {
    let end = log.end_offset();
    if end.0 < expect.durable_end {
        return Err(Wrong::Broken(format!(
            "the log ends at {end}, and everything below {} was acknowledged",
            expect.durable_end
        )));
    }
    if log.durable_end() != end {
        return Err(Wrong::Broken(format!(
            "after open the durable end {} is not the log end {end}",
            log.durable_end()
        )));
    }
    // Nothing that these nodes do takes the beginning away.
    if log.start_offset() != Offset(0) {
        return Err(Wrong::Broken(format!("the log begins at {}", log.start_offset())));
    }
    let mut next = Offset(0);
    let mut epochs: Vec<EpochEnd> = Vec::new();
    while next < end {
        let read = log.read(next, Isolation::Uncommitted, 1 << 20).await;
        let fetched = read
            .map_err(|error| Wrong::Failed(format!("the log cannot be read at {next}: {}", chain(&error))))?;
        for (_, batch) in Batches::new(&fetched.bytes) {
            let batch = batch
                .map_err(|error| Wrong::Broken(format!("a read at {next} gave a bad batch: {error}")))?;
            if batch.header().base_offset != next.0 {
                return Err(Wrong::Broken(format!("the log has a hole at {next}")));
            }
            expect.may_be_at(next.0, batch.bytes()).map_err(Wrong::Broken)?;
            next = Offset(batch.header().next_offset());
            let ends = EpochEnd { epoch: Epoch(batch.header().leader_epoch), end_offset: next };
            match epochs.last_mut() {
                Some(last) if last.epoch == ends.epoch => *last = ends,
                _ => epochs.push(ends),
            }
        }
        if fetched.bytes.is_empty() {
            return Err(Wrong::Broken(format!("a read at {next} gave nothing, and the log ends at {end}")));
        }
    }
    let last_epoch = epochs.last().map_or(Epoch(0), |last| last.epoch);
    if log.last_epoch() != last_epoch {
        return Err(Wrong::Broken(format!(
            "the last epoch is {last_epoch} and said to be {}",
            log.last_epoch()
        )));
    }
    for ends in epochs {
        let said = log.end_offset_for_epoch(ends.epoch);
        if said != ends {
            return Err(Wrong::Broken(format!("epoch ends are {ends:?} and said to be {said:?}")));
        }
    }
    let vote = log
        .quorum_state()
        .read()
        .await
        .map_err(|error| Wrong::Failed(format!("no vote: {}", chain(&error))))?;
    if vote != expect.vote && !vote.as_ref().is_some_and(|vote| expect.votes_asked.contains(vote)) {
        return Err(Wrong::Broken(format!(
            "the vote is {vote:?}; acknowledged was {:?}, asked for {:?}",
            expect.vote, expect.votes_asked
        )));
    }
    let snapshots = look_at_snapshots(disk, log, expect).await?;
    Ok(Found { end: end.0, vote, snapshots })
}

async fn look_at_snapshots(
    disk: &SimDisk,
    log: &MetadataLog,
    expect: &Expect,
) -> Result<Vec<(SnapshotId, Arc<[u8]>)>, Wrong> {
    let offered = log.snapshots();
    for (id, state) in &expect.snapshots {
        if matches!(state, Snapshot::Frozen(_)) && !offered.iter().any(|(known, _)| known == id) {
            return Err(Wrong::Broken(format!("snapshot {id} was frozen and is gone")));
        }
    }
    let mut found = Vec::new();
    for (id, _) in offered {
        let file = disk.read(&part_dir().join(format!("{id}.checkpoint"))).unwrap_or_default();
        match expect.snapshots.get(&id) {
            None => return Err(Wrong::Broken(format!("nobody wrote a snapshot {id}"))),
            Some(Snapshot::Frozen(was)) if **was != *file => {
                return Err(Wrong::Broken(format!("snapshot {id} is not as it was frozen")));
            }
            Some(_) => {}
        }
        let unread = |error: &dyn Error| {
            Wrong::Failed(format!("snapshot {id} is offered and not whole: {}", chain(error)))
        };
        let mut reader = log.open_snapshot(id).await.map_err(|error| unread(&error))?;
        while reader.next_batch().await.map_err(|error| unread(&error))?.is_some() {}
        if reader.summary().is_none() {
            return Err(Wrong::Broken(format!("snapshot {id} is offered and has no footer")));
        }
        found.push((id, file.into()));
    }
    Ok(found)
}

/// A node that was recovered can be used: it leads, appends, closes and opens again.
async fn go_on(
    machine: &Machine,
    config: &LogConfig,
    log: MetadataLog,
    expect: &mut Expect,
) -> Result<(), String> {
    let led = expect.vote.as_ref().map_or(0, |vote| vote.leader_epoch);
    let epoch = Epoch(log.last_epoch().0.max(led) + 1);
    log.initialize_leader_epoch(epoch).await.map_err(|error| format!("epoch: {}", chain(&error)))?;
    for records in 1..=3 {
        let batch = super::batch(epoch, records, 40);
        let ticket = log.append_as_leader(epoch, batch.clone()).map_err(|error| chain(&error))?;
        let attempt = super::node::queue(expect, &ticket, epoch, batch);
        let appended = ticket.durable().await.map_err(|error| format!("append: {}", chain(&error)))?;
        expect.answered(appended.first.0, attempt, appended.last.0 + 1, super::expect::Outcome::Durable);
    }
    let report = log.close().await.map_err(|error| format!("close: {}", chain(&error)))?;
    if !report.clean {
        return Err("the log was not closed cleanly".to_owned());
    }
    match open_and_look(machine, config, expect).await {
        Ok(_) => Ok(()),
        Err(Wrong::Failed(why)) => Err(format!("the next open was refused: {why}")),
        Err(Wrong::Broken(why)) => Err(why),
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Opens a disk on which something rotted. It may be refused, or have lost what cannot be told from a
/// torn write; what it gives out must have been written.
///
/// Opened, the log must reach `keeps`: what lies below has valid batches behind it.
pub(crate) fn served(
    disk: &SimDisk,
    config: &LogConfig,
    expect: &Expect,
    keeps: i64,
    seed: u64,
) -> Result<(), String> {
    let machine = Machine::with_disk(disk.fork(seed), Latency::None, seed);
    guarded(|| {
        machine.block_on(async {
            let Ok(log) = open(&machine, config).await else { return Ok(()) };
            if log.end_offset().0 < keeps {
                return Err(format!("the log was cut to {}, and {keeps} follows the rot", log.end_offset()));
            }
            let mut next = log.start_offset();
            while next < log.end_offset() {
                // A read that finds the rot says so.
                let Ok(fetched) = log.read(next, Isolation::Uncommitted, 1 << 20).await else {
                    return Ok(());
                };
                for (_, batch) in Batches::new(&fetched.bytes) {
                    let batch =
                        batch.map_err(|error| format!("a read at {next} gave a bad batch: {error}"))?;
                    let base = batch.header().base_offset;
                    if !expect.was_written_at(base, batch.bytes()) {
                        return Err(format!("a read gave a batch at {base} that nobody wrote there"));
                    }
                    next = Offset(batch.header().next_offset());
                }
            }
            Ok(())
        })
    })?
}
