//! Replay: bootstrap records or snapshot, the log, and what becomes committed, in one pass.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod snapshot_support;

use kraftlog::snapshot::SnapshotFault;
use kraftlog::{Epoch, Offset, Replay, ReplayError, Replayed, SnapshotId};
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_io::probe::BackendChoice;
use snapshot_support::*;
use std::fs;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Steps of a replay in short: what a loader would do with them.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Bootstrap(usize),
    Snapshot(SnapshotId),
    /// Numbers of the records, and whether they were a snapshot's.
    Records(Vec<u16>, bool),
    End(SnapshotId),
    CaughtUp(i64),
    Restart(SnapshotId, Option<SnapshotId>),
}

fn number(value: &[u8]) -> u16 {
    u16::from_be_bytes([value[5], value[6]])
}

fn step(replay: &mut Replay) -> Result<Seen, ReplayError> {
    Ok(match replay.next_blocking()? {
        Replayed::Bootstrap(records) => Seen::Bootstrap(records.len()),
        Replayed::Snapshot { id, .. } => Seen::Snapshot(id),
        Replayed::Batch(batch) => {
            let values = batch.records().unwrap().map(|record| number(record.unwrap().value.unwrap()));
            Seen::Records(values.collect(), batch.snapshot().is_some())
        }
        Replayed::SnapshotEnd { id } => Seen::End(id),
        Replayed::CaughtUp(offset) => Seen::CaughtUp(offset.0),
        Replayed::Restart { damaged, from, .. } => Seen::Restart(damaged, from),
        other => panic!("{other:?}"),
    })
}

fn until_caught_up(replay: &mut Replay) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        seen.push(step(replay).unwrap());
        if matches!(seen.last(), Some(Seen::CaughtUp(_))) {
            return seen;
        }
    }
}

fn log_records(numbers: &[u16]) -> Seen {
    Seen::Records(numbers.to_vec(), false)
}

fn is_waiting(replay: &mut Replay) -> bool {
    let mut next = pin!(replay.next());
    matches!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

#[test]
fn a_log_without_snapshot_comes_batch_by_batch_and_then_waits() {
    on_each_back_end(|choice| {
        let dir = tempfile::tempdir().unwrap();
        let log = lived(dir.path(), choice, 2);
        let mut replay = log.replay(None);
        let first = [log_records(&[0, 1]), log_records(&[2, 3]), Seen::CaughtUp(4)];
        assert_eq!(until_caught_up(&mut replay), first);
        assert!(is_waiting(&mut replay));
        // Durable is not committed: nothing comes before the high watermark says so.
        log.append_records(Epoch(1), [numbered(4)]).unwrap().durable_blocking().unwrap();
        assert!(is_waiting(&mut replay));
        log.update_high_watermark(Offset(5)).unwrap();
        assert_eq!(until_caught_up(&mut replay), [log_records(&[4]), Seen::CaughtUp(5)]);
        assert_eq!(replay.next_offset(), Some(Offset(5)));
    });
}

#[test]
fn a_waiting_replay_goes_on_when_the_high_watermark_moves_in_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let log = lived(dir.path(), BackendChoice::Portable, 1);
    let mut replay = log.replay(None);
    until_caught_up(&mut replay);
    let waiting = std::thread::spawn(move || until_caught_up(&mut replay));
    log.append_records(Epoch(1), [numbered(7)]).unwrap().durable_blocking().unwrap();
    log.update_high_watermark(Offset(3)).unwrap();
    assert_eq!(waiting.join().unwrap(), [log_records(&[7]), Seen::CaughtUp(3)]);
}

#[test]
fn after_open_nothing_is_committed_until_told() {
    let dir = tempfile::tempdir().unwrap();
    lived(dir.path(), BackendChoice::Portable, 2).close_blocking().unwrap();
    let (log, _) = open(dir.path(), BackendChoice::Portable).unwrap();
    let mut replay = log.replay(None);
    assert_eq!(until_caught_up(&mut replay), [Seen::CaughtUp(0)]);
    log.update_high_watermark(Offset(4)).unwrap();
    let rest = [log_records(&[0, 1]), log_records(&[2, 3]), Seen::CaughtUp(4)];
    assert_eq!(until_caught_up(&mut replay), rest);
}

#[test]
fn the_newest_snapshot_comes_first_and_the_log_from_its_end() {
    on_each_back_end(|choice| {
        let dir = tempfile::tempdir().unwrap();
        let log = lived(dir.path(), choice, 4);
        for end in [2, 6] {
            let mut writer = log.create_snapshot_blocking(SnapshotId::new(end, 1)).unwrap();
            writer.append_blocking(&[numbered(100 + end as u16)]).unwrap();
            writer.freeze_blocking().unwrap();
        }
        let id = SnapshotId::new(6, 1);
        let expected = [
            Seen::Snapshot(id),
            Seen::Records(vec![106], true),
            Seen::End(id),
            log_records(&[6, 7]),
            Seen::CaughtUp(8),
        ];
        assert_eq!(until_caught_up(&mut log.replay(None)), expected);
        // Whoever has state from there on needs no snapshot, also in the middle of a batch.
        assert_eq!(until_caught_up(&mut log.replay(Some(Offset(7)))), [log_records(&[7]), Seen::CaughtUp(8)]);
        assert_eq!(until_caught_up(&mut log.replay(Some(Offset(8)))), [Seen::CaughtUp(8)]);
    });
}

#[test]
fn control_batches_move_the_offset_and_are_not_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixtures().join("formatted-4.4.0/standalone/data"), dir.path());
    let (log, _) = open(dir.path(), BackendChoice::Portable).unwrap();
    let voter = log.voters_at(Offset(-1)).unwrap().unwrap().voters[0].clone();
    log.initialize_leader_epoch_blocking(Epoch(1)).unwrap();
    let start = log.append_leader_change(Epoch(1), &voter, &[kraftlog::NodeId(voter.id)]).unwrap();
    assert_eq!(start.offsets(), 0..=2);
    log.append_records(Epoch(1), [numbered(3)]).unwrap().durable_blocking().unwrap();
    log.update_high_watermark(Offset(4)).unwrap();
    // The zero checkpoint's records are for whoever bootstraps, never state.
    let seen = until_caught_up(&mut log.replay(None));
    assert_eq!(seen, [Seen::Bootstrap(6), log_records(&[3]), Seen::CaughtUp(4)]);
}

#[test]
fn bootstrap_records_are_those_that_kafka_formatted() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixtures().join("formatted-4.4.0/standalone/data"), dir.path());
    let (log, _) = open(dir.path(), BackendChoice::Portable).unwrap();
    let Replayed::Bootstrap(records) = log.replay(None).next_blocking().unwrap() else {
        panic!("no bootstrap")
    };
    let framed = MetadataRecord::decode(&records[0]).unwrap();
    assert_eq!(framed.record.type_name(), Some("FEATURE_LEVEL_RECORD"));
    assert_eq!(records.len(), 6);
}

#[test]
fn a_directory_that_a_real_kafka_left_is_replayed_to_its_end_without_a_hole() {
    for fixture in ["lived-4.4.0/n1-stopped", "lived-4.0.2/n1-killed", "quorum-4.4.0/c2-stopped"] {
        let dir = tempfile::tempdir().unwrap();
        unpack(&format!("{fixture}.tar.gz"), dir.path());
        let (log, _) = open(dir.path(), BackendChoice::Portable).unwrap();
        let end = log.end_offset();
        log.update_high_watermark(end).unwrap();
        let mut replay = log.replay(None);
        let (mut next, mut records, mut ended) = (None, 0, None);
        loop {
            match replay.next_blocking().unwrap() {
                Replayed::Snapshot { id, .. } => assert_eq!(Some(id), log.latest_snapshot(), "{fixture}"),
                Replayed::SnapshotEnd { id } => (next, ended) = (Some(id.end_offset.0), Some(id)),
                Replayed::Batch(batch) => {
                    for record in batch.records().unwrap() {
                        let record = record.unwrap();
                        MetadataRecord::decode(record.value.unwrap()).unwrap();
                        records += 1;
                        if batch.snapshot().is_none() {
                            assert!(next.is_none_or(|next| next <= record.offset), "{fixture}");
                            next = Some(record.offset + 1);
                        }
                    }
                }
                Replayed::CaughtUp(offset) => {
                    assert_eq!(offset, end, "{fixture}");
                    break;
                }
                other => panic!("{fixture}: {other:?}"),
            }
        }
        assert!(ended.is_some() && records > 100, "{fixture}: {records} records");
    }
}

/// A log of 8 offsets with snapshots at 2 and 6; the bit is flipped behind the header of the newer one.
fn with_a_damaged_snapshot(dir: &std::path::Path) {
    let log = lived(dir, BackendChoice::Portable, 4);
    for end in [2, 6] {
        let mut writer = log.create_snapshot_blocking(SnapshotId::new(end, 1)).unwrap();
        writer.append_blocking(&[numbered(100 + end as u16)]).unwrap();
        writer.freeze_blocking().unwrap();
    }
    log.close_blocking().unwrap();
    let path = dir.join(PART).join("00000000000000000006-0000000001.checkpoint");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 75 - 3;
    bytes[at] ^= 1;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    write(&path, &bytes);
}

#[test]
fn a_snapshot_found_damaged_is_given_up_for_an_older_one_that_the_log_reaches() {
    let dir = tempfile::tempdir().unwrap();
    with_a_damaged_snapshot(dir.path());
    let (log, _) = open(dir.path(), BackendChoice::Portable).unwrap();
    log.update_high_watermark(Offset(8)).unwrap();
    let (bad, good) = (SnapshotId::new(6, 1), SnapshotId::new(2, 1));
    let mut replay = log.replay(None);
    let expected = [
        Seen::Snapshot(bad),
        Seen::Restart(bad, Some(good)),
        Seen::Snapshot(good),
        Seen::Records(vec![102], true),
        Seen::End(good),
        log_records(&[2, 3]),
        log_records(&[4, 5]),
        log_records(&[6, 7]),
        Seen::CaughtUp(8),
    ];
    assert_eq!(until_caught_up(&mut replay), expected);
    // It is not offered to followers either, and still lies there for whoever looks into it.
    assert_eq!(log.latest_snapshot(), Some(good));
    assert_eq!(checkpoint_names(dir.path()).len(), 2);
}

#[test]
fn a_damaged_snapshot_that_nothing_can_replace_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    with_a_damaged_snapshot(dir.path());
    let part = dir.path().join(PART);
    // As after a deletion: the log starts at 6, where the damaged snapshot ends.
    fs::remove_file(part.join("00000000000000000002-0000000001.checkpoint")).unwrap();
    let log = fs::read(part.join("00000000000000000000.log")).unwrap();
    fs::remove_file(part.join("00000000000000000000.log")).unwrap();
    let batch = log.len() / 4;
    write(&part.join("00000000000000000006.log"), &log[3 * batch..]);
    for stale in ["kraftlog.state", "leader-epoch-checkpoint"] {
        fs::remove_file(part.join(stale)).unwrap();
    }
    let (log, _) = open(dir.path(), BackendChoice::Portable).unwrap();
    assert_eq!(log.start_offset(), Offset(6));
    let mut replay = log.replay(None);
    assert_eq!(step(&mut replay).unwrap(), Seen::Snapshot(SnapshotId::new(6, 1)));
    let error = step(&mut replay).unwrap_err();
    let ReplayError::NoWayBack(refusal) = &error else { panic!("{error}") };
    let kraftlog::snapshot::SnapshotRefusal::SnapshotInvalid { fault, .. } = refusal else {
        panic!("{refusal}")
    };
    assert!(matches!(fault, SnapshotFault::BadCrc { .. }), "{fault}");
}

#[test]
fn a_closed_log_ends_the_replay_that_waits() {
    let dir = tempfile::tempdir().unwrap();
    let log = lived(dir.path(), BackendChoice::Portable, 1);
    let mut replay = log.replay(None);
    until_caught_up(&mut replay);
    let waiting = std::thread::spawn(move || step(&mut replay));
    log.close_blocking().unwrap();
    assert!(matches!(waiting.join().unwrap(), Err(ReplayError::Closed)));
}
