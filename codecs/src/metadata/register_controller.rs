//! RegisterControllerRecord, api key 27.

use super::array::Array;
use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// A controller registered itself.
    RegisterControllerRecord<'a> = 27, REGISTER_CONTROLLER_RECORD, versions 0..=0 {
        /// Node id of the controller.
        controller_id: i32,
        /// Random per process start.
        incarnation_id: Uuid,
        /// 4.x writes false.
        zk_migration_ready: bool,
        /// Listeners, one each name; order kept, duplicates not refused.
        end_points: Array<'a, ControllerEndpoint<'a>>,
        /// Features that the controller can run.
        features: Array<'a, ControllerFeature<'a>>,
    }
}

schema! {
    /// A listener of a controller.
    ControllerEndpoint<'a> {
        /// Listener name.
        name: &'a str,
        /// Host name or address.
        host: &'a str,
        /// Port number.
        port: u16,
        /// As in RegisterBrokerRecord.
        security_protocol: i16,
    }
}

schema! {
    /// Levels of one feature that a controller can run.
    ControllerFeature<'a> {
        /// Name of the feature.
        name: &'a str,
        /// Lowest level that the node can run.
        min_supported_version: i16,
        /// Highest level that the node can run.
        max_supported_version: i16,
    }
}
