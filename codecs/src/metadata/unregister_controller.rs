//! UnregisterControllerRecord, api key 29.

use super::schema::schema;

schema! {
    /// A controller registration is removed (KIP-1312, 4.4).
    UnregisterControllerRecord<'a> = 29, UNREGISTER_CONTROLLER_RECORD, versions 0..=0 {
        /// Node id of the controller.
        controller_id: i32,
    }
}
