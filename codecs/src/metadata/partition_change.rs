//! PartitionChangeRecord, api key 5.

use super::array::Array;
use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// Changes of one existing partition. Not mentioned = not changed. Applying it adds 1 to the partition
    /// epoch, and adds 1 to the leader epoch if Leader is anything but -2.
    PartitionChangeRecord<'a> = 5, PARTITION_CHANGE_RECORD, versions 0..=2 {
        /// Number of the partition in its topic.
        partition_id: i32 = -1,
        /// Id of the topic.
        topic_id: Uuid,
        /// In-sync replicas; null = unchanged.
        isr: Option<Array<'a, i32>> => tag 0,
        /// Leader; -1 = none, -2 = unchanged.
        leader: i32 = -2 => tag 1,
        /// Replicas; null = unchanged.
        replicas: Option<Array<'a, i32>> => tag 2,
        /// Replicas that a reassignment takes away; null = unchanged.
        removing_replicas: Option<Array<'a, i32>> => tag 3,
        /// Replicas that a reassignment adds; null = unchanged.
        adding_replicas: Option<Array<'a, i32>> => tag 4,
        /// -1 unchanged, 0 recovered, 1 recovering.
        leader_recovery_state: i8 = -1 => tag 5,
        /// Directories of the replicas; null = unchanged. Tag 8, though it is older than tags 6 and 7.
        directories: Option<Array<'a, Uuid>> [since 1] => tag 8,
        /// Eligible leader replicas; null = unchanged.
        eligible_leader_replicas: Option<Array<'a, i32>> [since 2] => tag 6,
        /// Last known eligible leader replica; null = unchanged.
        last_known_elr: Option<Array<'a, i32>> [since 2] => tag 7,
    }
}
