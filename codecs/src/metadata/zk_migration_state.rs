//! ZkMigrationStateRecord, api key 21.

use super::schema::schema;

schema! {
    /// File name ZkMigrationRecord.json, record name ZkMigrationStateRecord. Deprecated: 4.x parses it and
    /// does nothing.
    ZkMigrationStateRecord<'a> = 21, ZK_MIGRATION_STATE_RECORD, versions 0..=0 {
        /// 0 none, 1 migration, 2 pre-migration, 3 post-migration, 4 ZooKeeper mode (before 3.4, 1 and 2 were
        /// swapped).
        zk_migration_state: i8,
    }
}
