//! Control records: what KRaft writes beside metadata, one key and one message each.
//!
//! Messages are read and written at schema version 0, the only one that any Kafka uses. Their
//! leading `version` field is plain data to Kafka and is kept as read. Unknown tagged fields are
//! kept bit for bit, unknown types with all their bytes. Bytes behind a message, which Kafka
//! ignores, are refused.
//!
//! Nothing here allocates, except that a voter set is owned.

mod leader_change;
mod voters;

pub use leader_change::{LeaderChange, LeaderVoter, LeaderVoters};
pub use voters::{Endpoint, Voter, Voters};

use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
use crate::json::{self, Object};
use crate::tagged::{self, UnknownTags};
use std::fmt;

/// Called with the place of an unknown tagged field (`voters[0].endpoints[1]`, empty for the
/// message itself), its tag and its data.
pub type ControlTagVisitor<'v> = dyn FnMut(fmt::Arguments<'_>, u32, &[u8]) + 'v;

/// The kinds of control records (`ControlRecordType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlType {
    /// A producer's transaction was aborted; not in the metadata log.
    Abort,
    /// A producer's transaction was committed; not in the metadata log.
    Commit,
    /// A leader began its epoch.
    LeaderChange,
    /// A checkpoint begins.
    SnapshotHeader,
    /// A checkpoint ends.
    SnapshotFooter,
    /// The level of kraft.version changed.
    KRaftVersion,
    /// The voter set changed.
    KRaftVoters,
    /// A type that is not known here.
    Unknown(i16),
}

impl ControlType {
    /// The type with this number.
    pub const fn from_id(id: i16) -> ControlType {
        match id {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            2 => ControlType::LeaderChange,
            3 => ControlType::SnapshotHeader,
            4 => ControlType::SnapshotFooter,
            5 => ControlType::KRaftVersion,
            6 => ControlType::KRaftVoters,
            other => ControlType::Unknown(other),
        }
    }

    /// Kafka's number for the type.
    pub const fn id(self) -> i16 {
        match self {
            ControlType::Abort => 0,
            ControlType::Commit => 1,
            ControlType::LeaderChange => 2,
            ControlType::SnapshotHeader => 3,
            ControlType::SnapshotFooter => 4,
            ControlType::KRaftVersion => 5,
            ControlType::KRaftVoters => 6,
            ControlType::Unknown(id) => id,
        }
    }

    /// Kafka's name for the type.
    pub const fn name(self) -> &'static str {
        match self {
            ControlType::Abort => "ABORT",
            ControlType::Commit => "COMMIT",
            ControlType::LeaderChange => "LEADER_CHANGE",
            ControlType::SnapshotHeader => "SNAPSHOT_HEADER",
            ControlType::SnapshotFooter => "SNAPSHOT_FOOTER",
            ControlType::KRaftVersion => "KRAFT_VERSION",
            ControlType::KRaftVoters => "KRAFT_VOTERS",
            ControlType::Unknown(_) => "UNKNOWN",
        }
    }
}

/// The key of a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlKey {
    /// Version of the key, 0 so far; a newer one begins with the same fields.
    pub version: i16,
    /// What the value is.
    pub kind: ControlType,
}

impl ControlKey {
    /// Reads a key. As in Kafka, bytes behind the fields of version 0 are ignored.
    ///
    /// # Errors
    /// [`DecodeError::BadKey`] below four bytes, [`DecodeError::BadFieldValue`] if the version is
    /// negative.
    #[inline]
    pub fn decode(key: &[u8]) -> Result<ControlKey, DecodeError> {
        let mut reader = Reader::new(key);
        let (Ok(version), Ok(id)) = (reader.i16(), reader.i16()) else { return Err(DecodeError::BadKey) };
        if version < 0 {
            return Err(DecodeError::BadFieldValue);
        }
        Ok(ControlKey { version, kind: ControlType::from_id(id) })
    }
}

/// First record of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotHeader<'a> {
    /// Written 0.
    pub version: i16,
    /// Append time of the last log record that the checkpoint covers, in milliseconds.
    pub last_contained_log_timestamp: i64,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTags<'a>,
}

/// Last record of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotFooter<'a> {
    /// Written 0.
    pub version: i16,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTags<'a>,
}

/// A new level of kraft.version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KRaftVersion<'a> {
    /// Written 0.
    pub version: i16,
    /// The level. Kafka knows 0 and 1; any other is for the reader above to refuse.
    pub kraft_version: i16,
    /// Tagged fields that are not known here.
    pub unknown_tags: UnknownTags<'a>,
}

/// End of a producer's transaction; in data partitions only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// Version of the value, 0.
    pub version: i16,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
}

/// A control record of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlRecord<'a> {
    /// A leader began its epoch.
    LeaderChange(LeaderChange<'a>),
    /// A checkpoint begins.
    SnapshotHeader(SnapshotHeader<'a>),
    /// A checkpoint ends.
    SnapshotFooter(SnapshotFooter<'a>),
    /// The level of kraft.version changed.
    KRaftVersion(KRaftVersion<'a>),
    /// The voter set changed.
    Voters(Voters),
    /// A producer's transaction was aborted.
    Abort(EndTxnMarker),
    /// A producer's transaction was committed.
    Commit(EndTxnMarker),
    /// A type that is not known here.
    Unknown {
        /// Its number.
        type_id: i16,
        /// The whole key.
        key: &'a [u8],
        /// The whole value.
        value: &'a [u8],
    },
}

impl<'a> ControlRecord<'a> {
    /// Decodes a record of a control batch. Only a voter set allocates.
    ///
    /// # Errors
    /// If the key is none, or the value is not the message that the key names.
    pub fn decode(key: &'a [u8], value: &'a [u8]) -> Result<ControlRecord<'a>, DecodeError> {
        let mut reader = Reader::new(value);
        let r = &mut reader;
        let record = match ControlKey::decode(key)?.kind {
            ControlType::LeaderChange => ControlRecord::LeaderChange(LeaderChange::read(r)?),
            ControlType::SnapshotHeader => ControlRecord::SnapshotHeader(SnapshotHeader {
                version: r.i16()?,
                last_contained_log_timestamp: r.i64()?,
                unknown_tags: tagged::read_unknown(r)?,
            }),
            ControlType::SnapshotFooter => ControlRecord::SnapshotFooter(SnapshotFooter {
                version: r.i16()?,
                unknown_tags: tagged::read_unknown(r)?,
            }),
            ControlType::KRaftVersion => ControlRecord::KRaftVersion(KRaftVersion {
                version: r.i16()?,
                kraft_version: r.i16()?,
                unknown_tags: tagged::read_unknown(r)?,
            }),
            ControlType::KRaftVoters => ControlRecord::Voters(Voters::read(r)?),
            ControlType::Abort => ControlRecord::Abort(EndTxnMarker::read(r)?),
            ControlType::Commit => ControlRecord::Commit(EndTxnMarker::read(r)?),
            ControlType::Unknown(type_id) => return Ok(ControlRecord::Unknown { type_id, key, value }),
        };
        if reader.is_empty() { Ok(record) } else { Err(DecodeError::TrailingBytes) }
    }

    /// What kind of record it is.
    pub fn kind(&self) -> ControlType {
        match self {
            ControlRecord::LeaderChange(_) => ControlType::LeaderChange,
            ControlRecord::SnapshotHeader(_) => ControlType::SnapshotHeader,
            ControlRecord::SnapshotFooter(_) => ControlType::SnapshotFooter,
            ControlRecord::KRaftVersion(_) => ControlType::KRaftVersion,
            ControlRecord::Voters(_) => ControlType::KRaftVoters,
            ControlRecord::Abort(_) => ControlType::Abort,
            ControlRecord::Commit(_) => ControlType::Commit,
            ControlRecord::Unknown { type_id, .. } => ControlType::Unknown(*type_id),
        }
    }

    /// Appends the record's key.
    pub fn encode_key(&self, out: &mut impl Put) {
        match self {
            ControlRecord::Unknown { key, .. } => out.put(key),
            known => {
                out.put_i16(0);
                out.put_i16(known.kind().id());
            }
        }
    }

    /// Appends the record's value.
    ///
    /// # Errors
    /// If a string or array is longer than the format allows.
    pub fn encode_value(&self, out: &mut impl Put) -> Result<(), EncodeError> {
        match self {
            ControlRecord::LeaderChange(message) => message.write(out)?,
            ControlRecord::SnapshotHeader(message) => {
                out.put_i16(message.version);
                out.put_i64(message.last_contained_log_timestamp);
                tagged::put_section(out, &message.unknown_tags);
            }
            ControlRecord::SnapshotFooter(message) => {
                out.put_i16(message.version);
                tagged::put_section(out, &message.unknown_tags);
            }
            ControlRecord::KRaftVersion(message) => {
                out.put_i16(message.version);
                out.put_i16(message.kraft_version);
                tagged::put_section(out, &message.unknown_tags);
            }
            ControlRecord::Voters(message) => message.write(out)?,
            ControlRecord::Abort(marker) | ControlRecord::Commit(marker) => {
                out.put_i16(marker.version);
                out.put_i32(marker.coordinator_epoch);
            }
            ControlRecord::Unknown { value, .. } => out.put(value),
        }
        Ok(())
    }

    /// Appends the message as Kafka's JSON converters print it at schema version 0. Of an unknown
    /// type, key and value are given in base64.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        match self {
            ControlRecord::LeaderChange(message) => message.json(&mut object),
            ControlRecord::SnapshotHeader(message) => {
                json::put_int(object.field("version"), message.version);
                json::put_int(
                    object.field("lastContainedLogTimestamp"),
                    message.last_contained_log_timestamp,
                );
            }
            ControlRecord::SnapshotFooter(message) => {
                json::put_int(object.field("version"), message.version);
            }
            ControlRecord::KRaftVersion(message) => {
                json::put_int(object.field("version"), message.version);
                json::put_int(object.field("kRaftVersion"), message.kraft_version);
            }
            ControlRecord::Voters(message) => message.json(&mut object),
            ControlRecord::Abort(marker) | ControlRecord::Commit(marker) => {
                json::put_int(object.field("coordinatorEpoch"), marker.coordinator_epoch);
            }
            ControlRecord::Unknown { key, value, .. } => {
                json::put_bytes(object.field("key"), key);
                json::put_bytes(object.field("value"), value);
            }
        }
        object.end();
    }

    /// Shows every tagged field that is not known here: those of a struct before those of the
    /// structs inside.
    pub fn visit_unknown_tags(&self, visit: &mut ControlTagVisitor<'_>) {
        match self {
            ControlRecord::LeaderChange(message) => message.visit_unknown_tags(visit),
            ControlRecord::SnapshotHeader(message) => show(format_args!(""), &message.unknown_tags, visit),
            ControlRecord::SnapshotFooter(message) => show(format_args!(""), &message.unknown_tags, visit),
            ControlRecord::KRaftVersion(message) => show(format_args!(""), &message.unknown_tags, visit),
            ControlRecord::Voters(message) => message.visit_unknown_tags(visit),
            ControlRecord::Abort(_) | ControlRecord::Commit(_) | ControlRecord::Unknown { .. } => {}
        }
    }
}

impl EndTxnMarker {
    fn read(reader: &mut Reader<'_>) -> Result<EndTxnMarker, DecodeError> {
        Ok(EndTxnMarker { version: reader.i16()?, coordinator_epoch: reader.i32()? })
    }
}

fn show(path: fmt::Arguments<'_>, tags: &UnknownTags<'_>, visit: &mut ControlTagVisitor<'_>) {
    for (tag, data) in tags {
        visit(path, tag, data);
    }
}

#[cfg(test)]
mod tests;
