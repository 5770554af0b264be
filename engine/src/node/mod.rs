//! Start-up: whose directories these are (B-7 to B-24).
//!
//! [`Node::start`] takes the locks, reads every `meta.properties`, verifies that they are one node's,
//! completes what may be completed, and hands out the metadata directory for the log. Identity is
//! never guessed: a mismatch is a refusal.
//!
//! A node may start without knowing its cluster (KIP-1262) only if asked for
//! ([`StartOptions::discover_cluster_id`]), because the version 2 file that this needs is refused by
//! every Kafka released so far.

mod cluster_id;
mod config;
mod ensemble;
mod error;
mod start;

pub use cluster_id::ClusterId;
pub use config::{ConfigError, Listener, NodeConfig, ProcessRole, StaticVoter, VoterIds};
pub use ensemble::{DirState, Ensemble, IdentityError, LogDir, LogDirError};
pub use error::{LearnError, StartError};

use crate::dir::MetadataDir;
use crate::sync::Mutex;
use kraftlog_codecs::meta_properties::MetaProperties;
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::{BackendChoice, BackendReport, HeldLock, Rt, ThreadRt, atomic};
use start::{Blank, on_lane};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a node starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StartOptions {
    /// Back end of the metadata directory.
    pub backend: BackendChoice,
    /// Start a broker or an observer controller without a cluster id, and let it be learned. Its
    /// directories get `meta.properties` of version 2, which no released Kafka reads.
    pub discover_cluster_id: bool,
}

/// Who a node is. Fixed for its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    node_id: i32,
    dirs: Vec<(PathBuf, Uuid)>,
}

impl Identity {
    /// The node's id.
    pub fn node_id(&self) -> i32 {
        self.node_id
    }

    /// Id of one of its directories; `None` for a directory that is offline or not its own.
    pub fn directory_id(&self, dir: &Path) -> Option<Uuid> {
        self.dirs.iter().find(|(path, _)| path == dir).map(|(_, id)| *id)
    }

    /// All directories that are online, with their ids.
    pub fn directories(&self) -> impl Iterator<Item = (&Path, Uuid)> {
        self.dirs.iter().map(|(path, id)| (path.as_path(), *id))
    }
}

/// A node that has started: its directories are locked for as long as this lives, the metadata
/// directory also for as long as its log does.
pub struct Node {
    config: NodeConfig,
    identity: Identity,
    cluster_id: ClusterId,
    metadata_dir: MetadataDir,
    /// Files as they are on disk; one at a time learns.
    files: Mutex<Vec<(PathBuf, MetaProperties)>>,
    rt: Arc<dyn Rt>,
    _locks: Vec<Box<dyn HeldLock>>,
}

impl Node {
    /// Starts with default options: see [`start_with`](Node::start_with).
    ///
    /// # Errors
    /// Those of [`start_with`](Node::start_with).
    pub async fn start(config: NodeConfig) -> Result<Node, StartError> {
        Node::start_with(config, StartOptions::default()).await
    }

    /// Locks, reads, verifies and completes the node's directories. On return every `meta.properties`
    /// is complete, durably.
    ///
    /// # Errors
    /// [`StartError`]; nothing was changed, see there for the exception.
    ///
    /// # Cancel safety
    /// Dropping the future lets go of what was locked; a file may have been completed.
    pub async fn start_with(config: NodeConfig, options: StartOptions) -> Result<Node, StartError> {
        // Small files, once: the blocking back end serves them whatever the log will use.
        let (rt, _) = ThreadRt::open(Path::new("/"), BackendChoice::Portable)
            .map_err(|error| StartError::Dir(error.into()))?;
        Node::start_in(config, options, rt, None).await
    }

    /// As [`start_with`](Node::start_with), on a runtime of the caller's own, such as a simulated one,
    /// for the small files as for the log. `options.backend` says nothing here.
    ///
    /// # Errors
    /// Those of [`start_with`](Node::start_with).
    ///
    /// # Cancel safety
    /// That of [`start_with`](Node::start_with).
    pub async fn start_with_rt(
        config: NodeConfig,
        options: StartOptions,
        rt: Arc<dyn Rt>,
        backend: BackendReport,
    ) -> Result<Node, StartError> {
        Node::start_in(config, options, rt, Some(backend)).await
    }

    /// `backend` is the one of `rt` if the log is to use it too.
    async fn start_in(
        config: NodeConfig,
        options: StartOptions,
        rt: Arc<dyn Rt>,
        backend: Option<BackendReport>,
    ) -> Result<Node, StartError> {
        let blank = match options.discover_cluster_id {
            true => Blank::Discovers,
            false => Blank::Refused,
        };
        let lane_dir = config.metadata_dir().to_path_buf();
        let look = {
            let config = config.clone();
            on_lane(&rt, &lane_dir, move |disk| {
                Box::pin(async move {
                    let ensemble = start::look(&*disk, &config, blank).await?;
                    // Only a node that may discover its cluster gets here with a directory missing.
                    for dir in ensemble.dirs() {
                        if matches!(dir.state, DirState::Missing) {
                            atomic::create_dir_all_durably(&*disk, &dir.path).await?;
                        }
                    }
                    Ok::<_, StartError>(ensemble)
                })
            })
        };
        let seen = look.await?.ok_or(StartError::LaneGone)??;

        let metadata_dir = match backend {
            Some(backend) => MetadataDir::with_rt(config.metadata_dir(), Arc::clone(&rt), backend).await?,
            None => MetadataDir::open(config.metadata_dir(), options.backend).await?,
        };
        let mut locks = Vec::new();
        for dir in seen.dirs() {
            if dir.path != config.metadata_dir() && !matches!(dir.state, DirState::Error(_)) {
                locks.push(rt.lock_dir(&dir.path)?);
            }
        }
        let complete = {
            let (config, clock) = (config.clone(), Arc::clone(&rt));
            on_lane(&rt, &lane_dir, move |disk| {
                Box::pin(async move {
                    let ensemble = start::look(&*disk, &config, blank).await?;
                    start::complete(&*disk, &*clock, &config, &ensemble).await
                })
            })
        };
        let files = complete.await?.ok_or(StartError::LaneGone)??;
        let cluster_id = files.iter().find_map(|(_, props)| props.cluster_id.as_deref());
        let dirs = files.iter().filter_map(|(path, props)| Some((path.clone(), props.directory_id?)));
        Ok(Node {
            identity: Identity { node_id: config.node_id(), dirs: dirs.collect() },
            cluster_id: ClusterId::new(cluster_id),
            metadata_dir,
            files: Mutex::new(files),
            rt,
            config,
            _locks: locks,
        })
    }

    /// As [`start_with`](Node::start_with), blocking this thread.
    ///
    /// # Errors
    /// Those of [`start_with`](Node::start_with).
    pub fn start_blocking(config: NodeConfig, options: StartOptions) -> Result<Node, StartError> {
        kraftlog_io::rt::block_on(Node::start_with(config, options))
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its configuration.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Its cluster, now or later.
    pub fn cluster_id(&self) -> &ClusterId {
        &self.cluster_id
    }

    /// The locked metadata directory, for [`MetadataLog::open`](crate::MetadataLog::open).
    pub fn metadata_dir(&self) -> MetadataDir {
        self.metadata_dir.clone()
    }

    /// Takes the cluster id of a *committed* ClusterIdRecord: written to every online directory that
    /// lacks it, the metadata directory last, then seen by all who read or wait (B-34).
    ///
    /// On return it is durable. The id that is known already is fine and writes nothing.
    ///
    /// # Errors
    /// [`LearnError::Mismatch`] for another id than the known one: stop the node, nothing was written.
    ///
    /// # Cancel safety
    /// Some files may have the id; the next start, or another call, completes the others.
    pub async fn learn_cluster_id(&self, id: &str) -> Result<(), LearnError> {
        let files = self.files.lock().clone();
        let known = self.cluster_id.get();
        let known = known.as_deref().or(files.iter().find_map(|(_, props)| props.cluster_id.as_deref()));
        if let Some(known) = known.filter(|known| *known != id) {
            return Err(LearnError::Mismatch { given: id.to_owned(), known: known.to_owned() });
        }
        let open: Vec<(PathBuf, MetaProperties)> = files
            .into_iter()
            .filter(|(_, props)| props.cluster_id.is_none())
            .map(|(path, props)| (path, MetaProperties { cluster_id: Some(id.to_owned()), ..props }))
            .collect();
        let (rt, to_write) = (Arc::clone(&self.rt), open.clone());
        let written = on_lane(&self.rt, self.config.metadata_dir(), move |disk| {
            Box::pin(async move {
                for (path, props) in &to_write {
                    start::write(&*disk, &*rt, path, props).await?;
                }
                Ok::<_, kraftlog_io::IoError>(())
            })
        });
        written.await?.ok_or(LearnError::LaneGone)??;
        for (path, props) in open {
            if let Some(file) = self.files.lock().iter_mut().find(|(known, _)| *known == path) {
                file.1 = props;
            }
        }
        self.cluster_id.set(id);
        Ok(())
    }
}
