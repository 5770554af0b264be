//! BrokerRegistrationChangeRecord, api key 17.

use super::array::Array;
use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// Change of a broker registration (fencing, controlled shutdown, directories).
    BrokerRegistrationChangeRecord<'a> = 17, BROKER_REGISTRATION_CHANGE_RECORD, versions 0..=3 {
        /// Node id of the broker.
        broker_id: i32,
        /// Epoch of the registration.
        broker_epoch: i64,
        /// -1 unfence, 0 no change, 1 fence.
        fenced: i8 => tag 0,
        /// 0 no change, 1 entered controlled shutdown.
        in_controlled_shutdown: i8 [since 1] => tag 1,
        /// New full list of online directories; empty = no change.
        log_dirs: Array<'a, Uuid> [since 2] => tag 2,
        /// Null = no change; empty = none cordoned.
        cordoned_log_dirs: Option<Array<'a, Uuid>> [since 3] => tag 3,
    }
}
