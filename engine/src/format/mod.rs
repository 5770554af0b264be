//! Formatting the directories of a node, as `kafka-storage format` of Kafka 4.4 does it.
//!
//! Three steps, so that everything that can be refused is refused before the first write:
//! [`FormatRequest`] is what was asked for, [`FormatPlan::make`] reads the directories and decides,
//! [`FormatPlan::execute`] writes. What lands on disk equals Kafka's bytes but for ids and times.
//!
//! Order of writes (a crash between any two leaves each directory either formatted or to be formatted
//! again): directories are made and locked; then for each data directory, and the metadata directory
//! last, the partition directory, the zero checkpoint as a snapshot, removal of a legacy
//! `bootstrap.checkpoint`, and `meta.properties`, whose appearance is the commit point.
//!
//! Stricter than Kafka (field cases C-4, C-11, C-15, C-22, C-23): ids with blanks or control
//! characters, a `meta.properties` without content, a metadata directory that cannot be used, and
//! directories that hold a log without naming its cluster are refused.

mod checkpoint;
mod error;
mod execute;
mod levels;
mod plan;
mod survey;
mod voters;

pub use checkpoint::{CheckpointTimes, zero_checkpoint};
pub use error::FormatError;
pub use execute::{FormatEvent, FormatFailure};
pub use levels::ReleaseVersion;
pub use plan::{DirKind, FormatPlan, FormatWarning, PlannedDir};
pub use voters::{
    EntryPart, InitialController, InitialControllersError, VoterProblem, parse_initial_controllers,
};

use crate::node::NodeConfig;

/// What is to be formatted, and how. It has no `Debug`: the SCRAM arguments hold passwords.
#[derive(Clone)]
pub struct FormatRequest {
    /// The node.
    pub config: NodeConfig,
    /// `--cluster-id`.
    pub cluster_id: String,
    /// `--release-version`, as typed.
    pub release_version: Option<String>,
    /// `--feature`, each `name=level` as typed; of a repeated name the last counts.
    pub features: Vec<String>,
    /// `--add-scram`, as typed.
    pub scram: Vec<String>,
    /// Where the first voters come from.
    pub quorum: QuorumArgument,
    /// `--ignore-formatted`: leave formatted directories alone instead of refusing.
    pub ignore_formatted: bool,
    /// Which release's files are written.
    pub layout: Layout,
}

impl FormatRequest {
    /// A request without options.
    pub fn new(config: NodeConfig, cluster_id: impl Into<String>) -> FormatRequest {
        FormatRequest {
            config,
            cluster_id: cluster_id.into(),
            release_version: None,
            features: Vec::new(),
            scram: Vec::new(),
            quorum: QuorumArgument::None,
            ignore_formatted: false,
            layout: Layout::V4_4,
        }
    }
}

/// Where the first voters of a quorum come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumArgument {
    /// From `controller.quorum.voters`, or this is a broker.
    None,
    /// This node is the only voter.
    Standalone,
    /// Others bring them; this node joins later.
    NoInitialControllers,
    /// From this list, as typed.
    InitialControllers(String),
}

/// Which files carry the bootstrap records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// The zero checkpoint, which Kafka before 4.4 does not read (B-61).
    #[default]
    V4_4,
    /// `bootstrap.checkpoint` in every directory, as 3.3 to 4.3 wrote it; 4.4 reads it too. The zero
    /// checkpoint then holds the voters only.
    V4_3,
}
