//! ConfigRecord, api key 4.

use super::schema::schema;

schema! {
    /// Sets or deletes one dynamic configuration value.
    ConfigRecord<'a> = 4, CONFIG_RECORD, versions 0..=0 {
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8,
        /// Name of the resource; empty = default of all brokers.
        resource_name: &'a str,
        /// Key of the configuration.
        name: &'a str,
        /// Null = delete the key.
        value: Option<&'a str> = Some(""),
    }
}
