//! UnregisterBrokerRecord, api key 1.

use super::schema::schema;

schema! {
    /// A broker registration is removed.
    UnregisterBrokerRecord<'a> = 1, UNREGISTER_BROKER_RECORD, versions 0..=0 {
        /// Node id of the broker.
        broker_id: i32,
        /// Epoch of the registration to remove.
        broker_epoch: i64,
    }
}
