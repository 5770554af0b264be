//! UnfenceBrokerRecord, api key 8.

use super::schema::schema;

schema! {
    /// Deprecated. Unfences a broker (before MV 6). 4.x still reads it.
    UnfenceBrokerRecord<'a> = 8, UNFENCE_BROKER_RECORD, versions 0..=0 {
        /// Node id of the broker.
        id: i32,
        /// Epoch of the registration.
        epoch: i64,
    }
}
