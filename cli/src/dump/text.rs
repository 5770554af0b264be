//! Batches and records as kafka-dump-log prints them with its metadata decoder, line for line.
//!
//! Formatted by hand, because formatting is where the time of a dump goes.

use super::content::{Content, migration_state};
use kraftlog_codecs::batch::{BatchHeader, GeneralRecord};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::json;
use kraftlog_codecs::metadata::MetadataRecord;

pub(super) fn timestamp_type(header: &BatchHeader) -> &'static str {
    if header.attributes.is_log_append_time() { "LogAppendTime" } else { "CreateTime" }
}

pub(super) fn compression(header: &BatchHeader) -> &'static str {
    header.compression().map_or("unknown", |compression| compression.name())
}

/// Writes text parts and integers, one after the other.
macro_rules! put {
    ($out:expr, $($part:expr),* $(,)?) => {{ $(Part::put($part, $out);)* }};
}

trait Part {
    fn put(self, out: &mut Vec<u8>);
}

impl Part for &str {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Part for $ty {
            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                json::put_int(out, self);
            }
        }
    )*};
}

integers!(i16 i32 i64 u32);

impl Part for bool {
    fn put(self, out: &mut Vec<u8>) {
        json::put_bool(out, self);
    }
}

/// The line of a batch.
pub(super) fn batch(out: &mut Vec<u8>, position: u64, header: &BatchHeader, valid: bool) {
    let last_sequence = match header.base_sequence {
        -1 => -1,
        // Sequences wrap to 0 behind the largest.
        base => ((i64::from(base) + i64::from(header.last_offset_delta)) % (1 << 31)) as i32,
    };
    put!(out, "baseOffset: ", header.base_offset, " lastOffset: ", header.last_offset());
    put!(out, " count: ", header.records_count, " baseSequence: ", header.base_sequence);
    put!(out, " lastSequence: ", last_sequence, " producerId: ", header.producer_id);
    put!(out, " producerEpoch: ", header.producer_epoch, " partitionLeaderEpoch: ", header.leader_epoch);
    put!(out, " isTransactional: ", header.is_transactional(), " isControl: ", header.is_control());
    put!(out, " deleteHorizonMs: ");
    if header.attributes.has_delete_horizon() {
        put!(out, "OptionalLong[", header.base_timestamp, "]");
    } else {
        put!(out, "OptionalLong.empty");
    }
    put!(out, " position: ", position.cast_signed(), " ", timestamp_type(header), ": ", header.max_timestamp);
    put!(out, " size: ", header.size() as i64, " magic: 2 compresscodec: ", compression(header));
    put!(out, " crc: ", header.crc, " isvalid: ", valid, "\n");
}

/// The line of a record.
#[inline]
pub(super) fn record(
    out: &mut Vec<u8>,
    header: &BatchHeader,
    general: &GeneralRecord<'_>,
    content: &Content<'_>,
) {
    let record = &general.record;
    let sequence = match header.base_sequence {
        -1 => -1,
        base => ((i64::from(base) + record.offset - header.base_offset) % (1 << 31)) as i32,
    };
    put!(out, "| offset: ", record.offset, " ", timestamp_type(header), ": ", record.timestamp);
    put!(out, " keySize: ", size(record.key), " valueSize: ", size(record.value), " sequence: ", sequence);
    put!(out, " headerKeys: [");
    for (index, (key, _)) in general.headers.enumerate() {
        put!(out, if index == 0 { "" } else { "," }, &*String::from_utf8_lossy(key));
    }
    put!(out, "]");
    match content {
        Content::Metadata(framed) => {
            put!(out, " payload: ");
            framed_json(out, framed.record, framed.version);
        }
        Content::Control(control) => control_text(out, control),
        Content::Bad(error) => {
            put!(out, " payload: Error at ", record.offset, ", skipping. ", &*error.to_string());
            put!(out, "; value ");
            super::json::put_hex(out, record.value.unwrap_or_default());
        }
    }
    put!(out, "\n");
}

#[inline]
pub(super) fn size(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| bytes.len() as i64)
}

#[inline]
fn framed_json(out: &mut Vec<u8>, record: MetadataRecord<'_>, version: i16) {
    if let MetadataRecord::Unknown(unknown) = &record {
        put!(out, "{\"type\":");
        match record.type_name() {
            Some(name) => put!(out, "\"", name, "\""),
            None => put!(out, unknown.api_key),
        }
        put!(out, ",\"version\":", unknown.version, ",\"hex\":");
        super::json::put_hex(out, unknown.body);
        put!(out, "} (needs a newer kraftlog)");
        return;
    }
    put!(
        out,
        "{\"type\":\"",
        record.type_name().unwrap_or_default(),
        "\",\"version\":",
        version,
        ",\"data\":"
    );
    record.write_json(version, out);
    put!(out, "}");
    if let MetadataRecord::ZkMigrationState(state) = &record {
        put!(out, " (", migration_state(state.zk_migration_state), ")");
    }
}

fn control_text(out: &mut Vec<u8>, control: &ControlRecord<'_>) {
    match control {
        ControlRecord::LeaderChange(_) => put!(out, " LeaderChange: "),
        ControlRecord::SnapshotHeader(_) => put!(out, " SnapshotHeader "),
        ControlRecord::SnapshotFooter(_) => put!(out, " SnapshotFooter "),
        ControlRecord::KRaftVersion(_) => put!(out, " KRaftVersion "),
        ControlRecord::Voters(_) => put!(out, " KRaftVoters "),
        ControlRecord::Abort(marker) | ControlRecord::Commit(marker) => {
            put!(out, " endTxnMarker: ", control.kind().name());
            return put!(out, " coordinatorEpoch: ", marker.coordinator_epoch);
        }
        ControlRecord::Unknown { type_id, value, .. } => {
            put!(out, " control type ", *type_id, " value ");
            return super::json::put_hex(out, value);
        }
        _ => put!(out, " ", control.kind().name(), " "),
    }
    control.write_json(out);
}
