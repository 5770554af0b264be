//! ProducerIdsRecord, api key 15.

use super::schema::schema;

schema! {
    /// Next producer id block start.
    ProducerIdsRecord<'a> = 15, PRODUCER_IDS_RECORD, versions 0..=0 {
        /// Requesting broker; -1 in a checkpoint.
        broker_id: i32,
        /// -1 in a checkpoint.
        broker_epoch: i64 = -1,
        /// First id of the next block.
        next_producer_id: i64,
    }
}
