//! PartitionRecord, api key 3.

use super::array::Array;
use super::schema::schema;
use crate::uuid::Uuid;

schema! {
    /// Full state of one partition.
    PartitionRecord<'a> = 3, PARTITION_RECORD, versions 0..=2 {
        /// Number of the partition in its topic.
        partition_id: i32 = -1,
        /// Id of the topic.
        topic_id: Uuid,
        /// Replicas, in preference order.
        replicas: Array<'a, i32>,
        /// In-sync replicas.
        isr: Array<'a, i32>,
        /// Replicas that a reassignment takes away.
        removing_replicas: Array<'a, i32>,
        /// Replicas that a reassignment adds.
        adding_replicas: Array<'a, i32>,
        /// Leader; -1 = none.
        leader: i32 = -1,
        /// 0 recovered, 1 recovering after an unclean election.
        leader_recovery_state: i8 => tag 0,
        /// Changes with every change of the leader.
        leader_epoch: i32 = -1,
        /// Changes with every change of the partition.
        partition_epoch: i32 = -1,
        /// Directories of the replicas: same order and length as `replicas`, or empty (all migrating).
        directories: Array<'a, Uuid> [since 1],
        /// Replicas that may lead when the in-sync set is empty; Kafka writes it only if not empty.
        eligible_leader_replicas: Option<Array<'a, i32>> [since 2] => tag 1,
        /// The last known eligible replica that became unclean; Kafka writes it only if not empty.
        last_known_elr: Option<Array<'a, i32>> [since 2] => tag 2,
    }
}
