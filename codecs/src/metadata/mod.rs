//! The records of the metadata log: every type that Kafka 4.x reads, at every version.
//!
//! A record's value is a frame (frame version 1, api key, version, as varints) and a body.
//! [`MetadataRecord::decode`] checks all of it once and gives a borrowed value: strings and bytes
//! point into the input, arrays are views that are walked where they lie. It allocates nothing.
//!
//! Types and versions beyond those here are [`MetadataRecord::Unknown`] with their bytes, and
//! unknown tagged fields stay with their record, so that what is read can always be written again.
//!
//! Stricter than Kafka's reader, never than its writer: bad UTF-8, tags out of order and tagged
//! fields whose size is wrong are refused, as are trailing bytes.

mod array;
mod schema;
#[cfg(test)]
mod tests;

use crate::cursor::{Put, Reader};
use crate::error::{DecodeError, EncodeError};
pub use array::{Array, ArrayBuf, Element, Iter};
pub use schema::{Field, TagPath, TagVisitor};

/// The only frame version that is read or written.
const FRAME_VERSION: u8 = 1;

/// A decoded record and the version that it was written at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Framed<'a> {
    /// The record.
    pub record: MetadataRecord<'a>,
    /// Its version; hand it to [`MetadataRecord::encode`] and [`MetadataRecord::write_json`].
    pub version: i16,
}

/// A record of a type or version that is not known here, as its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRecord<'a> {
    /// Kafka's number for its type.
    pub api_key: u32,
    /// Its version.
    pub version: u32,
    /// All bytes behind the frame.
    pub body: &'a [u8],
}

macro_rules! records {
    ($($module:ident: $variant:ident($record:ident) $(+ $nested:ident)*;)*) => {
        $(
            mod $module;
            pub use $module::{$record $(, $nested)*};
        )*

        /// Any metadata record.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum MetadataRecord<'a> {
            $(
                #[doc = concat!("See [`", stringify!($record), "`].")]
                $variant($record<'a>),
            )*
            /// A type or version that is not known here.
            Unknown(UnknownRecord<'a>),
        }

        /// One function a type, kept apart, so that the fields go from registers straight to where the
        /// caller of [`MetadataRecord::decode`] wants them; inlined into one another they are copied.
        #[allow(non_snake_case, reason = "named as the variants they make")]
        mod decode_as {
            use super::*;
            $(
                #[inline(never)]
                pub(super) fn $variant(body: Reader<'_>, version: i16) -> Result<Framed<'_>, DecodeError> {
                    let make = |record| Framed { record: MetadataRecord::$variant(record), version };
                    match $record::read_untagged(body, version, make)? {
                        Some(framed) => Ok(framed),
                        None => $record::read_whole(body, version).map(make),
                    }
                }
            )*
        }

        /// Number, name and highest version of each type known, in ascending order of numbers.
        pub const RECORD_TYPES: &[(i16, &str, i16)] =
            &[$(($record::API_KEY, $record::TYPE_NAME, $record::HIGHEST_VERSION),)*];

        impl<'a> MetadataRecord<'a> {
            #[inline]
            fn decode_body(
                api_key: u32,
                version: u32,
                reader: Reader<'a>,
            ) -> Result<Framed<'a>, DecodeError> {
                // Both were checked to be at most 32,767.
                let (Ok(key), Ok(version)) = (i16::try_from(api_key), i16::try_from(version)) else {
                    return Err(DecodeError::BadRecordType);
                };
                match key {
                    $($record::API_KEY if version <= $record::HIGHEST_VERSION => {
                        decode_as::$variant(reader, version)
                    })*
                    _ => Ok(unknown(api_key, version, reader.rest())),
                }
            }

            /// Kafka's number for this type of record.
            #[inline]
            pub fn api_key(&self) -> u32 {
                match self {
                    $(MetadataRecord::$variant(_) => const { $record::API_KEY.cast_unsigned() as u32 },)*
                    MetadataRecord::Unknown(unknown) => unknown.api_key,
                }
            }

            /// Kafka's name for this type of record (`REGISTER_BROKER_RECORD`), `None` for a record of
            /// unknown type; one of a known type at an unknown version has its name.
            #[inline]
            pub fn type_name(&self) -> Option<&'static str> {
                match self {
                    $(MetadataRecord::$variant(_) => Some($record::TYPE_NAME),)*
                    MetadataRecord::Unknown(unknown) => RECORD_TYPES
                        .iter()
                        .find(|(key, _, _)| u32::try_from(*key) == Ok(unknown.api_key))
                        .map(|(_, name, _)| *name),
                }
            }

            /// The highest version known of this type of record; of an unknown one its own.
            #[inline]
            pub fn highest_version(&self) -> i16 {
                match self {
                    $(MetadataRecord::$variant(_) => $record::HIGHEST_VERSION,)*
                    MetadataRecord::Unknown(unknown) => i16::try_from(unknown.version).unwrap_or(i16::MAX),
                }
            }

            fn write_body(&self, version: i16, out: &mut impl Put) -> Result<(), EncodeError> {
                match self {
                    $(MetadataRecord::$variant(record) => {
                        if version > $record::HIGHEST_VERSION {
                            return Err(EncodeError::UnsupportedVersion {
                                record: stringify!($record),
                                version,
                            });
                        }
                        record.write_body(version, out)
                    })*
                    MetadataRecord::Unknown(unknown) => {
                        if i16::try_from(unknown.version) != Ok(version) {
                            return Err(EncodeError::UnsupportedVersion { record: "unknown record", version });
                        }
                        out.put(unknown.body);
                        Ok(())
                    }
                }
            }

            /// Appends the content as Kafka's JSON converter for this record and `version` prints it.
            /// An unknown record, for which Kafka has none, is an object with its body in base64.
            #[inline]
            pub fn write_json(&self, version: i16, out: &mut Vec<u8>) {
                match self {
                    $(MetadataRecord::$variant(record) => record.write_json(version, out),)*
                    MetadataRecord::Unknown(unknown) => {
                        let mut object = crate::json::Object::begin(out);
                        crate::json::put_bytes(object.field("unknown"), unknown.body);
                        object.end();
                    }
                }
            }

            /// Shows every tagged field that the schemas do not know: those of the record itself first,
            /// then those of nested structs, in the order of their fields.
            #[inline]
            pub fn visit_unknown_tags(&self, visit: &mut TagVisitor<'_>) {
                match self {
                    $(MetadataRecord::$variant(record) => {
                        record.visit_unknown_tags(&TagPath::Record, visit);
                    })*
                    MetadataRecord::Unknown(_) => {}
                }
            }
        }

        $(
            impl<'a> From<$record<'a>> for MetadataRecord<'a> {
                #[inline]
                fn from(record: $record<'a>) -> Self {
                    MetadataRecord::$variant(record)
                }
            }
        )*

        #[cfg(test)]
        fn random_body(default: &MetadataRecord<'_>, dice: &mut tests::Dice, version: i16, out: &mut Vec<u8>) {
            match default {
                $(MetadataRecord::$variant(_) => $record::random_body(dice, version, out),)*
                MetadataRecord::Unknown(_) => {}
            }
        }

        #[cfg(test)]
        fn all_defaults() -> Vec<MetadataRecord<'static>> {
            vec![$(MetadataRecord::$variant($record::default()),)*]
        }
    };
}

records! {
    register_broker: RegisterBroker(RegisterBrokerRecord) + BrokerEndpoint + BrokerFeature;
    unregister_broker: UnregisterBroker(UnregisterBrokerRecord);
    topic: Topic(TopicRecord);
    partition: Partition(PartitionRecord);
    config: Config(ConfigRecord);
    partition_change: PartitionChange(PartitionChangeRecord);
    fence_broker: FenceBroker(FenceBrokerRecord);
    unfence_broker: UnfenceBroker(UnfenceBrokerRecord);
    remove_topic: RemoveTopic(RemoveTopicRecord);
    delegation_token: DelegationToken(DelegationTokenRecord);
    user_scram_credential: UserScramCredential(UserScramCredentialRecord);
    feature_level: FeatureLevel(FeatureLevelRecord);
    client_quota: ClientQuota(ClientQuotaRecord) + EntityData;
    producer_ids: ProducerIds(ProducerIdsRecord);
    broker_registration_change: BrokerRegistrationChange(BrokerRegistrationChangeRecord);
    access_control_entry: AccessControlEntry(AccessControlEntryRecord);
    remove_access_control_entry: RemoveAccessControlEntry(RemoveAccessControlEntryRecord);
    no_op: NoOp(NoOpRecord);
    zk_migration_state: ZkMigrationState(ZkMigrationStateRecord);
    remove_user_scram_credential: RemoveUserScramCredential(RemoveUserScramCredentialRecord);
    begin_transaction: BeginTransaction(BeginTransactionRecord);
    end_transaction: EndTransaction(EndTransactionRecord);
    abort_transaction: AbortTransaction(AbortTransactionRecord);
    remove_delegation_token: RemoveDelegationToken(RemoveDelegationTokenRecord);
    register_controller: RegisterController(RegisterControllerRecord) + ControllerEndpoint + ControllerFeature;
    clear_elr: ClearElr(ClearElrRecord);
    unregister_controller: UnregisterController(UnregisterControllerRecord);
}

impl<'a> MetadataRecord<'a> {
    /// Decodes a record's value, frame and body, which must fill `value`.
    ///
    /// # Errors
    /// If the frame is not Kafka's, or the body does not follow the schema of its type and version.
    #[inline]
    pub fn decode(value: &'a [u8]) -> Result<Framed<'a>, DecodeError> {
        match value {
            // Every frame so far: three varints of one byte.
            [FRAME_VERSION, api_key @ ..0x80, version @ ..0x80, body @ ..] => {
                MetadataRecord::decode_body(u32::from(*api_key), u32::from(*version), Reader::new(body))
            }
            _ => decode_long_frame(value),
        }
    }

    /// Appends frame and body, as Kafka writes this record at `version`.
    ///
    /// # Errors
    /// [`EncodeError::UnsupportedVersion`] if the type has no such version,
    /// [`EncodeError::UnsupportedField`] if a field that the version lacks has a value other than its
    /// default, others if a value is longer than the format can say. What was appended before the
    /// error stays in `out`.
    pub fn encode(&self, version: i16, out: &mut impl Put) -> Result<(), EncodeError> {
        let Ok(unsigned) = u32::try_from(version) else {
            return Err(EncodeError::UnsupportedVersion { record: "metadata record", version });
        };
        out.put_u8(FRAME_VERSION);
        out.put_uvarint(self.api_key());
        out.put_uvarint(unsigned);
        self.write_body(version, out)
    }
}

/// A frame with a varint of more than one byte, or a bad one.
#[cold]
#[inline(never)]
fn decode_long_frame(value: &[u8]) -> Result<Framed<'_>, DecodeError> {
    if value.is_empty() {
        return Err(DecodeError::BadValue);
    }
    let mut reader = Reader::new(value);
    if reader.uvarint()? != u32::from(FRAME_VERSION) {
        return Err(DecodeError::BadFrameVersion);
    }
    let (api_key, version) = (reader.uvarint()?, reader.uvarint()?);
    if api_key > 0x7fff || version > 0x7fff {
        return Err(DecodeError::BadRecordType);
    }
    MetadataRecord::decode_body(api_key, version, reader)
}

#[cold]
fn unknown(api_key: u32, version: i16, body: &[u8]) -> Framed<'_> {
    let unknown = UnknownRecord { api_key, version: u32::from(version.cast_unsigned()), body };
    Framed { record: MetadataRecord::Unknown(unknown), version }
}
