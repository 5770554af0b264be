//! Each row on snapshots in the table of what open finds.

use super::*;

fn log(first_base: i64, end: i64, last_epoch: i32) -> LogExtent {
    LogExtent { first_base: Offset(first_base), end: Offset(end), last_epoch: Epoch(last_epoch) }
}

fn whole(end_offset: i64, epoch: i32) -> Inspected {
    let head = SnapshotHead { last_contained_log_timestamp: 0, kraft_version: None, voters: None };
    Inspected { id: SnapshotId::new(end_offset, epoch), len: 100, content: Ok(head) }
}

const CUT: SnapshotFault = SnapshotFault::NoFooter { len: 174 };

fn cut(end_offset: i64, epoch: i32) -> Inspected {
    Inspected { content: Err(CUT), ..whole(end_offset, epoch) }
}

fn plan(log: LogExtent, found: &[Inspected]) -> Result<SnapshotPlan, SnapshotRefusal> {
    choose(log, found, &[], Truncation::default())
}

fn id(end_offset: i64, epoch: i32) -> SnapshotId {
    SnapshotId::new(end_offset, epoch)
}

#[test]
fn a_log_from_zero_starts_at_zero_whatever_snapshots_there_are() {
    let chosen = plan(log(0, 20, 2), &[whole(0, 0), whole(9, 1), whole(15, 2)]).unwrap();
    assert_eq!((chosen.start, chosen.latest), (Offset(0), Some(id(15, 2))));
    assert_eq!((chosen.set_aside, chosen.stale), (vec![], vec![]));
    assert_eq!(plan(log(0, 0, 0), &[]).unwrap().latest, None);
}

#[test]
fn a_log_above_zero_starts_at_the_earliest_snapshot_it_reaches() {
    let chosen = plan(log(10, 20, 2), &[whole(0, 0), whole(8, 1), whole(12, 2), whole(15, 2)]).unwrap();
    assert_eq!((chosen.start, chosen.latest), (Offset(12), Some(id(15, 2))));
    assert_eq!(chosen.stale, [id(0, 0), id(8, 1)]);
}

#[test]
fn log_starts_above_zero_without_a_snapshot() {
    let start = 5_000_000_000;
    for found in [vec![], vec![whole(start - 1, 2)], vec![whole(0, 0)]] {
        let newest = found.last().map(|found| found.id);
        let refused = SnapshotRefusal::MissingSnapshot {
            log_start: Offset(start),
            log_end: Offset(start + 1),
            newest,
            deleted: None,
        };
        assert_eq!(plan(log(start, start + 1, 2), &found), Err(refused));
    }
    assert!(plan(log(start, start + 1, 2), &[whole(start, 2)]).is_ok());
    let deleted = [id(start, 2)];
    let refused = choose(log(start, start + 1, 2), &[], &deleted, Truncation::default()).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("00000000005000000000-0000000002 is there, marked as deleted"), "{text}");
    assert!(text.contains("newest usable: none"), "{text}");
}

#[test]
fn snapshot_without_footer_is_set_aside_when_the_log_holds_it_all() {
    let chosen = plan(log(0, 7, 2), &[cut(4, 2)]).unwrap();
    assert_eq!((chosen.start, chosen.latest), (Offset(0), None));
    assert_eq!(chosen.set_aside, [(id(4, 2), CUT)]);
    // An older whole one, reached by the log, serves as well.
    let chosen = plan(log(3, 7, 2), &[whole(3, 1), cut(6, 2)]).unwrap();
    assert_eq!((chosen.start, chosen.latest), (Offset(3), Some(id(3, 1))));
    assert_eq!(chosen.set_aside, [(id(6, 2), CUT)]);
}

#[test]
fn snapshot_without_footer_is_refused_when_the_log_lacks_what_was_in_it() {
    let refused = |first_base, end| SnapshotRefusal::SnapshotInvalid {
        id: id(4, 2),
        log_start: Offset(first_base),
        log_end: Offset(end),
        fault: CUT,
    };
    // The log starts there, or ends before it.
    assert_eq!(plan(log(4, 7, 2), &[cut(4, 2)]), Err(refused(4, 7)));
    assert_eq!(plan(log(0, 3, 2), &[cut(4, 2)]), Err(refused(0, 3)));
    // The zero checkpoint is no state to start from.
    assert_eq!(plan(log(4, 7, 2), &[whole(0, 0), cut(4, 2)]), Err(refused(4, 7)));
}

#[test]
fn a_broken_zero_checkpoint_is_set_aside_only_once_a_snapshot_covers_it() {
    assert!(matches!(plan(log(0, 7, 2), &[cut(0, 0)]), Err(SnapshotRefusal::SnapshotInvalid { .. })));
    assert!(matches!(plan(log(0, 0, 0), &[cut(0, 0)]), Err(SnapshotRefusal::SnapshotInvalid { .. })));
    let chosen = plan(log(0, 7, 2), &[cut(0, 0), whole(4, 2)]).unwrap();
    assert_eq!((chosen.latest, chosen.set_aside), (Some(id(4, 2)), vec![(id(0, 0), CUT)]));
}

#[test]
fn a_snapshot_of_a_newer_build_is_never_set_aside_for_it() {
    let newer = SnapshotFault::UnsupportedKRaftVersion { found: 2 };
    let found = Inspected { content: Err(newer), ..whole(4, 2) };
    assert!(matches!(plan(log(0, 7, 2), &[found]), Err(SnapshotRefusal::SnapshotInvalid { .. })));
}

#[test]
fn a_snapshot_beyond_the_log_end_is_a_lost_tail() {
    let lost = SnapshotRefusal::LostTail { id: id(9, 2), log_end: Offset(7), last_epoch: Epoch(2) };
    assert_eq!(plan(log(0, 7, 2), &[whole(9, 2)]), Err(lost.clone()));
    assert_eq!(plan(log(0, 7, 2), &[whole(0, 0), whole(9, 2)]), Err(lost));
    // An intent for another snapshot is no reason.
    let other = Truncation { intent: Some(id(8, 2)), kafka_was_here: false };
    assert!(choose(log(0, 7, 2), &[whole(9, 2)], &[], other).is_err());
}

#[test]
fn a_full_truncation_that_had_begun_is_finished() {
    let found = [whole(0, 0), whole(5, 1), cut(6, 1), whole(9, 2)];
    for truncation in [
        Truncation { intent: Some(id(9, 2)), kafka_was_here: false },
        Truncation { intent: None, kafka_was_here: true },
    ] {
        let chosen = choose(log(0, 7, 2), &found, &[], truncation).unwrap();
        assert_eq!((chosen.start, chosen.latest), (Offset(9), Some(id(9, 2))));
        assert_eq!(chosen.truncate_fully_to, Some(id(9, 2)));
        assert_eq!(chosen.stale, [id(0, 0), id(5, 1)]);
        assert_eq!(chosen.set_aside, [(id(6, 1), CUT)]);
    }
}

#[test]
fn a_newer_epoch_within_the_log_replaces_it_only_for_a_reason() {
    // 500 snapshots of rising epochs at one offset (C-45) harm nothing.
    let chosen = plan(log(0, 7, 2), &[whole(4, 2), whole(4, 501)]).unwrap();
    assert_eq!((chosen.start, chosen.truncate_fully_to), (Offset(0), None));
    // A Kafka that was killed between download and truncation left it so (B-108).
    let kafka = Truncation { intent: None, kafka_was_here: true };
    let chosen = choose(log(0, 7, 2), &[whole(4, 3)], &[], kafka).unwrap();
    assert_eq!((chosen.start, chosen.truncate_fully_to), (Offset(4), Some(id(4, 3))));
}
