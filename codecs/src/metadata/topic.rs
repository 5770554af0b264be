//! TopicRecord, api key 2.

use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// A topic was created. Its partitions follow as PartitionRecords.
    TopicRecord<'a> = 2, TOPIC_RECORD, versions 0..=0 {
        /// Name of the topic.
        name: &'a str,
        /// Id of the topic.
        topic_id: Uuid,
    }
}
