//! RegisterBrokerRecord, api key 0.

use super::array::Array;
use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// A broker joined (or re-joined) the cluster: its whole registration.
    RegisterBrokerRecord<'a> = 0, REGISTER_BROKER_RECORD, versions 0..=4 {
        /// Node id.
        broker_id: i32,
        /// ZooKeeper migration only; 4.x writes false.
        is_migrating_zk_broker: bool [since 2],
        /// Random per process start.
        incarnation_id: Uuid,
        /// Given by the controller: its next log write offset when it handled the registration.
        broker_epoch: i64,
        /// Listeners, one each name; order kept, duplicates not refused.
        end_points: Array<'a, BrokerEndpoint<'a>>,
        /// Features that the broker can run.
        features: Array<'a, BrokerFeature<'a>>,
        /// Null = no rack.
        rack: Option<&'a str> = Some(""),
        /// True if the broker may not lead or follow partitions.
        fenced: bool = true,
        /// True if the broker is shutting down in order.
        in_controlled_shutdown: bool [since 1],
        /// Ids of the online directories.
        log_dirs: Array<'a, Uuid> [since 3] => tag 0,
        /// Null = the broker has not said yet; empty = none cordoned.
        cordoned_log_dirs: Option<Array<'a, Uuid>> [since 4] => tag 1,
    }
}

schema! {
    /// A listener of a broker.
    BrokerEndpoint<'a> {
        /// Listener name.
        name: &'a str,
        /// Host name or address.
        host: &'a str,
        /// Port number.
        port: u16,
        /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
        security_protocol: i16,
    }
}

schema! {
    /// Levels of one feature that a broker can run.
    BrokerFeature<'a> {
        /// Name of the feature.
        name: &'a str,
        /// Lowest level that the broker can run.
        min_supported_version: i16,
        /// Highest level.
        max_supported_version: i16,
    }
}
