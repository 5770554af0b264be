//! A batch that is built has Kafka's bytes, and what does not fit changes nothing.

use super::super::{Batch, golden};
use super::*;
use crate::control::{
    ControlRecord, Endpoint, KRaftVersion, LeaderChange, LeaderVoters, SnapshotFooter, SnapshotHeader, Voter,
    Voters,
};
use crate::metadata::{FeatureLevelRecord, MetadataRecord, NoOpRecord, TopicRecord};
use crate::uuid::Uuid;

const TIME: i64 = 1_700_000_000_000;

fn control(
    out: &mut Vec<u8>,
    base_offset: i64,
    leader_epoch: i32,
    records: &[ControlRecord<'_>],
) -> BatchHeader {
    let mut builder = BatchBuilder::new(out, BatchOptions::control(base_offset, leader_epoch, TIME));
    for record in records {
        builder.append_control(record).unwrap();
    }
    builder.finish()
}

fn data(
    out: &mut Vec<u8>,
    base_offset: i64,
    leader_epoch: i32,
    records: &[MetadataRecord<'_>],
) -> BatchHeader {
    let mut builder = BatchBuilder::new(out, BatchOptions::data(base_offset, leader_epoch, TIME));
    for record in records {
        builder.append_with(None, |out| record.encode(0, out)).unwrap();
    }
    builder.finish()
}

fn feature(name: &str, feature_level: i16) -> MetadataRecord<'_> {
    MetadataRecord::FeatureLevel(FeatureLevelRecord { name, feature_level, ..Default::default() })
}

fn snapshot_header() -> ControlRecord<'static> {
    ControlRecord::SnapshotHeader(SnapshotHeader { last_contained_log_timestamp: TIME, ..Default::default() })
}

fn voters() -> ControlRecord<'static> {
    let voter = Voter {
        id: 1,
        directory_id: Uuid::from_halves(0x1111_1111_1111_1111, 0x2222_2222_2222_2222),
        endpoints: vec![Endpoint {
            name: "CONTROLLER".into(),
            host: "localhost".into(),
            port: 9093,
            ..Default::default()
        }],
        kraft_version_max: 1,
        ..Default::default()
    };
    ControlRecord::Voters(Voters { voters: vec![voter], ..Default::default() })
}

fn kraft_version() -> ControlRecord<'static> {
    ControlRecord::KRaftVersion(KRaftVersion { kraft_version: 1, ..Default::default() })
}

fn footer() -> ControlRecord<'static> {
    ControlRecord::SnapshotFooter(SnapshotFooter::default())
}

#[test]
fn every_batch_of_the_format_reference_is_built_byte_for_byte() {
    let voter = LeaderVoters::from_ids(&[1]);
    let change = LeaderChange { leader_id: 1, voters: voter, granting_voters: voter, ..Default::default() };
    let mut out = Vec::new();
    control(&mut out, 0, 1, &[ControlRecord::LeaderChange(change)]);
    assert_eq!(out, golden::leader_change());

    out.clear();
    data(&mut out, 1, 1, &[MetadataRecord::NoOp(NoOpRecord::default())]);
    assert_eq!(out, golden::no_op());

    out.clear();
    let topic_id = Uuid::from_halves(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    let topic = MetadataRecord::Topic(TopicRecord { name: "foo", topic_id, ..Default::default() });
    let header = data(&mut out, 2, 1, &[feature("metadata.version", 30), topic]);
    assert_eq!(out, golden::two_records());
    assert_eq!((header.last_offset(), header.size()), (3, 122));

    out.clear();
    control(&mut out, 0, 0, &[snapshot_header(), kraft_version(), voters()]);
    control(&mut out, 3, 0, &[footer()]);
    assert_eq!(out, golden::zero_checkpoint_4_0());

    out.clear();
    control(&mut out, 0, 2, &[snapshot_header()]);
    data(&mut out, 1, 2, &[feature("metadata.version", 25)]);
    control(&mut out, 2, 2, &[footer()]);
    assert_eq!(out, golden::small_checkpoint());

    out.clear();
    control(&mut out, 0, 0, &[snapshot_header(), kraft_version(), voters()]);
    data(
        &mut out,
        3,
        0,
        &[
            feature("metadata.version", 33),
            feature("eligible.leader.replicas.version", 1),
            feature("group.version", 1),
            feature("share.version", 2),
            feature("streams.version", 1),
            feature("transaction.version", 2),
        ],
    );
    control(&mut out, 9, 0, &[footer()]);
    assert_eq!(out, golden::zero_checkpoint_4_4());
}

#[test]
fn both_ways_to_append_write_the_same_bytes_at_every_length() {
    // Around each length at which a varint grows, for value and whole record.
    for len in (1..200).chain(8180..8200).chain([100_000, 1_048_560, 1_048_576, 1_048_600]) {
        let value = vec![0xab; len];
        let key = [0, 0, 0, 99, 1];
        let mut copied = vec![1, 2, 3];
        let mut encoded = copied.clone();
        let mut one = BatchBuilder::new(&mut copied, BatchOptions::control(5, 6, 7));
        let mut other = BatchBuilder::new(&mut encoded, BatchOptions::control(5, 6, 7));
        for _ in 0..3 {
            one.append(Some(&key), &value).unwrap();
            other
                .append_with(Some(&key), |out| {
                    out.extend_from_slice(&value);
                    Ok::<(), EncodeError>(())
                })
                .unwrap();
        }
        assert_eq!(one.finish(), other.finish(), "{len}");
        assert!(copied == encoded, "{len}");
        let batch = Batch::check(&copied[3..]).unwrap();
        for (index, record) in batch.records().unwrap().enumerate() {
            let record = record.unwrap();
            assert_eq!(record.offset, 5 + index as i64);
            assert_eq!((record.key, record.payload()), (Some(&key[..]), &value[..]), "{len}");
        }
    }
}

#[test]
fn a_record_that_does_not_fit_leaves_the_batch_as_it_was() {
    let limit = HEADER_BYTES + 2 * 17;
    let options = BatchOptions { bytes_max: limit, ..BatchOptions::data(0, 0, 0) };
    let mut out = Vec::new();
    let mut builder = BatchBuilder::new(&mut out, options);
    // Ten bytes of value and seven around them.
    builder.append(None, &[1; 10]).unwrap();
    let full = BatchFull { record_bytes: 18, batch_bytes: HEADER_BYTES + 17, bytes_max: limit };
    assert_eq!(builder.append(None, &[1; 11]), Err(full));
    let grow = |out: &mut Vec<u8>| {
        out.extend_from_slice(&[1; 11]);
        Ok::<(), EncodeError>(())
    };
    assert_eq!(builder.append_with(None, grow), Err(AppendError::Full(full)));
    assert!(!full.never_fits());
    assert!(builder.append(None, &[1; 28]).unwrap_err().never_fits());
    let fail = |out: &mut Vec<u8>| {
        out.push(1);
        Err(EncodeError::TagOrder)
    };
    assert_eq!(builder.append_with(None, fail), Err(AppendError::Encode(EncodeError::TagOrder)));
    assert_eq!((builder.count(), builder.size(), builder.next_offset()), (1, HEADER_BYTES + 17, 1));
    builder.append(None, &[2; 10]).unwrap();
    let header = builder.finish();
    assert_eq!((header.size(), header.records_count), (limit, 2));
    let batch = Batch::check(&out).unwrap();
    let values: Vec<&[u8]> = batch.records().unwrap().map(|record| record.unwrap().payload()).collect();
    assert_eq!(values, [&[1; 10][..], &[2; 10][..]]);
}

#[test]
fn a_batch_may_have_exactly_eight_mebibytes() {
    // Two length prefixes of four bytes, attributes, deltas, null key, header count.
    let largest = BATCH_BYTES_MAX - HEADER_BYTES - 4 - 4 - 5;
    let value = vec![7; largest + 1];
    let mut out = Vec::new();
    let mut builder = BatchBuilder::new(&mut out, BatchOptions::data(0, 0, 0));
    let full = builder.append(None, &value).unwrap_err();
    assert_eq!(full.record_bytes + HEADER_BYTES, BATCH_BYTES_MAX + 1);
    assert!(full.never_fits());
    builder.append(None, &value[1..]).unwrap();
    assert_eq!(builder.finish().size(), BATCH_BYTES_MAX);
    assert_eq!(Batch::check(&out).unwrap().records().unwrap().count(), 1);
}

#[test]
fn a_dropped_builder_gives_the_vector_back_as_it_was() {
    let mut out = vec![1, 2, 3];
    let mut builder = BatchBuilder::new(&mut out, BatchOptions::data(0, 0, 0));
    builder.append(None, b"lost").unwrap();
    drop(builder);
    assert_eq!(out, [1, 2, 3]);
}
