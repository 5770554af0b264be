//! kraftlog: the storage engine of a KRaft node, in the files of Apache Kafka 4.x.
//!
//! It keeps what a controller or an observer must not lose: its identity ([`node`]), the metadata log
//! ([`MetadataLog`]), checkpoints ([`snapshot`]) and its vote ([`QuorumStateFile`]). A real Kafka boots on
//! what it wrote, and it opens what a real Kafka wrote.
//!
//! Every async function has a `_blocking` twin. Handles are `Clone + Send + Sync`, futures are `Send` and
//! need no runtime of their own: each open log brings its own threads.
//!
//! # A leader
//!
//! Format, open, lead an epoch, bootstrap, append, checkpoint, restart:
//!
//! ```
//! use kraftlog::bootstrap::{Bootstrap, ReplayedState};
//! use kraftlog::codecs::metadata::{MetadataRecord, TopicRecord};
//! use kraftlog::codecs::properties::Properties;
//! use kraftlog::codecs::quorum::{QuorumState, VersionData};
//! use kraftlog::format::{FormatPlan, FormatRequest, QuorumArgument};
//! use kraftlog::io::{BackendChoice, PortableDisk, ThreadRt, rt};
//! use kraftlog::node::NodeConfig;
//! use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, NodeId, Offset, Replayed, SnapshotId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let path = temporary.path().join("controller");
//! // What server.properties says, and what `kraftlog format --standalone` does.
//! let properties: Properties = [
//!     ("process.roles", "controller"),
//!     ("node.id", "1"),
//!     ("listeners", "CONTROLLER://localhost:9093"),
//!     ("controller.listener.names", "CONTROLLER"),
//!     ("controller.quorum.bootstrap.servers", "localhost:9093"),
//!     ("log.dirs", path.to_str().ok_or("a path in UTF-8")?),
//! ]
//! .into_iter()
//! .collect();
//! let mut request = FormatRequest::new(NodeConfig::from_properties(&properties)?, "Jk01gj4RQRegVl2GLqYuTg");
//! request.quorum = QuorumArgument::Standalone;
//! let (runtime, _) = ThreadRt::open(temporary.path(), BackendChoice::Portable)?; // clock and randomness
//! let disk = PortableDisk::new();
//! let plan = rt::block_on(FormatPlan::make(&*disk, &request, &mut || runtime.random()))?;
//! rt::block_on(plan.execute(&*disk, &*runtime, |_| {})).map_err(|failure| failure.error)?;
//! let me = plan.voters().ok_or("a standalone controller is a voter")?.voters[0].clone();
//!
//! // The lock keeps a JVM out; the report says what recovery found and which back end it is, and why.
//! let dir = MetadataDir::open_blocking(&path, BackendChoice::Auto)?;
//! let mut config = LogConfig::default();
//! config.node_id = Some(NodeId(1));
//! let (log, report) = MetadataLog::open_blocking(dir, config.clone())?;
//! println!("{report}");
//!
//! // Elected: the vote, the epoch, the first batch of the epoch.
//! log.initialize_leader_epoch_blocking(Epoch(1))?;
//! log.quorum_state().write_blocking(&QuorumState {
//!     leader_id: Some(1),
//!     leader_epoch: 1,
//!     voted: None,
//!     version_data: VersionData::V1,
//! })?;
//! let first = log.append_leader_change(Epoch(1), &me, &[NodeId(1)])?.durable_blocking()?;
//! // A quorum of one: what is durable here is committed. The caller's consensus says so.
//! log.update_high_watermark(Offset(first.last.0 + 1))?;
//!
//! // The bootstrap transaction that `format` left for the first leader.
//! let found = rt::block_on(Bootstrap::find(&*disk, &path))?;
//! log.activate_blocking(Epoch(1), &ReplayedState::new(), &found, 1)?;
//!
//! // Appends say their offsets at once and when they are durable later; both share one sync.
//! let mut tickets = Vec::new();
//! for name in ["orders", "payments"] {
//!     let topic = TopicRecord { name, topic_id: kraftlog::codecs::uuid::Uuid::from_halves(7, 7), ..TopicRecord::default() };
//!     let mut record = Vec::new();
//!     MetadataRecord::Topic(topic).encode(0, &mut record)?;
//!     tickets.push(log.append_records(Epoch(1), [record])?);
//! }
//! for ticket in tickets {
//!     let appended = ticket.durable_blocking()?;
//!     log.update_high_watermark(Offset(appended.last.0 + 1))?;
//! }
//!
//! // A checkpoint of the state, here one record; it is durable when `freeze` returns.
//! let id = SnapshotId { end_offset: log.high_watermark(), epoch: Epoch(1) };
//! let mut writer = log.create_snapshot_blocking(id)?;
//! writer.append_blocking(&found.records()[..1])?;
//! writer.freeze_blocking()?;
//! let end = log.close_blocking()?.durable_end;
//!
//! // After a restart the state is the checkpoint and what the log has behind it.
//! let dir = MetadataDir::open_blocking(&path, BackendChoice::Auto)?;
//! let (log, _) = MetadataLog::open_blocking(dir, config)?;
//! assert_eq!(log.end_offset(), end);
//! let mut replay = log.replay(None);
//! assert!(matches!(replay.next_blocking()?, Replayed::Snapshot { id: newest, .. } if newest == id));
//! # Ok(())
//! # }
//! ```
//!
//! # A follower
//!
//! It copies what it fetches, batches as they are, until the files agree. A voter may answer the leader
//! with `durable_end` only.
//!
//! ```
//! use kraftlog::io::BackendChoice;
//! use kraftlog::{Epoch, Isolation, LogConfig, MetadataDir, MetadataLog};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let paths = ["leader", "follower"].map(|name| temporary.path().join(name));
//! # for path in &paths { std::fs::create_dir(path)? }
//! # let open = |path: &std::path::Path| -> Result<MetadataLog, Box<dyn std::error::Error>> {
//! #     Ok(MetadataLog::open_blocking(MetadataDir::open_blocking(path, BackendChoice::Auto)?, LogConfig::default())?.0)
//! # };
//! let (leader, follower) = (open(&paths[0])?, open(&paths[1])?);
//! leader.initialize_leader_epoch_blocking(Epoch(3))?;
//! for _ in 0..100 {
//!     let no_op = [1u8, 20, 0, 0]; // NoOpRecord: frame version, type, version, no tagged fields
//!     leader.append_records(Epoch(3), [no_op])?;
//! }
//! leader.flush_blocking()?;
//!
//! // Fetch: from where our log ends, in the epoch that the leader told us.
//! while follower.end_offset() < leader.end_offset() {
//!     let fetched = leader.read_blocking(follower.end_offset(), Isolation::Uncommitted, 4096)?;
//!     if let Some(ticket) = follower.append_as_follower(Epoch(3), fetched.bytes)?.ticket() {
//!         ticket.durable_blocking()?;
//!     }
//! }
//! assert_eq!(follower.last_epoch(), Epoch(3));
//!
//! // Closed logs have their exact length, and these have the same bytes.
//! leader.close_blocking()?;
//! follower.close_blocking()?;
//! let [ours, theirs] = paths.map(|path| std::fs::read(path.join("__cluster_metadata-0/00000000000000000000.log")));
//! assert_eq!(ours?, theirs?);
//! # Ok(())
//! # }
//! ```
//!
//! # Crash your own node
//!
//! With the feature `sim` a node runs on a simulated machine, whose disk loses at a power cut whatever was
//! not synced. What your node does with a log can be shown to survive it:
//!
//! ```
//! # #[cfg(feature = "sim")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kraftlog::codecs::metadata::{MetadataRecord, TopicRecord};
//! use kraftlog::io::sim::{Latency, Machine};
//! use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, Offset};
//! use std::path::Path;
//!
//! let open = |machine: &Machine| machine.block_on(async {
//!     let dir = MetadataDir::with_rt(Path::new("/node"), machine.rt(), machine.backend()).await?;
//!     Ok::<_, Box<dyn std::error::Error>>(MetadataLog::open(dir, LogConfig::default()).await?.0)
//! });
//! # let mut topic = Vec::new();
//! # let name = TopicRecord { name: "orders", ..TopicRecord::default() };
//! # MetadataRecord::Topic(name).encode(0, &mut topic)?;
//!
//! let machine = Machine::new(7);
//! machine.disk().make_dir(Path::new("/node"))?;
//! let log = open(&machine)?;
//! log.initialize_leader_epoch_blocking(Epoch(1))?;
//! log.append_records(Epoch(1), &[topic])?.durable_blocking()?;
//!
//! // Twenty ways in which the power may fail now: what was acknowledged is there in each.
//! for seed in 0..20 {
//!     let found = Machine::with_disk(machine.disk().crash(seed), Latency::None, seed);
//!     assert_eq!(open(&found)?.end_offset(), Offset(1));
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sim"))]
//! # fn main() {}
//! ```
//!
//! # Features
//!
//! - `uring` (default): the io_uring back end, on Linux. See [`io::BackendChoice`] for how one is chosen.
//! - `sim`: the simulated machine, for tests.
#![forbid(unsafe_code)]

pub mod bootstrap;
mod config;
pub mod control;
mod dir;
mod epochs;
mod error;
mod fence;
pub mod format;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod lane;
mod log;
#[cfg(all(test, loom))]
mod loom_models;
mod metrics;
pub mod node;
mod quorum;
mod recover;
mod replay;
pub mod scram;
mod segment;
pub mod snapshot;
mod state;
mod sync;
mod ticket;
mod types;
mod watermark;

pub use config::{LogConfig, Preallocation, Role};
pub use dir::{DirError, MetadataDir};
pub use epochs::{EpochEnd, Validity};
pub use error::{ErrorKind, Fenced};
pub use handle::{FlushError, HighWatermarkError, MetadataLog};
pub use log::append::{FollowerAppend, Permit};
pub use log::close::{CloseError, CloseReport};
pub use log::epoch::EpochError;
pub use log::leader_change::LeaderChangeError;
pub use log::open_error::{Evidence, OpenError, ValidBehind};
pub use log::open_report::{Cut, OpenReport, Scanned};
pub use log::read::{Fetched, Isolation, ReadError};
pub use metrics::Metrics;
pub use quorum::{QuorumStateFile, QuorumWriteError};
pub use replay::{Replay, ReplayBatch, ReplayError, Replayed};
pub use state::StateFault;
pub use ticket::{AppendError, Appended, Ticket};
pub use types::{Endpoint, Epoch, NodeId, Offset, SnapshotId, Voter, VoterSet};
pub use watermark::{Ends, Watch};

/// Bytes and values of Kafka's files, for callers that encode and decode records.
pub use kraftlog_codecs as codecs;
/// Disks, back ends and the runtime of lanes.
pub use kraftlog_io as io;
