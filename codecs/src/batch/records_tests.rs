//! What the strict walk takes and refuses (formats.md, 2.5), and what the general one takes.

use super::super::{Attributes, Batch, BatchHeader, CRC_FROM, HEADER_BYTES, golden};
use super::*;
use crate::crc;
use crate::cursor::Put as _;

/// A data or control batch around these record bytes, with a right CRC.
fn batch(attributes: Attributes, records_count: i32, records: &[u8]) -> Vec<u8> {
    let mut header = BatchHeader {
        base_offset: 100,
        batch_length: i32::try_from(HEADER_BYTES - 12 + records.len()).unwrap(),
        leader_epoch: 4,
        crc: 0,
        attributes,
        last_offset_delta: (records_count - 1).max(0),
        base_timestamp: 1000,
        max_timestamp: 2000,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        records_count,
    };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(records);
    header.crc = crc::crc32c(&bytes[CRC_FROM..]);
    bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
    bytes
}

/// A record from its body.
fn record(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_varint(i32::try_from(body.len()).unwrap());
    bytes.extend_from_slice(body);
    bytes
}

fn strict(attributes: Attributes, count: i32, records: &[u8]) -> Result<Vec<(i64, Vec<u8>)>, DecodeError> {
    let bytes = batch(attributes, count, records);
    let mut walk = Batch::check(&bytes)?.records()?;
    let mut found = Vec::new();
    while let Some(record) = walk.next() {
        match record {
            Ok(record) => found.push((record.offset, record.payload().to_vec())),
            Err(error) => {
                assert!(walk.next().is_none(), "an error is the last item");
                return Err(error);
            }
        }
    }
    assert!(walk.next().is_none());
    Ok(found)
}

#[test]
fn records_of_kafkas_batches_come_out() {
    let bytes = golden::two_records();
    let records: Vec<Record<'_>> =
        Batch::check(&bytes).unwrap().records().unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].offset, records[1].offset), (2, 3));
    assert_eq!((records[0].timestamp, records[0].key), (1_700_000_000_000, None));
    assert_eq!(records[1].payload(), &bytes[bytes.len() - 25..bytes.len() - 1]);

    let bytes = golden::leader_change();
    let record = Batch::check(&bytes).unwrap().records().unwrap().next().unwrap().unwrap();
    assert_eq!(record.key, Some(&[0, 0, 0, 2][..]));
    assert_eq!(record.payload().len(), 19);
}

#[test]
fn each_strict_rule_refuses_its_breach() {
    use DecodeError::*;
    let good = [0, 0, 0, 1, 2, 9, 0];
    assert_eq!(strict(Attributes::DATA, 1, &record(&good)), Ok(vec![(100, vec![9])]));
    let cases: &[(&str, Vec<u8>, DecodeError)] = &[
        ("negative length", vec![1, 0, 0, 0, 1, 2, 9, 0], BadRecordLength),
        ("zero length", vec![0, 0, 0, 0, 0, 0, 0, 0], BadRecordLength),
        ("length beyond the batch", vec![0x20, 0, 0, 0, 1, 2, 9, 0], Truncated),
        ("timestamp delta", record(&[0, 2, 0, 1, 2, 9, 0]), BadTimestampDelta),
        ("offset delta", record(&[0, 0, 2, 1, 2, 9, 0]), BadOffsetDelta),
        ("a key", record(&[0, 0, 0, 2, 7, 2, 9, 0]), BadKey),
        ("an empty key", record(&[0, 0, 0, 0, 2, 9, 0]), BadKey),
        ("null value", record(&[0, 0, 0, 1, 1, 0, 0]), BadValue),
        ("empty value", record(&[0, 0, 0, 1, 0, 0, 0]), BadValue),
        ("value beyond the record", record(&[0, 0, 0, 1, 20, 9, 0]), Truncated),
        ("headers", record(&[0, 0, 0, 1, 2, 9, 2, 2, 7, 1]), HasHeaders),
        ("headers that end in zero", record(&[0, 0, 0, 1, 2, 9, 2, 2, 7, 0]), HasHeaders),
        ("surplus bytes that end in zero", record(&[0, 0, 0, 1, 2, 9, 0, 7, 0]), BadRecordLength),
        ("no header count", record(&[0, 0, 0, 1, 4, 9, 9]), BadVarint),
        ("varint without end", record(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), BadVarint),
    ];
    for (name, bytes, error) in cases {
        assert_eq!(strict(Attributes::DATA, 1, bytes), Err(*error), "{name}");
    }
}

#[test]
fn control_records_need_a_key_of_four_bytes() {
    let good = [0, 0, 0, 8, 0, 0, 0, 4, 2, 9, 0];
    assert_eq!(strict(Attributes::CONTROL, 1, &record(&good)), Ok(vec![(100, vec![9])]));
    for bad in [&[0, 0, 0, 1, 2, 9, 0][..], &[0, 0, 0, 6, 0, 0, 0, 2, 9, 0], &[0, 0, 0, 0, 2, 9, 0]] {
        assert_eq!(strict(Attributes::CONTROL, 1, &record(bad)), Err(DecodeError::BadKey), "{bad:?}");
    }
}

#[test]
fn counts_that_disagree_with_the_bytes_are_refused() {
    let one = record(&[0, 0, 0, 1, 2, 9, 0]);
    let two = [one.clone(), record(&[0, 0, 2, 1, 2, 8, 0])].concat();
    assert_eq!(strict(Attributes::DATA, 2, &two), Ok(vec![(100, vec![9]), (101, vec![8])]));
    assert_eq!(strict(Attributes::DATA, 1, &two), Err(DecodeError::TrailingBytes));
    let padded = [one.clone(), vec![0; 8]].concat();
    assert_eq!(strict(Attributes::DATA, 2, &padded), Err(DecodeError::BadRecordLength));
    assert_eq!(strict(Attributes::DATA, 2, &one), Err(DecodeError::BadRecordCount));
    assert_eq!(strict(Attributes::DATA, 0, &one), Err(DecodeError::BadRecordCount));
}

#[test]
fn two_hundred_million_records_in_ninety_bytes_are_refused_at_once() {
    let bytes = batch(Attributes::DATA, 200_000_000, &[0; 29]);
    assert_eq!(bytes.len(), 90);
    let batch = Batch::check(&bytes).unwrap();
    assert_eq!(batch.records().map(|_| ()), Err(DecodeError::BadRecordCount));
    let mut walk = batch.records_general(batch.records_bytes());
    assert!(matches!(walk.next(), Some(Err(_))));
    assert!(walk.next().is_none());
}

#[test]
fn the_general_walk_takes_what_producers_write() {
    // Deltas, a gap in the offsets, a key, two headers (one without value), a null value.
    let first = record(&[7, 20, 0, 4, b'k', b'1', 2, b'v', 4, 2, b'h', 2, b'x', 2, b'g', 1]);
    let second = record(&[0, 3, 10, 1, 1, 0]);
    let bytes = batch(Attributes::DATA, 2, &[first, second].concat());
    let batch = Batch::check(&bytes).unwrap();
    let records: Vec<GeneralRecord<'_>> =
        batch.records_general(batch.records_bytes()).collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].attributes, 7);
    let expected = Record { offset: 100, timestamp: 1010, key: Some(b"k1"), value: Some(b"v") };
    assert_eq!(records[0].record, expected);
    assert_eq!(records[0].headers.len(), 2);
    assert_eq!(records[0].headers.collect::<Vec<_>>(), [(&b"h"[..], Some(&b"x"[..])), (&b"g"[..], None)]);
    let expected = Record { offset: 105, timestamp: 998, key: None, value: None };
    assert_eq!(records[1].record, expected);
}

#[test]
fn log_append_time_is_the_time_of_every_record() {
    let bytes = batch(Attributes(0x08), 1, &record(&[0, 0, 0, 1, 2, 9, 0]));
    let batch = Batch::check(&bytes).unwrap();
    assert_eq!(batch.records().unwrap().next().unwrap().unwrap().timestamp, 2000);
    let general = batch.records_general(batch.records_bytes()).next().unwrap().unwrap();
    assert_eq!(general.record.timestamp, 2000);
}

#[test]
fn the_general_walk_refuses_what_kafkas_general_reader_refuses() {
    use DecodeError::*;
    for (name, count, bytes, error) in [
        ("negative header count", 1, record(&[0, 0, 0, 1, 1, 1]), NegativeLength),
        ("more headers than bytes", 1, record(&[0, 0, 0, 1, 1, 0x7e]), NegativeLength),
        ("negative header key", 1, record(&[0, 0, 0, 1, 1, 2, 1, 1]), NegativeLength),
        ("surplus bytes in a record", 1, record(&[0, 0, 0, 1, 1, 0, 0]), BadRecordLength),
        (
            "surplus bytes behind the records",
            1,
            [record(&[0, 0, 0, 1, 1, 0]), vec![0]].concat(),
            TrailingBytes,
        ),
        ("more records than there are", 2, record(&[0, 0, 0, 1, 1, 0]), BadVarint),
        ("negative count", -1, record(&[0, 0, 0, 1, 1, 0]), BadRecordCount),
    ] {
        let bytes = batch(Attributes::DATA, count, &bytes);
        let batch = Batch::check(&bytes).unwrap();
        let last = batch.records_general(batch.records_bytes()).last().unwrap();
        assert_eq!(last.map(|_| ()), Err(error), "{name}");
    }
    let bytes = batch(Attributes::DATA, 0, &[]);
    let batch = Batch::check(&bytes).unwrap();
    assert!(batch.records_general(batch.records_bytes()).next().is_none(), "compaction leaves such");
}
