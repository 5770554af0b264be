//! RemoveAccessControlEntryRecord, api key 19.

use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// An ACL was removed.
    RemoveAccessControlEntryRecord<'a> = 19, REMOVE_ACCESS_CONTROL_ENTRY_RECORD, versions 0..=0 {
        /// Id of the entry.
        id: Uuid,
    }
}
