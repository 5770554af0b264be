//! Replay: bootstrap records or snapshot, the log, and what becomes committed, in one pass.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod snapshot_support;
mod support;

use kraftlog::snapshot::SnapshotFault;
use kraftlog::{Epoch, Offset, Replay, ReplayError, Replayed, SnapshotId};
use kraftlog_codecs::metadata::MetadataRecord;
use snapshot_support::*;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use support::{Place, fixtures};

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

async fn step(replay: &mut Replay) -> Result<Seen, ReplayError> {
    Ok(match replay.next().await? {
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

async fn until_caught_up(replay: &mut Replay) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        seen.push(step(replay).await.unwrap());
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

/// A log of 8 offsets with snapshots at 2 and 6; the bit is flipped behind the header of the newer one.
fn with_a_damaged_snapshot(place: &Place) {
    let log = lived(place, 4);
    for end in [2, 6] {
        let mut writer = log.create_snapshot_blocking(SnapshotId::new(end, 1)).unwrap();
        writer.append_blocking(&[numbered(100 + end as u16)]).unwrap();
        writer.freeze_blocking().unwrap();
    }
    log.close_blocking().unwrap();
    let path = place.part().join("00000000000000000006-0000000001.checkpoint");
    let mut bytes = place.read(&path);
    let at = bytes.len() - 75 - 3;
    bytes[at] ^= 1;
    place.write(&path, &bytes);
}

on_every_backend! {
    fn a_log_without_snapshot_comes_batch_by_batch_and_then_waits(place: &Place) {
        let log = lived(place, 2);
        let mut replay = log.replay(None);
        let first = [log_records(&[0, 1]), log_records(&[2, 3]), Seen::CaughtUp(4)];
        assert_eq!(place.run(until_caught_up(&mut replay)), first);
        assert!(is_waiting(&mut replay));
        // Durable is not committed: nothing comes before the high watermark says so.
        log.append_records(Epoch(1), [numbered(4)]).unwrap().durable_blocking().unwrap();
        assert!(is_waiting(&mut replay));
        log.update_high_watermark(Offset(5)).unwrap();
        assert_eq!(place.run(until_caught_up(&mut replay)), [log_records(&[4]), Seen::CaughtUp(5)]);
        assert_eq!(replay.next_offset(), Some(Offset(5)));
    }

    fn a_waiting_replay_goes_on_when_another_client_moves_the_high_watermark(place: &Place) {
        let log = lived(place, 1);
        let mut replay = log.replay(None);
        place.run(until_caught_up(&mut replay));
        place.together(vec![
            Box::pin(async move {
                let seen = until_caught_up(&mut replay).await;
                assert_eq!(seen, [log_records(&[7]), Seen::CaughtUp(3)]);
            }),
            Box::pin(async move {
                log.append_records(Epoch(1), [numbered(7)]).unwrap().durable().await.unwrap();
                log.update_high_watermark(Offset(3)).unwrap();
            }),
        ]);
    }

    fn after_open_nothing_is_committed_until_told(place: &Place) {
        lived(place, 2).close_blocking().unwrap();
        let (log, _) = place.open();
        let mut replay = log.replay(None);
        assert_eq!(place.run(until_caught_up(&mut replay)), [Seen::CaughtUp(0)]);
        log.update_high_watermark(Offset(4)).unwrap();
        let rest = [log_records(&[0, 1]), log_records(&[2, 3]), Seen::CaughtUp(4)];
        assert_eq!(place.run(until_caught_up(&mut replay)), rest);
    }

    fn the_newest_snapshot_comes_first_and_the_log_from_its_end(place: &Place) {
        let log = lived(place, 4);
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
        assert_eq!(place.run(until_caught_up(&mut log.replay(None))), expected);
        // Whoever has state from there on needs no snapshot, also in the middle of a batch.
        assert_eq!(place.run(until_caught_up(&mut log.replay(Some(Offset(7))))), [log_records(&[7]), Seen::CaughtUp(8)]);
        assert_eq!(place.run(until_caught_up(&mut log.replay(Some(Offset(8))))), [Seen::CaughtUp(8)]);
    }

    fn control_batches_move_the_offset_and_are_not_passed_on(place: &Place) {
        place.copy_in(&fixtures().join("formatted-4.4.0/standalone/data"));
        let (log, _) = place.open();
        let voter = log.voters_at(Offset(-1)).unwrap().unwrap().voters[0].clone();
        log.initialize_leader_epoch_blocking(Epoch(1)).unwrap();
        let start = log.append_leader_change(Epoch(1), &voter, &[kraftlog::NodeId(voter.id)]).unwrap();
        assert_eq!(start.offsets(), 0..=2);
        log.append_records(Epoch(1), [numbered(3)]).unwrap().durable_blocking().unwrap();
        log.update_high_watermark(Offset(4)).unwrap();
        // The zero checkpoint's records are for whoever bootstraps, never state.
        let seen = place.run(until_caught_up(&mut log.replay(None)));
        assert_eq!(seen, [Seen::Bootstrap(6), log_records(&[3]), Seen::CaughtUp(4)]);
    }

    fn bootstrap_records_are_those_that_kafka_formatted(place: &Place) {
        place.copy_in(&fixtures().join("formatted-4.4.0/standalone/data"));
        let (log, _) = place.open();
        let Replayed::Bootstrap(records) = log.replay(None).next_blocking().unwrap() else {
            panic!("no bootstrap")
        };
        let framed = MetadataRecord::decode(&records[0]).unwrap();
        assert_eq!(framed.record.type_name(), Some("FEATURE_LEVEL_RECORD"));
        assert_eq!(records.len(), 6);
    }

    fn a_directory_that_a_real_kafka_left_is_replayed_to_its_end_without_a_hole(place: &Place) {
        for fixture in ["lived-4.4.0/n1-stopped", "lived-4.0.2/n1-killed", "quorum-4.4.0/c2-stopped"] {
            let place = place.another();
            place.unpack(&fixtures().join(format!("{fixture}.tar.gz")));
            let (log, _) = place.open();
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

    fn a_snapshot_found_damaged_is_given_up_for_an_older_one_that_the_log_reaches(place: &Place) {
        with_a_damaged_snapshot(place);
        let (log, _) = place.open();
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
        assert_eq!(place.run(until_caught_up(&mut replay)), expected);
        // It is not offered to followers either, and still lies there for whoever looks into it.
        assert_eq!(log.latest_snapshot(), Some(good));
        assert_eq!(checkpoint_names(place).len(), 2);
    }

    fn a_damaged_snapshot_that_nothing_can_replace_is_an_error(place: &Place) {
        with_a_damaged_snapshot(place);
        let part = place.part();
        // As after a deletion: the log starts at 6, where the damaged snapshot ends.
        place.remove(&part.join("00000000000000000002-0000000001.checkpoint"));
        let log = place.read(&part.join("00000000000000000000.log"));
        place.remove(&part.join("00000000000000000000.log"));
        let batch = log.len() / 4;
        place.write(&part.join("00000000000000000006.log"), &log[3 * batch..]);
        for stale in ["kraftlog.state", "leader-epoch-checkpoint"] {
            place.remove(&part.join(stale));
        }
        let (log, _) = place.open();
        assert_eq!(log.start_offset(), Offset(6));
        let mut replay = log.replay(None);
        assert_eq!(place.run(step(&mut replay)).unwrap(), Seen::Snapshot(SnapshotId::new(6, 1)));
        let error = place.run(step(&mut replay)).unwrap_err();
        let ReplayError::NoWayBack(refusal) = &error else { panic!("{error}") };
        let kraftlog::snapshot::SnapshotRefusal::SnapshotInvalid { fault, .. } = refusal else {
            panic!("{refusal}")
        };
        assert!(matches!(fault, SnapshotFault::BadCrc { .. }), "{fault}");
    }

    fn a_closed_log_ends_the_replay_that_waits(place: &Place) {
        let log = lived(place, 1);
        let mut replay = log.replay(None);
        place.run(until_caught_up(&mut replay));
        place.together(vec![
            Box::pin(async move { assert!(matches!(step(&mut replay).await, Err(ReplayError::Closed))) }),
            Box::pin(async move { drop(log.close().await.unwrap()) }),
        ]);
    }
}
