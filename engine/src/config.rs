//! Every option of the log, with default and bounds.

use crate::types::{NodeId, VoterSet};

/// What this node is to the quorum; recovery depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A voter, or a controller that may become one: what it acknowledged must be kept, so damage in
    /// the middle of the log is refused.
    #[default]
    Voter,
    /// A node that only copies the log (a broker): open cuts at the first bad batch and the node
    /// fetches again. A Kafka broker never syncs this log (behaviour.md B-142).
    Observer,
}

/// How the active segment gets its space. The tail that this leaves exists in the active segment only,
/// and is cut off durably at close and before the next segment gets its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preallocation {
    /// The file grows in steps of so many bytes and reads as zero behind the data. Syncs are cheaper,
    /// since they need not change the file's length.
    Extend(u64),
    /// Space is reserved in steps of so many bytes, the file's length is that of the data.
    KeepSize(u64),
    /// The file grows with each append.
    None,
}

/// Options of [`MetadataLog::open`](crate::MetadataLog::open).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogConfig {
    /// What the node is to the quorum.
    pub role: Role,
    /// Id of this node. With it, an epoch that `quorum-state` says this node led in an earlier life
    /// cannot be led again.
    pub node_id: Option<NodeId>,
    /// Cluster id of this node. With it, a `quorum-state` of version 0 that names another one is refused.
    pub cluster_id: Option<String>,
    /// Voters of `controller.quorum.voters`: they count while no voter set is in the log.
    pub static_voters: Option<VoterSet>,
    /// A segment is rolled before it would grow beyond this (`metadata.log.segment.bytes`).
    pub segment_bytes_max: u64,
    /// A segment is rolled when a batch is so much younger than the segment's first
    /// (`metadata.log.segment.ms`).
    pub segment_ms: i64,
    /// Largest batch that the leader may append. Followers and open take larger ones (field case C-29).
    pub batch_bytes_max: usize,
    /// Most records that one batch of the leader may have: Kafka's bound for an atomic append.
    pub batch_records_max: i32,
    /// One group commit takes at most so many bytes (at least one batch)...
    pub group_bytes_max: usize,
    /// ...and at most so many batches.
    pub group_batches_max: usize,
    /// How the active segment gets its space.
    pub preallocation: Preallocation,
    /// Recent batches that reads are answered from, in bytes.
    pub tail_cache_bytes_max: usize,
    /// Bytes that may wait to become durable; above it `append_*` say `QueueFull` and
    /// [`reserve`](crate::MetadataLog::reserve) waits.
    pub queue_bytes_max: usize,
    /// Look at the records while open scans the log, so that a log of a newer build is refused
    /// (field case C-31) instead of half understood.
    pub check_records: bool,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            role: Role::Voter,
            node_id: None,
            cluster_id: None,
            static_voters: None,
            segment_bytes_max: 1 << 30,
            segment_ms: 7 * 24 * 60 * 60 * 1000,
            batch_bytes_max: 8 << 20,
            batch_records_max: 10_000,
            group_bytes_max: 8 << 20,
            group_batches_max: 1024,
            preallocation: Preallocation::Extend(4 << 20),
            tail_cache_bytes_max: 16 << 20,
            queue_bytes_max: 64 << 20,
            check_records: true,
        }
    }
}
