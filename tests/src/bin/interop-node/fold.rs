//! The records that a snapshot of a replayed log may hold, folded as little as is sound.
//!
//! A snapshot is replayed as a log is, so the records before it are a snapshot of it: those of the snapshot
//! before, then those of the log, less what a snapshot must not have: no-ops, markers of transactions, all of
//! an aborted one, and all of a removed topic (Kafka's image keeps the configs of a topic that one snapshot
//! both creates and removes). `tests/interop/run` holds this to Kafka's own image of the log.

use kraftlog_codecs::error::DecodeError;
use kraftlog_codecs::features::{METADATA_VERSION, MetadataVersion};
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_codecs::uuid::Uuid;

/// `ConfigResource.Type.TOPIC`.
pub(crate) const CONFIG_OF_TOPIC: i8 = 2;

/// Values of records, frame included, in the order of replay.
#[derive(Default)]
pub(crate) struct Fold {
    values: Vec<Vec<u8>>,
    /// Values of the open transaction.
    transaction: Option<Vec<Vec<u8>>>,
}

impl Fold {
    /// Replays one record.
    pub(crate) fn replay(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        match MetadataRecord::decode(value)?.record {
            MetadataRecord::NoOp(_) => {}
            MetadataRecord::BeginTransaction(_) => self.transaction = Some(Vec::new()),
            MetadataRecord::AbortTransaction(_) => self.transaction = None,
            MetadataRecord::EndTransaction(_) => {
                for value in self.transaction.take().unwrap_or_default() {
                    self.apply(value)?;
                }
            }
            _ => match &mut self.transaction {
                Some(values) => values.push(value.to_vec()),
                None => self.apply(value.to_vec())?,
            },
        }
        Ok(())
    }

    fn apply(&mut self, value: Vec<u8>) -> Result<(), DecodeError> {
        match MetadataRecord::decode(&value)?.record {
            MetadataRecord::RemoveTopic(removed) => self.remove_topic(removed.topic_id),
            _ => self.values.push(value),
        }
        Ok(())
    }

    fn remove_topic(&mut self, id: Uuid) {
        let name = self.records().find_map(|record| match record {
            MetadataRecord::Topic(topic) if topic.topic_id == id => Some(topic.name.to_string()),
            _ => None,
        });
        self.values.retain(|value| match MetadataRecord::decode(value).map(|framed| framed.record) {
            Ok(MetadataRecord::Topic(topic)) => topic.topic_id != id,
            Ok(MetadataRecord::Partition(partition)) => partition.topic_id != id,
            Ok(MetadataRecord::PartitionChange(change)) => change.topic_id != id,
            Ok(MetadataRecord::Config(config)) => {
                config.resource_type != CONFIG_OF_TOPIC || Some(config.resource_name) != name.as_deref()
            }
            _ => true,
        });
    }

    fn records(&self) -> impl DoubleEndedIterator<Item = MetadataRecord<'_>> {
        self.values.iter().filter_map(|value| Some(MetadataRecord::decode(value).ok()?.record))
    }

    /// What a snapshot of the state now would hold.
    pub(crate) fn values(&self) -> &[Vec<u8>] {
        assert!(self.transaction.is_none(), "a snapshot cannot be cut in the middle of a transaction");
        &self.values
    }

    /// The finalized metadata.version, which says at which versions records are written.
    pub(crate) fn metadata_version(&self) -> Option<MetadataVersion> {
        self.records().rev().find_map(|record| match record {
            MetadataRecord::FeatureLevel(feature) if feature.name == METADATA_VERSION => {
                Some(MetadataVersion(feature.feature_level))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kraftlog_codecs::metadata::{
        AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord,
        FeatureLevelRecord, NoOpRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
    };

    fn value(record: impl Into<MetadataRecord<'static>>) -> Vec<u8> {
        let mut out = Vec::new();
        record.into().encode(0, &mut out).expect("encodes");
        out
    }

    fn feature(level: i16) -> Vec<u8> {
        value(FeatureLevelRecord {
            name: "metadata.version",
            feature_level: level,
            ..FeatureLevelRecord::default()
        })
    }

    #[test]
    fn a_removed_topic_leaves_nothing_in_a_snapshot() {
        let (kept, removed) = (Uuid::from_halves(1, 1), Uuid::from_halves(2, 2));
        let topic = |name, topic_id| value(TopicRecord { name, topic_id, ..TopicRecord::default() });
        let config = |resource_name| {
            let config =
                ConfigRecord { resource_type: CONFIG_OF_TOPIC, resource_name, ..ConfigRecord::default() };
            value(config)
        };
        let mut fold = Fold::default();
        for record in [topic("kept", kept), config("kept"), topic("removed", removed), config("removed")] {
            fold.replay(&record).expect("replays");
        }
        let partition = PartitionRecord { partition_id: 0, topic_id: removed, ..PartitionRecord::default() };
        fold.replay(&value(partition)).expect("replays");
        fold.replay(&value(RemoveTopicRecord { topic_id: removed, ..RemoveTopicRecord::default() }))
            .expect("replays");
        assert_eq!(fold.values(), [topic("kept", kept), config("kept")]);
    }

    #[test]
    fn a_snapshot_has_no_markers_no_no_ops_and_nothing_of_an_aborted_transaction() {
        let mut fold = Fold::default();
        for record in [
            value(BeginTransactionRecord::default()),
            feature(30),
            value(EndTransactionRecord::default()),
            value(NoOpRecord::default()),
            value(BeginTransactionRecord::default()),
            feature(31),
            value(AbortTransactionRecord::default()),
        ] {
            fold.replay(&record).expect("replays");
        }
        assert_eq!(fold.values(), [feature(30)]);
        assert_eq!(fold.metadata_version(), Some(MetadataVersion(30)));
    }
}
