//! The metadata records of a topic that a controller would write, as one batch.

use crate::fold::CONFIG_OF_TOPIC;
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use kraftlog_codecs::error::EncodeError;
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::metadata::{
    Array, ArrayBuf, ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord,
};
use kraftlog_codecs::uuid::Uuid;

/// A topic whose partitions have their only replica on one broker.
pub(crate) struct Topic<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: Uuid,
    pub(crate) partitions: i32,
    pub(crate) broker: i32,
    /// Log directory of the broker.
    pub(crate) directory: Uuid,
}

impl Topic<'_> {
    /// Topic, partitions and one config value as one batch of data; offset and epoch are left to the log.
    pub(crate) fn batch(&self, version: MetadataVersion, timestamp: i64) -> Result<Vec<u8>, EncodeError> {
        let replicas = ArrayBuf::<i32>::of([self.broker])?;
        let directories = ArrayBuf::<Uuid>::of([self.directory])?;
        let mut bytes = Vec::new();
        let mut batch = BatchBuilder::new(&mut bytes, BatchOptions::data(0, 0, timestamp));
        let mut put = |record: MetadataRecord<'_>, version: i16| {
            let mut value = Vec::new();
            record.encode(version, &mut value)?;
            batch.append(None, &value).expect("a topic of a test fits a batch");
            Ok::<(), EncodeError>(())
        };
        put(TopicRecord { name: self.name, topic_id: self.id, ..TopicRecord::default() }.into(), 0)?;
        let record_version = version.partition_version();
        for partition_id in 0..self.partitions {
            let partition = PartitionRecord {
                partition_id,
                topic_id: self.id,
                replicas: replicas.array(),
                isr: replicas.array(),
                leader: self.broker,
                leader_epoch: 0,
                partition_epoch: 0,
                directories: if record_version == 0 { Array::empty() } else { directories.array() },
                ..PartitionRecord::default()
            };
            put(partition.into(), record_version)?;
        }
        let config = ConfigRecord {
            resource_type: CONFIG_OF_TOPIC,
            resource_name: self.name,
            name: "retention.ms",
            value: Some("123456789"),
            ..ConfigRecord::default()
        };
        put(config.into(), 0)?;
        batch.finish();
        Ok(bytes)
    }
}
