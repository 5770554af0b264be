//! RemoveTopicRecord, api key 9.

use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// A topic and all its partitions are removed.
    RemoveTopicRecord<'a> = 9, REMOVE_TOPIC_RECORD, versions 0..=0 {
        /// Id of the topic.
        topic_id: Uuid,
    }
}
