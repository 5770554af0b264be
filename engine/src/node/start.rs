//! The steps of a start: look, lock, look again, verify, complete.
//!
//! Every directory is locked before the first read-modify-write (P-7); the metadata directory first,
//! since a running node is told by it. What is decided is decided from what was read under the locks.
//! The only writes are missing `directory.id`s (B-21): each file is swapped, its version kept, the
//! metadata directory last.

use super::config::{NodeConfig, ProcessRole};
use super::ensemble::{DirState, Ensemble};
use super::error::StartError;
use crate::bootstrap::zero_checkpoint_has_voters;
use crate::lane::oneshot::oneshot;
use kraftlog_codecs::meta_properties::{MetaProperties, MetaVersion};
use kraftlog_codecs::{names, properties};
use kraftlog_io::atomic::replace;
use kraftlog_io::{Disk, IoError, LocalFuture, Rt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Runs a piece of work on a lane of its own, so that what waits for it may cross threads.
pub(super) async fn on_lane<T: Send + 'static>(
    rt: &Arc<dyn Rt>,
    dir: &Path,
    work: impl FnOnce(Rc<dyn Disk>) -> LocalFuture<'static, T> + Send + 'static,
) -> Result<Option<T>, IoError> {
    let (answer, done) = oneshot();
    rt.spawn_lane(
        "kraftlog-node",
        dir,
        Box::new(move |disk| Box::pin(async move { answer.send(work(disk).await) })),
    )?;
    Ok(done.into_answer().await)
}

/// What may be done about directories without a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blank {
    /// They are refused, as every Kafka so far does.
    Refused,
    /// They get a version 2 file, if no directory has more than such a file without a cluster id, and
    /// this is no bootstrap controller (B-30).
    Discovers,
}

/// Refuses what no locks are needed to refuse, and says which directories can be locked.
pub(super) async fn look(disk: &dyn Disk, config: &NodeConfig, blank: Blank) -> Result<Ensemble, StartError> {
    let ensemble = Ensemble::load(disk, &config.all_dirs(), config.metadata_dir()).await;
    if let Some(dir) = ensemble.dir(config.metadata_dir())
        && let DirState::Error(cause) = &dir.state
    {
        return Err(StartError::MetadataDirUnavailable { dir: dir.path.clone(), cause: cause.clone() });
    }
    ensemble.verify(None, Some(config.node_id()))?;
    let without: Vec<PathBuf> = ensemble
        .dirs()
        .iter()
        .filter(|dir| matches!(dir.state, DirState::Blank | DirState::Missing))
        .map(|dir| std::path::absolute(&dir.path).unwrap_or_else(|_| dir.path.clone()))
        .collect();
    // Also beside files that a first start, cut short by a crash, has left: such a node never knew its
    // cluster, and so never had a log.
    let none_knows =
        ensemble.formatted().all(|(_, props)| props.version == MetaVersion::V2 && props.cluster_id.is_none());
    if !without.is_empty() {
        let may_discover =
            blank == Blank::Discovers && none_knows && !bootstrap_controller(disk, config).await?;
        if !may_discover {
            return Err(StartError::NotFormatted { dirs: without });
        }
    }
    for dir in ensemble.dirs() {
        let usable = !matches!(dir.state, DirState::Missing | DirState::Error(_));
        let part = dir.path.join(names::METADATA_PARTITION_DIR);
        if dir.path != config.metadata_dir() && usable && disk.stat(&part).await?.is_some() {
            return Err(StartError::UnexpectedMetadataLog {
                found: part,
                metadata_dir: config.metadata_dir().to_path_buf(),
            });
        }
    }
    let needs_id = blank == Blank::Refused || bootstrap_controller(disk, config).await?;
    for (dir, props) in ensemble.formatted() {
        use super::ensemble::IdentityError as E;
        if props.node_id.is_none() {
            return Err(E::NodeIdMissing { path: dir.meta_path() }.into());
        }
        let may_lack_it = props.version == MetaVersion::V2 && !needs_id;
        if props.cluster_id.is_none() && !may_lack_it {
            return Err(E::ClusterIdMissing { path: dir.meta_path() }.into());
        }
    }
    Ok(ensemble)
}

/// Whether this node may take part in the first election of its cluster (B-28): such a node must be
/// formatted, and never guesses its cluster.
async fn bootstrap_controller(disk: &dyn Disk, config: &NodeConfig) -> Result<bool, StartError> {
    if !config.has_role(ProcessRole::Controller) {
        return Ok(false);
    }
    if config.static_voters().iter().any(|voter| voter.id == config.node_id()) {
        return Ok(true);
    }
    Ok(zero_checkpoint_has_voters(disk, config.metadata_dir()).await?)
}

/// Completes the files: a missing `directory.id` is drawn, a missing file is made (version 2), a
/// missing cluster id is taken from the other directories. Only files whose content changes are
/// written, the metadata directory's last. Gives all directories with what their files say now.
pub(super) async fn complete(
    disk: &dyn Disk,
    rt: &dyn Rt,
    config: &NodeConfig,
    ensemble: &Ensemble,
) -> Result<Vec<(PathBuf, MetaProperties)>, StartError> {
    let cluster_id = ensemble.formatted().find_map(|(_, props)| props.cluster_id.clone());
    let mut dirs = Vec::new();
    let mut drawn = Vec::new();
    for dir in ensemble.dirs() {
        let old = match &dir.state {
            DirState::Props(props) => Some(props),
            DirState::Blank | DirState::Missing => None,
            DirState::Error(cause) => {
                tracing::error!(dir = %dir.path.display(), %cause, "log directory is offline");
                continue;
            }
        };
        let mut props = old.cloned().unwrap_or(MetaProperties {
            version: MetaVersion::V2,
            cluster_id: None,
            node_id: Some(config.node_id()),
            directory_id: None,
        });
        if props.directory_id.is_none() {
            let id = loop {
                let id = ensemble.fresh_directory_id(&mut || rt.random());
                if !drawn.contains(&id) {
                    break id;
                }
            };
            drawn.push(id);
            props.directory_id = Some(id);
        }
        if props.cluster_id.is_none() {
            props.cluster_id.clone_from(&cluster_id);
        }
        let changed = old != Some(&props);
        dirs.push((dir.path.clone(), props, changed));
    }
    dirs.sort_by_key(|(path, ..)| path == config.metadata_dir());
    for (path, props, changed) in &dirs {
        if *changed {
            tracing::info!(dir = %path.display(), "rewriting meta.properties");
            write(disk, rt, path, props).await?;
        }
    }
    Ok(dirs.into_iter().map(|(path, props, _)| (path, props)).collect())
}

/// Swaps one `meta.properties`; durable on return.
pub(super) async fn write(
    disk: &dyn Disk,
    rt: &dyn Rt,
    dir: &Path,
    props: &MetaProperties,
) -> Result<(), IoError> {
    let now = i64::try_from(rt.now().as_millis()).unwrap_or(i64::MAX);
    let bytes = props.encode(&properties::java_date_utc(now));
    replace(disk, &dir.join(names::META_PROPERTIES), &bytes, 0o644).await
}
