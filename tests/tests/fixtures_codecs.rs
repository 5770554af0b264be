//! Every batch and record that real Kafkas wrote, through our codecs and back.

use kraftlog_codecs::batch::{Batch, BatchBuilder, BatchOptions, Batches, Record, Tail};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_tests::fixtures::{Capture, ExpectedBatch, ExpectedFile, captures};
use serde_json::{Value, json};

/// Calls `check` with every file of every capture and its bytes.
fn each_file(mut check: impl FnMut(&Capture, &ExpectedFile, &[u8])) {
    let mut files = 0;
    for capture in captures() {
        let unpacked = capture.unpack();
        for expected in capture.expected() {
            let bytes = unpacked.read(&expected.name);
            assert_eq!(expected.file["size"], json!(bytes.len()), "{} {}", capture.name, expected.name);
            check(&capture, &expected, &bytes);
            files += 1;
        }
    }
    assert!(files >= 300, "only {files} files");
}

/// Calls `check` with every batch that Kafka found, as we find it.
fn each_batch(mut check: impl FnMut(&str, &ExpectedBatch, Batch<'_>)) {
    each_file(|capture, file, bytes| {
        for ((position, batch), expected) in Batches::new(bytes).zip(&file.batches) {
            let place = format!("{} {} at {position}", capture.name, file.name);
            let batch = batch.unwrap_or_else(|error| panic!("{place}: {error}"));
            check(&place, expected, batch);
        }
    });
}

fn json_of(write: impl FnOnce(&mut Vec<u8>)) -> (Value, String) {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    (serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")), text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The oracle lists unknown tags in an order of its own.
fn sorted_tags(mut tags: Vec<Value>) -> Vec<Value> {
    tags.sort_by_key(|tag| (tag["path"].to_string(), tag["tag"].as_u64()));
    tags
}

fn expected_tags(expected: &Value) -> Vec<Value> {
    sorted_tags(expected["unknownTags"].as_array().cloned().unwrap_or_default())
}

fn check_common(place: &str, record: &Record<'_>, expected: &Value) {
    let key_size = record.key.map_or(-1, |key| key.len() as i64);
    let ours = json!([record.offset, record.timestamp, key_size, record.payload().len()]);
    let kafkas =
        json!([expected["offset"], expected["timestamp"], expected["keySize"], expected["valueSize"]]);
    assert_eq!(ours, kafkas, "{place}");
}

fn check_control(place: &str, record: &Record<'_>, expected: &Value) {
    let key = record.key.unwrap_or_default();
    let decoded = ControlRecord::decode(key, record.payload())
        .unwrap_or_else(|error| panic!("{place} offset {}: {error}", record.offset));
    let place = format!("{place} offset {}: {decoded:?}", record.offset);
    assert_eq!(json!(decoded.kind().name()), expected["type"], "{place}");
    assert_eq!(json!(decoded.kind().id()), expected["typeId"], "{place}");
    let (data, text) = json_of(|out| decoded.write_json(out));
    assert_eq!(data, expected["data"], "{place}");
    assert!(text.starts_with(r#"{"version":"#), "fields are in Kafka's order: {text}");
    let mut tags = Vec::new();
    decoded.visit_unknown_tags(&mut |path, tag, data| {
        tags.push(json!({"path": path.to_string(), "tag": tag, "data": hex(data)}));
    });
    assert_eq!(sorted_tags(tags), expected_tags(expected), "{place}");
    let (mut again_key, mut again) = (Vec::new(), Vec::new());
    decoded.encode_key(&mut again_key);
    decoded.encode_value(&mut again).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!((&again_key[..], &again[..]), (key, record.payload()), "{place}");
}

fn check_metadata(place: &str, record: &Record<'_>, expected: &Value) {
    let framed = MetadataRecord::decode(record.payload())
        .unwrap_or_else(|error| panic!("{place} offset {}: {error}", record.offset));
    let place = format!("{place} offset {}", record.offset);
    assert_eq!(json!(framed.record.type_name()), expected["type"], "{place}");
    assert_eq!(json!(framed.record.api_key()), expected["typeId"], "{place}");
    assert_eq!(json!(framed.version), expected["version"], "{place}");
    let (data, _) = json_of(|out| framed.record.write_json(framed.version, out));
    assert_eq!(data, expected["data"], "{place}");
    let mut tags = Vec::new();
    framed.record.visit_unknown_tags(&mut |path, tag, data| {
        tags.push(json!({"path": path.to_string(), "tag": tag, "data": hex(data)}));
    });
    assert_eq!(sorted_tags(tags), expected_tags(expected), "{place}");
    let mut again = Vec::new();
    framed.record.encode(framed.version, &mut again).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(again, record.payload(), "{place}");
}

#[test]
fn every_batch_is_found_where_kafka_found_it_and_the_rest_is_a_tail() {
    each_file(|capture, file, bytes| {
        let place = format!("{} {}", capture.name, file.name);
        let mut batches = Batches::new(bytes);
        let good = batches.by_ref().filter(|(_, batch)| batch.is_ok()).count();
        assert_eq!(json!(good), file.end["batches"], "{place}");
        assert_eq!(json!(batches.valid_bytes()), file.end["validBytes"], "{place}");
        assert_eq!(json!(bytes.len() - batches.valid_bytes()), file.end["trailingBytes"], "{place}");
        // The one file that Kafka left unfinished is a download, cut inside a batch.
        let tail = if file.name.ends_with(".part") { Tail::Partial } else { Tail::Clean };
        assert_eq!(batches.tail(), tail, "{place}");
    });
}

#[test]
fn every_header_has_the_fields_that_kafka_read() {
    let mut position = 0;
    each_batch(|place, expected, batch| {
        let header = *batch.header();
        let kafkas = &expected.batch;
        if kafkas["position"] == 0 {
            position = 0;
        }
        for (name, ours) in [
            ("position", json!(position)),
            ("baseOffset", json!(header.base_offset)),
            ("lastOffset", json!(header.last_offset())),
            ("count", json!(header.records_count)),
            ("epoch", json!(header.leader_epoch)),
            ("size", json!(header.size())),
            ("crc", json!(header.crc)),
            ("valid", json!(batch.check_crc().is_ok())),
            ("control", json!(header.is_control())),
            ("transactional", json!(header.is_transactional())),
            ("compression", json!(header.compression().map(|codec| codec.name()).ok())),
            ("attributes", json!(header.attributes.0)),
            ("lastOffsetDelta", json!(header.last_offset_delta)),
            ("baseTimestamp", json!(header.base_timestamp)),
            ("maxTimestamp", json!(header.max_timestamp)),
            ("producerId", json!(header.producer_id)),
            ("producerEpoch", json!(header.producer_epoch)),
            ("baseSequence", json!(header.base_sequence)),
        ] {
            assert_eq!(ours, kafkas[name], "{name} of {place}");
        }
        position += header.size();
        assert_eq!(batch.bytes().get(..61), Some(&header.encode()[..]), "{place}");
        assert_eq!(batch.check_strict(), Ok(()), "{place}");
    });
}

#[test]
fn every_record_is_what_kafka_read_and_encodes_to_the_same_bytes() {
    let (mut control, mut data) = (0, 0);
    each_batch(|place, expected, batch| {
        let mut records = expected.records.iter();
        for record in batch.records().unwrap_or_else(|error| panic!("{place}: {error}")) {
            let record = record.unwrap_or_else(|error| panic!("{place}: {error}"));
            let Some(expected) = records.next() else { panic!("{place}: Kafka saw fewer records") };
            check_common(place, &record, expected);
            if batch.header().is_control() {
                check_control(place, &record, expected);
                control += 1;
            } else {
                check_metadata(place, &record, expected);
                data += 1;
            }
        }
        assert_eq!(records.next(), None, "{place}: Kafka saw more records");
    });
    assert!(control > 800 && data > 90_000, "{control} control and {data} data records");
}

#[test]
fn the_general_walk_agrees_with_the_strict_one() {
    each_batch(|place, _, batch| {
        let strict: Result<Vec<Record<'_>>, _> = batch.records().and_then(Iterator::collect);
        let general: Result<Vec<Record<'_>>, _> =
            batch.records_general(batch.records_bytes()).map(|record| record.map(|r| r.record)).collect();
        assert_eq!(strict, general, "{place}");
    });
}

#[test]
fn every_batch_is_rebuilt_byte_for_byte() {
    let (mut copied, mut encoded) = (Vec::new(), Vec::new());
    each_batch(|place, _, batch| {
        let header = batch.header();
        assert_eq!(header.base_timestamp, header.max_timestamp, "{place}: not a batch of KRaft");
        let options = BatchOptions {
            control: header.is_control(),
            ..BatchOptions::data(header.base_offset, header.leader_epoch, header.base_timestamp)
        };
        copied.clear();
        encoded.clear();
        let mut one = BatchBuilder::new(&mut copied, options);
        let mut other = BatchBuilder::new(&mut encoded, options);
        for record in batch.records().expect("checked by another test") {
            let record = record.expect("checked by another test");
            one.append(record.key, record.payload()).unwrap_or_else(|full| panic!("{place}: {full}"));
            if header.is_control() {
                let key = record.key.unwrap_or_default();
                let decoded = ControlRecord::decode(key, record.payload()).expect("checked by another test");
                other.append_control(&decoded)
            } else {
                let framed = MetadataRecord::decode(record.payload()).expect("checked by another test");
                other.append_with(None, |out| framed.record.encode(framed.version, out))
            }
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        }
        assert_eq!(one.finish(), *header, "{place}");
        assert_eq!(other.finish(), *header, "{place}");
        assert!(copied == batch.bytes() && encoded == batch.bytes(), "{place}: other bytes");
    });
}
