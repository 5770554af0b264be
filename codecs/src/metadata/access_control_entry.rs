//! AccessControlEntryRecord, api key 18.

use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// An ACL was added.
    AccessControlEntryRecord<'a> = 18, ACCESS_CONTROL_ENTRY_RECORD, versions 0..=0 {
        /// Random id of the entry.
        id: Uuid,
        /// 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user (0 unknown, 1 any: not
        /// stored).
        resource_type: i8,
        /// Name or prefix of the resource.
        resource_name: &'a str,
        /// 3 literal, 4 prefixed (1 any, 2 match: filters only).
        pattern_type: i8,
        /// Principal, e.g. `User:alice`.
        principal: &'a str,
        /// `*` or an address; from MV 32 also a CIDR block.
        host: &'a str,
        /// 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action, 10 describe
        /// configs, 11 alter configs, 12 idempotent write, 13 create tokens, 14 describe tokens, 15 two-phase
        /// commit.
        operation: i8,
        /// 2 deny, 3 allow.
        permission_type: i8,
    }
}
