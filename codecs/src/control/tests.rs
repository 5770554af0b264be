//! Control records from Kafka's bytes and back, and what is refused.

use super::*;
use crate::uuid::Uuid;

fn decoded(kind: i16, value: &[u8]) -> Result<ControlRecord<'_>, DecodeError> {
    const KEYS: [[u8; 4]; 8] = [
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 2],
        [0, 0, 0, 3],
        [0, 0, 0, 4],
        [0, 0, 0, 5],
        [0, 0, 0, 6],
        [0, 0, 0, 99],
    ];
    let key = KEYS.iter().find(|key| i16::from(key[3]) == kind).unwrap();
    ControlRecord::decode(key, value)
}

fn encoded(record: &ControlRecord<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode_value(&mut out).unwrap();
    out
}

fn json(record: &ControlRecord<'_>) -> String {
    let mut out = Vec::new();
    record.write_json(&mut out);
    String::from_utf8(out).unwrap()
}

/// A voter set as in Kafka's zero checkpoint, version 9, with an unknown tag at every level.
const VOTERS_WITH_TAGS: &[u8] = &[
    0, 9, 2, 0, 0, 0, 1, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 2, 2, b'C', 2, b'h', 0x23, 0x85, 1, 5, 1, 0xe1, 0, 0, 0, 1, 1, 6, 1, 0xf1, 1, 7, 0, 2, 8, 2,
    1, 2, 9, 0,
];

#[test]
fn messages_print_as_kafka_prints_them() {
    let change = [0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 1, 0, 0];
    for (kind, value, expected) in [
        (
            2,
            &change[..],
            r#"{"version":0,"leaderId":1,"voters":[{"voterId":1},{"voterId":2}],"grantingVoters":[{"voterId":1}]}"#,
        ),
        (
            3,
            &[0, 0, 0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0, 0],
            r#"{"version":0,"lastContainedLogTimestamp":1700000000000}"#,
        ),
        (4, &[0, 0, 0], r#"{"version":0}"#),
        (5, &[0, 0, 0, 1, 0], r#"{"version":0,"kRaftVersion":1}"#),
        (
            6,
            VOTERS_WITH_TAGS,
            r#"{"version":9,"voters":[{"voterId":1,"voterDirectoryId":"EREREREREREiIiIiIiIiIg","endpoints":[{"name":"C","host":"h","port":9093}],"kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}"#,
        ),
    ] {
        let record = decoded(kind, value).unwrap();
        assert_eq!(record.kind().id(), kind);
        assert_eq!(json(&record), expected);
        assert_eq!(encoded(&record), value, "{record:?}");
    }
}

#[test]
fn version_field_and_unknown_tags_are_kept_at_every_level() {
    let record = decoded(6, VOTERS_WITH_TAGS).unwrap();
    let mut seen = Vec::new();
    record.visit_unknown_tags(&mut |path, tag, data| seen.push((path.to_string(), tag, data.to_vec())));
    let expected = [
        ("", 8, &[1, 2][..]),
        ("", 9, &[]),
        ("voters[0]", 7, &[]),
        ("voters[0].endpoints[0]", 5, &[0xe1]),
        ("voters[0].kRaftVersionFeature", 6, &[0xf1]),
    ];
    assert_eq!(seen, expected.map(|(path, tag, data)| (path.to_owned(), tag, data.to_vec())));
    let ControlRecord::Voters(voters) = &record else { panic!("{record:?}") };
    assert_eq!(voters.version, 9);
    assert_eq!(voters.voters[0].directory_id, Uuid::from_halves(0x1111111111111111, 0x2222222222222222));

    let change = [0x80, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 1, 36, 2, 7, 8, 1, 79, 0];
    let record = decoded(2, &change).unwrap();
    let mut seen = Vec::new();
    record.visit_unknown_tags(&mut |path, tag, data| seen.push((path.to_string(), tag, data.to_vec())));
    assert_eq!(seen, [(String::new(), 79, vec![]), ("grantingVoters[0]".to_owned(), 36, vec![7, 8])]);
    assert_eq!(encoded(&record), change);
}

#[test]
fn leader_changes_compare_by_what_they_say() {
    let read = [0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0];
    let ControlRecord::LeaderChange(read) = decoded(2, &read).unwrap() else { panic!("no leader change") };
    let made = LeaderChange { leader_id: 1, voters: LeaderVoters::from_ids(&[1, 2]), ..Default::default() };
    assert_eq!(read, made);
    assert_eq!(read.voters.ids().collect::<Vec<_>>(), [1, 2]);
    assert_ne!(read.voters, LeaderVoters::from_ids(&[2, 1]));
    assert_ne!(read.voters, LeaderVoters::from_ids(&[1]));
}

#[test]
fn keys_of_later_versions_are_read_and_bad_ones_refused() {
    let footer = ControlRecord::SnapshotFooter(SnapshotFooter::default());
    assert_eq!(ControlRecord::decode(&[0, 7, 0, 4, 1, 2, 3], &[0, 0, 0]), Ok(footer));
    assert_eq!(ControlRecord::decode(&[0, 0, 0], &[0, 0, 0]), Err(DecodeError::BadKey));
    assert_eq!(ControlRecord::decode(&[0xff, 0xff, 0, 4], &[0, 0, 0]), Err(DecodeError::BadFieldValue));
}

#[test]
fn unknown_types_are_kept_whole() {
    let record = decoded(99, &[1, 2, 3]).unwrap();
    assert_eq!(record, ControlRecord::Unknown { type_id: 99, key: &[0, 0, 0, 99], value: &[1, 2, 3] });
    assert_eq!(encoded(&record), [1, 2, 3]);
    let mut key = Vec::new();
    record.encode_key(&mut key);
    assert_eq!(key, [0, 0, 0, 99]);
    assert_eq!(json(&record), r#"{"key":"AAAAYw==","value":"AQID"}"#);
}

#[test]
fn transaction_markers_have_no_tags() {
    let value = [0, 0, 0, 0, 0, 1];
    let marker = EndTxnMarker { version: 0, coordinator_epoch: 1 };
    assert_eq!(decoded(0, &value), Ok(ControlRecord::Abort(marker)));
    assert_eq!(decoded(1, &value), Ok(ControlRecord::Commit(marker)));
    assert_eq!(json(&ControlRecord::Commit(marker)), r#"{"coordinatorEpoch":1}"#);
}

#[test]
fn a_message_cut_anywhere_or_with_a_byte_behind_it_is_refused() {
    let change = [0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0];
    for (kind, value) in [
        (0, &[0, 0, 0, 0, 0, 1][..]),
        (2, &change),
        (3, &[0; 11]),
        (4, &[0; 3]),
        (5, &[0; 5]),
        (6, VOTERS_WITH_TAGS),
    ] {
        for cut in 0..value.len() {
            assert!(decoded(kind, &value[..cut]).is_err(), "type {kind} cut at {cut}");
        }
        let longer = [value, &[0]].concat();
        assert_eq!(decoded(kind, &longer), Err(DecodeError::TrailingBytes), "type {kind}");
    }
}

#[test]
fn arrays_that_claim_more_than_there_is_are_refused() {
    let claim = [0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    assert_eq!(decoded(6, &claim), Err(DecodeError::ArrayTooLong));
    let claim = [0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    assert_eq!(decoded(2, &claim), Err(DecodeError::ArrayTooLong));
    assert_eq!(decoded(6, &[0, 0, 0, 0]), Err(DecodeError::UnexpectedNull));
}
