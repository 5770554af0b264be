//! ClientQuotaRecord, api key 14.

use super::array::Array;
use super::schema::schema;

schema! {
    /// Sets or removes one client quota value of one entity.
    ClientQuotaRecord<'a> = 14, CLIENT_QUOTA_RECORD, versions 0..=0 {
        /// The parts of the entity that the quota is for.
        entity: Array<'a, EntityData<'a>>,
        /// Name of the quota, e.g. `producer_byte_rate`.
        key: &'a str,
        /// Value; without meaning if `remove` is true.
        value: f64,
        /// True removes the value.
        remove: bool,
    }
}

schema! {
    /// One part of the entity that a quota is for.
    EntityData<'a> {
        /// `user`, `client-id` or `ip`.
        entity_type: &'a str,
        /// Null = the default entity.
        entity_name: Option<&'a str> = Some(""),
    }
}
