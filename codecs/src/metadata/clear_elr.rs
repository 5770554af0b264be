//! ClearElrRecord, api key 28.

use super::schema::schema;

schema! {
    /// Clears eligible leader replicas of one topic or of all.
    ClearElrRecord<'a> = 28, CLEAR_ELR_RECORD, versions 0..=0 {
        /// Empty = all topics.
        topic_name: &'a str,
    }
}
