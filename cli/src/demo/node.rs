//! The controller of the demo: formatted, opened, leading.

use kraftlog::bootstrap::{Bootstrap, ReplayedState};
use kraftlog::format::{FormatPlan, FormatRequest, QuorumArgument};
use kraftlog::node::NodeConfig;
use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, NodeId, Offset, OpenReport, Voter};
use kraftlog_codecs::properties::Properties;
use kraftlog_codecs::quorum::{QuorumState, VersionData};
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::{BackendChoice, PortableDisk, Rt, rt};
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const NODE_ID: NodeId = NodeId(1);

/// What a server.properties of this node would say.
pub(crate) fn config(dir: &Path) -> Result<NodeConfig> {
    let dir = dir.to_str().ok_or("the directory's name is not UTF-8")?;
    let properties: Properties = [
        ("process.roles", "controller"),
        ("node.id", "1"),
        ("listeners", "CONTROLLER://localhost:9093"),
        ("controller.listener.names", "CONTROLLER"),
        ("controller.quorum.bootstrap.servers", "localhost:9093"),
        ("log.dirs", dir),
    ]
    .into_iter()
    .collect();
    Ok(NodeConfig::from_properties(&properties)?)
}

/// A node that is formatted.
pub(crate) struct Formatted {
    pub(crate) cluster_id: String,
    /// The node as its voter set knows it.
    pub(crate) voter: Voter,
    pub(crate) metadata_version: String,
}

/// Formats the directory as the only voter of a new cluster.
pub(crate) fn format(dir: &Path, rt: &dyn Rt) -> Result<Formatted> {
    let cluster_id = Uuid::random(|| rt.random()).to_string();
    let mut request = FormatRequest::new(config(dir)?, &cluster_id);
    request.quorum = QuorumArgument::Standalone;
    let disk = PortableDisk::new();
    let plan = rt::block_on(async {
        let plan = FormatPlan::make(&*disk, &request, &mut || rt.random()).await?;
        plan.execute(&*disk, rt, |_| {}).await.map_err(|failure| failure.error)?;
        Ok::<_, kraftlog::format::FormatError>(plan)
    })?;
    let voter = plan.voters().and_then(|voters| voters.voters.first()).cloned();
    Ok(Formatted {
        cluster_id,
        voter: voter.ok_or("the plan has no voter")?,
        metadata_version: plan.metadata_version().to_string(),
    })
}

/// Opens the log, recovering it from whatever stopped it.
pub(crate) fn open(dir: &Path) -> Result<(MetadataLog, OpenReport)> {
    let choice = BackendChoice::from_env_or(BackendChoice::Auto)?;
    let dir = MetadataDir::open_blocking(dir, choice)?;
    let mut config = LogConfig::default();
    config.node_id = Some(NODE_ID);
    Ok(MetadataLog::open_blocking(dir, config)?)
}

/// Closes the log, so that another process can have the directory. Gives whether it was left clean.
pub(crate) fn close(log: MetadataLog) -> Result<bool> {
    Ok(log.close_blocking()?.clean)
}

/// Becomes leader of `epoch`: vote file, epoch, leader change; durable on return.
pub(crate) fn lead(log: &MetadataLog, epoch: Epoch, voter: &Voter) -> Result<()> {
    log.initialize_leader_epoch_blocking(epoch)?;
    log.quorum_state().write_blocking(&QuorumState {
        leader_id: Some(NODE_ID.0),
        leader_epoch: epoch.0,
        voted: None,
        version_data: VersionData::V1,
    })?;
    let change = log.append_leader_change(epoch, voter, &[NODE_ID])?.durable_blocking()?;
    log.update_high_watermark(Offset(change.last.0 + 1))?;
    Ok(())
}

/// Writes the bootstrap transaction of a new cluster; gives what was said about it.
pub(crate) fn bootstrap(log: &MetadataLog, epoch: Epoch, dir: &Path) -> Result<String> {
    let disk = PortableDisk::new();
    let bootstrap = rt::block_on(Bootstrap::find(&*disk, dir))?;
    let min_insync_replicas = config(dir)?.min_insync_replicas();
    let activated = log.activate_blocking(epoch, &ReplayedState::new(), &bootstrap, min_insync_replicas)?;
    log.update_high_watermark(activated.end_offset)?;
    Ok(activated.message)
}
