//! The history of control records.

use super::*;
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use kraftlog_codecs::control::Endpoint;

fn voter(id: i32) -> Voter {
    Voter {
        id,
        directory_id: Uuid::from_halves(7, id as u64),
        endpoints: vec![Endpoint {
            name: "CONTROLLER".into(),
            host: "h".into(),
            port: 9093,
            ..Endpoint::default()
        }],
        kraft_version_max: 1,
        ..Voter::default()
    }
}

fn set(ids: &[i32]) -> VoterSet {
    VoterSet { voters: ids.iter().copied().map(voter).collect(), ..VoterSet::default() }
}

fn version(kraft_version: i16) -> ControlRecord<'static> {
    ControlRecord::KRaftVersion(KRaftVersion { kraft_version, ..KRaftVersion::default() })
}

fn control(base: i64, records: &[ControlRecord<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::control(base, 1, 5));
    for record in records {
        builder.append_control(record).unwrap();
    }
    builder.finish();
    bytes
}

fn data(base: i64, records: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(base, 1, 5));
    for _ in 0..records {
        // No metadata record at all: data batches must not be decoded.
        builder.append(None, b"?").unwrap();
    }
    builder.finish();
    bytes
}

fn apply(history: &mut ControlHistory, bytes: &[u8]) -> Result<bool, ControlError> {
    history.apply(&Batch::check(bytes).unwrap())
}

fn ids(set: Option<&VoterSet>) -> Vec<i32> {
    set.map(|set| set.voters.iter().map(|voter| voter.id).collect()).unwrap_or_default()
}

/// LeaderChange, KRaftVersion 1 and Voters {1} at 0..=2, data 3..=9, Voters {1, 2} at 10.
fn lived() -> ControlHistory {
    let mut history = ControlHistory::new(None);
    let leader = ControlRecord::LeaderChange(LeaderChange::default());
    let start = control(0, &[leader, version(1), ControlRecord::Voters(set(&[1]))]);
    assert_eq!(apply(&mut history, &start), Ok(true));
    assert_eq!(apply(&mut history, &data(3, 7)), Ok(false));
    assert_eq!(apply(&mut history, &control(10, &[ControlRecord::Voters(set(&[1, 2]))])), Ok(true));
    history
}

#[test]
fn voters_and_version_hold_from_their_offset_on() {
    let history = lived();
    assert_eq!(ids(history.voters_at(Offset(1)).unwrap()), [0; 0]);
    assert_eq!(ids(history.voters_at(Offset(2)).unwrap()), [1]);
    assert_eq!(ids(history.voters_at(Offset(9)).unwrap()), [1]);
    assert_eq!(ids(history.voters_at(Offset(10)).unwrap()), [1, 2]);
    assert_eq!(history.kraft_version_at(Offset(0)), Ok(0));
    assert_eq!(history.kraft_version_at(Offset(1)), Ok(1));
    let not_yet = ControlError::NotReadYet { offset: Offset(11), next: Offset(11) };
    assert_eq!(history.voters_at(Offset(11)), Err(not_yet.clone()));
    assert_eq!(history.kraft_version_at(Offset(11)), Err(not_yet));
}

#[test]
fn truncation_takes_back_what_was_said_at_or_above_it() {
    let mut history = lived();
    history.truncate_to(Offset(10));
    assert_eq!(ids(history.last_voters().map(|(_, set)| set)), [1]);
    assert_eq!(history.next_offset(), Offset(10));
    // The same offsets come again, with something else in them.
    assert_eq!(apply(&mut history, &control(10, &[ControlRecord::Voters(set(&[3]))])), Ok(true));
    assert_eq!(ids(history.voters_at(Offset(10)).unwrap()), [3]);
    history.truncate_to(Offset(1));
    assert_eq!(history.last_voters(), None);
    assert_eq!(history.last_kraft_version(), 0);
}

#[test]
fn a_frozen_snapshot_keeps_the_newest_entry_below_it() {
    let mut history = lived();
    history.truncate_before(Offset(10));
    assert_eq!(ids(history.voters_at(Offset(9)).unwrap()), [1]);
    history.truncate_before(Offset(11));
    assert_eq!(ids(history.voters_at(Offset(9)).unwrap()), [0; 0]);
    assert_eq!(ids(history.voters_at(Offset(10)).unwrap()), [1, 2]);
    assert_eq!(history.kraft_version_at(Offset(9)), Ok(1));
}

#[test]
fn the_zero_checkpoint_counts_at_minus_one() {
    let mut history = lived();
    history.load_snapshot(SnapshotId::ZERO, Some(1), Some(set(&[5]))).unwrap();
    assert_eq!(history.next_offset(), Offset(0));
    assert_eq!(ids(history.voters_at(Offset(-1)).unwrap()), [5]);
    assert_eq!(history.last_voters().unwrap().0, Some(Offset(-1)));
    assert_eq!(history.kraft_version_at(Offset(-1)), Ok(1));
}

#[test]
fn a_log_that_overlaps_the_snapshot_is_taken_from_its_end_on() {
    let mut history = ControlHistory::new(None);
    history.load_snapshot(SnapshotId::new(12, 1), Some(1), Some(set(&[9]))).unwrap();
    let overlapping =
        control(10, &[ControlRecord::Voters(set(&[1])), version(1), ControlRecord::Voters(set(&[2]))]);
    assert_eq!(apply(&mut history, &control(9, &[ControlRecord::Voters(set(&[4]))])), Ok(false));
    assert_eq!(apply(&mut history, &overlapping), Ok(true));
    assert_eq!(ids(history.voters_at(Offset(11)).unwrap()), [9]);
    assert_eq!(ids(history.voters_at(Offset(12)).unwrap()), [2]);
}

#[test]
fn unknown_control_types_take_up_their_offset_and_nothing_else() {
    let mut history = lived();
    let unknown = ControlRecord::Unknown { type_id: 99, key: &[0, 0, 0, 99], value: b"?" };
    assert_eq!(apply(&mut history, &control(11, &[unknown])), Ok(false));
    assert_eq!(history.next_offset(), Offset(12));
    assert_eq!(ids(history.voters_at(Offset(11)).unwrap()), [1, 2]);
}

#[test]
fn a_kraft_version_of_a_newer_build_is_refused_by_name() {
    let mut history = lived();
    let newer = ControlError::UnsupportedKRaftVersion { offset: Offset(11), found: 2 };
    assert_eq!(apply(&mut history, &control(11, &[version(2)])), Err(newer));
    assert_eq!(history.next_offset(), Offset(11));
    assert_eq!(history.last_kraft_version(), 1);
}

#[test]
fn a_leader_repeats_voters_that_came_from_the_zero_checkpoint() {
    let mut history = ControlHistory::new(None);
    history.load_snapshot(SnapshotId::ZERO, Some(1), Some(set(&[1, 2]))).unwrap();
    let start = history.epoch_start(&voter(2)).unwrap();
    assert_eq!(start.voters, [1, 2]);
    assert_eq!(start.rewrite, Some((1, set(&[1, 2]))));
    let kinds: Vec<i16> = start.records(&[2]).iter().map(|record| record.kind().id()).collect();
    assert_eq!(kinds, [2, 5, 6]);
    // Once they are in the log, a leader change stands alone.
    apply(&mut history, &control(0, &start.records(&[2]))).unwrap();
    assert_eq!(history.epoch_start(&voter(2)).unwrap().rewrite, None);
}

#[test]
fn a_leader_with_new_endpoints_writes_them_into_the_voter_set() {
    let history = lived();
    let mut moved = voter(2);
    moved.endpoints[0].port = 9999;
    let (_, voters) = history.epoch_start(&moved).unwrap().rewrite.unwrap();
    assert_eq!(voters.voters, [voter(1), moved]);
}

#[test]
fn at_kraft_version_0_a_leader_change_stands_alone() {
    let history = ControlHistory::new(Some(set(&[1, 2, 3])));
    let start = history.epoch_start(&voter(3)).unwrap();
    assert_eq!((start.voters.as_slice(), &start.rewrite), (&[1, 2, 3][..], &None));
    // Also with voters from a checkpoint (B-86).
    let mut history = ControlHistory::new(None);
    history.load_snapshot(SnapshotId::ZERO, None, Some(set(&[1]))).unwrap();
    assert_eq!(history.epoch_start(&voter(1)).unwrap().rewrite, None);
}

#[test]
fn nobody_leads_without_being_a_voter() {
    let mut history = lived();
    assert_eq!(history.epoch_start(&voter(3)), Err(LeaderChangeRefusal::NotAVoter { leader: NodeId(3) }));
    let other_disk = Voter { directory_id: Uuid::from_halves(9, 9), ..voter(1) };
    assert!(matches!(history.epoch_start(&other_disk), Err(LeaderChangeRefusal::OtherDirectory { .. })));
    // kraft.version 1 without any voter set is an error (B-86), static voters or not.
    history.load_snapshot(SnapshotId::ZERO, Some(1), None).unwrap();
    assert_eq!(history.epoch_start(&voter(1)), Err(LeaderChangeRefusal::NoVoterSet { kraft_version: 1 }));
    let mut history = ControlHistory::new(Some(set(&[1])));
    history.load_snapshot(SnapshotId::ZERO, Some(1), None).unwrap();
    assert_eq!(history.epoch_start(&voter(1)), Err(LeaderChangeRefusal::NoVoterSet { kraft_version: 1 }));
}
