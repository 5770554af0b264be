//! One JSON object a line, for programs: the lines that Kafka's own classes make of the same file
//! (`file`, `batch`, `record`, `end`), and lines of kind `damage` where there is damage.

use super::content::{Content, migration_state};
use super::kind::Kind;
use super::text::{compression, size, timestamp_type};
use kraftlog_codecs::batch::{BatchHeader, GeneralRecord};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::json::{self, Object};
use kraftlog_codecs::metadata::{Framed, MetadataRecord};
use std::fmt::Write as _;

/// The first line of a file.
pub(super) fn file(out: &mut Vec<u8>, name: &str, bytes: u64, kind: Kind) {
    let mut line = begin(out, "file");
    json::put_str(line.field("name"), name);
    json::put_int(line.field("size"), bytes.cast_signed());
    let kind_name = match kind {
        Kind::Log(_) => "log",
        Kind::Checkpoint(..) | Kind::Part(..) => "checkpoint",
        Kind::Bootstrap => "bootstrap",
        Kind::Index => "index",
        Kind::TimeIndex => "timeindex",
        Kind::Foreign => "foreign",
    };
    json::put_str(line.field("type"), kind_name);
    match kind {
        Kind::Log(Some(base_offset)) => json::put_int(line.field("baseOffset"), base_offset),
        Kind::Checkpoint(end_offset, epoch) | Kind::Part(end_offset, epoch) => {
            json::put_int(line.field("endOffset"), end_offset);
            json::put_int(line.field("epoch"), epoch);
        }
        _ => {}
    }
    line.end();
    out.push(b'\n');
}

/// The line of a batch.
pub(super) fn batch(out: &mut Vec<u8>, position: u64, header: &BatchHeader, valid: bool) {
    let mut line = begin(out, "batch");
    json::put_int(line.field("baseOffset"), header.base_offset);
    json::put_int(line.field("lastOffset"), header.last_offset());
    json::put_int(line.field("count"), header.records_count);
    json::put_int(line.field("epoch"), header.leader_epoch);
    json::put_int(line.field("position"), position.cast_signed());
    json::put_int(line.field("size"), header.size() as i64);
    json::put_int(line.field("magic"), 2);
    json::put_int(line.field("crc"), header.crc);
    json::put_bool(line.field("valid"), valid);
    json::put_bool(line.field("control"), header.is_control());
    json::put_bool(line.field("transactional"), header.is_transactional());
    json::put_str(line.field("compression"), compression(header));
    json::put_str(line.field("timestampType"), timestamp_type(header));
    json::put_int(line.field("attributes"), header.attributes.0);
    json::put_int(line.field("lastOffsetDelta"), header.last_offset_delta);
    json::put_int(line.field("baseTimestamp"), header.base_timestamp);
    json::put_int(line.field("maxTimestamp"), header.max_timestamp);
    json::put_int(line.field("producerId"), header.producer_id);
    json::put_int(line.field("producerEpoch"), header.producer_epoch);
    json::put_int(line.field("baseSequence"), header.base_sequence);
    line.end();
    out.push(b'\n');
}

/// The line of a record.
pub(super) fn record(
    out: &mut Vec<u8>,
    header: &BatchHeader,
    general: &GeneralRecord<'_>,
    content: &Content<'_>,
) {
    let record = &general.record;
    let mut line = begin(out, "record");
    json::put_int(line.field("offset"), record.offset);
    json::put_int(line.field("epoch"), header.leader_epoch);
    json::put_int(line.field("timestamp"), record.timestamp);
    json::put_bool(line.field("control"), header.is_control());
    json::put_int(line.field("keySize"), size(record.key));
    json::put_int(line.field("valueSize"), size(record.value));
    match content {
        Content::Metadata(framed) => metadata(&mut line, framed),
        Content::Control(control) => control_fields(&mut line, control),
        Content::Bad(error) => {
            json::put_str(line.field("error"), &error.to_string());
            put_hex(line.field("value"), record.value.unwrap_or_default());
        }
    }
    line.end();
    out.push(b'\n');
}

fn metadata(line: &mut Object<'_>, framed: &Framed<'_>) {
    let record = &framed.record;
    json::put_str(line.field("type"), record.type_name().unwrap_or("UNKNOWN"));
    json::put_int(line.field("typeId"), record.api_key());
    json::put_int(line.field("version"), framed.version);
    if let MetadataRecord::Unknown(unknown) = record {
        return put_hex(line.field("value"), unknown.body);
    }
    record.write_json(framed.version, line.field("data"));
    if let MetadataRecord::ZkMigrationState(state) = record {
        json::put_str(line.field("zkMigrationState"), migration_state(state.zk_migration_state));
    }
    let mut tags = Tags::default();
    record.visit_unknown_tags(&mut |path, tag, data| tags.add(format_args!("{path}"), tag, data));
    tags.finish(line);
}

fn control_fields(line: &mut Object<'_>, control: &ControlRecord<'_>) {
    json::put_str(line.field("type"), control.kind().name());
    json::put_int(line.field("typeId"), control.kind().id());
    if let ControlRecord::Unknown { key, value, .. } = control {
        put_hex(line.field("key"), key);
        return put_hex(line.field("value"), value);
    }
    json::put_int(line.field("version"), 0);
    control.write_json(line.field("data"));
    let mut tags = Tags::default();
    control.visit_unknown_tags(&mut |path, tag, data| tags.add(path, tag, data));
    tags.finish(line);
}

/// The array `unknownTags`, which is there only if it has something to show.
#[derive(Default)]
struct Tags {
    items: Vec<u8>,
}

impl Tags {
    #[cold]
    fn add(&mut self, path: std::fmt::Arguments<'_>, tag: u32, data: &[u8]) {
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        let mut text = String::new();
        let _ = text.write_fmt(path);
        let mut item = Object::begin(&mut self.items);
        json::put_str(item.field("path"), &text);
        json::put_int(item.field("tag"), tag);
        put_hex(item.field("data"), data);
        item.end();
    }

    fn finish(self, line: &mut Object<'_>) {
        if !self.items.is_empty() {
            let out = line.field("unknownTags");
            out.push(b'[');
            out.extend_from_slice(&self.items);
            out.push(b']');
        }
    }
}

/// A line about bytes that are no batch, or a batch whose records cannot all be read.
pub(super) fn damage(out: &mut Vec<u8>, name: &str, position: u64, bytes: u64, error: &str) {
    let mut line = begin(out, "damage");
    json::put_str(line.field("name"), name);
    json::put_int(line.field("position"), position.cast_signed());
    json::put_int(line.field("size"), bytes.cast_signed());
    json::put_str(line.field("error"), error);
    line.end();
    out.push(b'\n');
}

/// The last line of a file.
pub(super) fn file_end(
    out: &mut Vec<u8>,
    (batches, records): (u64, u64),
    valid_bytes: u64,
    trailing_bytes: u64,
    error: Option<&str>,
) {
    let mut line = begin(out, "end");
    json::put_int(line.field("batches"), batches.cast_signed());
    json::put_int(line.field("records"), records.cast_signed());
    json::put_int(line.field("validBytes"), valid_bytes.cast_signed());
    json::put_int(line.field("trailingBytes"), trailing_bytes.cast_signed());
    if let Some(error) = error {
        json::put_str(line.field("error"), error);
    }
    line.end();
    out.push(b'\n');
}

/// The line of an index entry: its numbers, and the last offset of the log's batch if it differs.
pub(super) fn entry(out: &mut Vec<u8>, fields: &[(&str, i64)]) {
    let mut line = begin(out, "entry");
    for (name, value) in fields {
        json::put_int(line.field(name), *value);
    }
    line.end();
    out.push(b'\n');
}

#[inline]
fn begin<'o>(out: &'o mut Vec<u8>, kind: &str) -> Object<'o> {
    let mut line = Object::begin(out);
    json::put_str(line.field("kind"), kind);
    line
}

/// Writes bytes as hex digits in quotes.
pub(super) fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}
