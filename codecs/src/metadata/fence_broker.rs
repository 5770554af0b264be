//! FenceBrokerRecord, api key 7.

use super::schema::schema;

schema! {
    /// Deprecated. Fences a broker (before MV 6). 4.x still reads it.
    FenceBrokerRecord<'a> = 7, FENCE_BROKER_RECORD, versions 0..=0 {
        /// Node id of the broker.
        id: i32,
        /// Epoch of the registration.
        epoch: i64,
    }
}
