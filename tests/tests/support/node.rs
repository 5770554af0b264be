//! A node in a process of its own: it appends from many threads, rolls, freezes checkpoints, votes,
//! closes and opens again, and says on its standard output what was acknowledged and what it is about.
//!
//! The parent starts it through `child::Node`. It never ends by itself: what it cannot go on with is
//! a panic, which the parent finds on its standard error.

use super::acknowledged::record;
use super::{chain, open};
use kraftlog::codecs::quorum::{QuorumState, VersionData};
use kraftlog::io::BackendChoice;
use kraftlog::snapshot::SnapshotWriteError;
use kraftlog::{Epoch, ErrorKind, MetadataLog, SnapshotId};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set for the node: the directory it lives in.
pub(crate) const NODE_DIR: &str = "KRAFTLOG_NODE_DIR";
/// Set for the node: `portable` or `uring`.
pub(crate) const NODE_BACKEND: &str = "KRAFTLOG_NODE_BACKEND";

const WRITERS: u32 = 8;
/// A node that is let live closes and opens again after so many rounds of the checkpoint loop.
const ROUNDS: u32 = 8;
const ROUND: Duration = Duration::from_millis(5);
/// Every so many checkpoints, one of several pieces.
const LARGE_EVERY: u32 = 8;

/// The directory and back end to live with, if this process was started as a node.
pub(crate) fn asked() -> Option<(PathBuf, BackendChoice)> {
    let dir = std::env::var_os(NODE_DIR)?;
    let choice = match std::env::var(NODE_BACKEND).as_deref() {
        Ok("portable") => BackendChoice::Portable,
        Ok("uring") => BackendChoice::Uring,
        other => panic!("{NODE_BACKEND} is {other:?}"),
    };
    // The harness has begun a line; what follows must be lines of ours alone.
    say("");
    Some((PathBuf::from(dir), choice))
}

/// The node's whole life, if this process was started as one.
pub(crate) fn live_if_asked() {
    let Some((dir, choice)) = asked() else { return };
    loop {
        live_once(&dir, choice);
    }
}

/// Tells the parent, in one system call.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}

/// Opens, leads a new epoch for some rounds, closes.
fn live_once(dir: &Path, choice: BackendChoice) {
    say("opening");
    let (log, report) = open(dir, choice, "in the node");
    say("opened");
    let epoch = Epoch(log.last_epoch().0.max(vote(&log)) + 1);
    write_vote(&log, epoch.0);
    log.initialize_leader_epoch_blocking(epoch).expect("a new epoch begins");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (log, ended) = (&log, &ended);
            scope.spawn(move || write(log, epoch, writer, ended));
        }
        for round in 0..ROUNDS {
            std::thread::sleep(ROUND);
            freeze(&log, epoch, round);
            // As one that loses elections does.
            write_vote(&log, epoch.0 + 1 + i32::try_from(round).expect("few rounds"));
        }
        ended.store(true, Ordering::Relaxed);
    });
    say("closing");
    let closed = log.close_blocking();
    closed.unwrap_or_else(|error| panic!("it does not close: {}; open said: {report}", chain(&error)));
}

fn vote(log: &MetadataLog) -> i32 {
    let vote = log.quorum_state().read_blocking().expect("the vote can be read");
    vote.map_or(0, |vote| vote.leader_epoch)
}

fn write_vote(log: &MetadataLog, epoch: i32) {
    let vote =
        QuorumState { leader_id: Some(1), leader_epoch: epoch, voted: None, version_data: VersionData::V1 };
    log.quorum_state().write_blocking(&vote).expect("the vote is written");
    say(&format!("vote {epoch}"));
}

fn write(log: &MetadataLog, epoch: Epoch, writer: u32, ended: &AtomicBool) {
    let mut at = 0;
    while !ended.load(Ordering::Relaxed) {
        let name = format!("{epoch}-{writer}-{at}");
        let ticket = log.append_records(epoch, [record(&name)]).expect("the log takes it");
        let appended = ticket.durable_blocking().expect("it becomes durable");
        say(&format!("appended {} {name}", appended.first));
        at += 1;
    }
}

/// One checkpoint of what is durable, unless there is one.
fn freeze(log: &MetadataLog, epoch: Epoch, round: u32) {
    let end = log.durable_end();
    log.update_high_watermark(end).expect("the durable end is in the log");
    // Every append is one batch of one record, so any offset is a border.
    let id = SnapshotId { end_offset: end, epoch };
    say("freezing");
    let mut writer = match log.create_snapshot_blocking(id) {
        Ok(writer) => writer,
        // Nothing was appended since the last one, or in this epoch.
        Err(error) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::Invalid) => return,
        Err(error) => panic!("no checkpoint at {id}: {}", chain(&error)),
    };
    let batches = if round % LARGE_EVERY == LARGE_EVERY - 1 { 24 } else { 1 };
    let state: Vec<Vec<u8>> = (0..8).map(|at| record(&format!("{at}-{}", "s".repeat(1 << 10)))).collect();
    for _ in 0..batches {
        writer.append_blocking(&state).unwrap_or_else(|error| failed(id, &error));
    }
    writer.freeze_blocking().map(drop).unwrap_or_else(|error| failed(id, &error));
    say(&format!("frozen {} {}", id.end_offset, id.epoch));
}

fn failed(id: SnapshotId, error: &SnapshotWriteError) {
    panic!("checkpoint {id} was not written: {}", chain(error));
}
