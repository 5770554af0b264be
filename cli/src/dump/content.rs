//! What a record holds.

use kraftlog_codecs::batch::{BatchHeader, Record};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::error::DecodeError;
use kraftlog_codecs::metadata::{Framed, MetadataRecord};

/// A record's decoded value.
pub(super) enum Content<'a> {
    /// A metadata record, also one of unknown type or version.
    Metadata(Framed<'a>),
    /// A control record, also one of unknown type.
    Control(ControlRecord<'a>),
    /// A value that breaks the format.
    Bad(DecodeError),
}

impl<'a> Content<'a> {
    #[inline]
    pub(super) fn of(header: &BatchHeader, record: &Record<'a>) -> Content<'a> {
        let value = record.value.unwrap_or_default();
        if header.is_control() {
            return match ControlRecord::decode(record.key.unwrap_or_default(), value) {
                Ok(control) => Content::Control(control),
                Err(error) => Content::Bad(error),
            };
        }
        match MetadataRecord::decode(value) {
            Ok(framed) => Content::Metadata(framed),
            Err(error) => Content::Bad(error),
        }
    }
}

/// Kafka's name of a state of the migration from ZooKeeper (`ZkMigrationState`).
pub(super) fn migration_state(state: i8) -> &'static str {
    match state {
        0 => "NONE",
        1 => "MIGRATION",
        2 => "PRE_MIGRATION",
        3 => "POST_MIGRATION",
        4 => "ZK",
        _ => "unknown state",
    }
}
