//! What a format will do: decided from the request and from what was read, before the first write.
//!
//! The order of the checks is Kafka's (B-50): options first, directories last. Making a plan writes
//! nothing, so that it is also what `--dry-run` shows.

use super::checkpoint::{CheckpointTimes, bootstrap_records, zero_checkpoint};
use super::levels::{Levels, ReleaseVersion};
use super::survey::{DirSurvey, survey};
use super::voters::{InitialController, kafka_order, parse_initial_controllers};
use super::{FormatError, FormatRequest, Layout, QuorumArgument};
use crate::node::{DirState, Ensemble, LogDirError, NodeConfig, ProcessRole};
use crate::scram::{ScramCredential, parse_scram_arguments};
use kraftlog_codecs::control::{Endpoint, Voter, Voters};
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::meta_properties::MetaPropertiesError;
use kraftlog_codecs::names;
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::Disk;
use std::fmt;
use std::path::PathBuf;

/// What a directory is to the node, in Kafka's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirKind {
    /// A broker's data.
    Data,
    /// The metadata directory, without a voter set in its checkpoint.
    Metadata,
    /// The metadata directory of a node that is not in its checkpoint's voter set.
    DynamicMetadata,
    /// The metadata directory of a voter.
    DynamicMetadataVoter,
}

impl fmt::Display for DirKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DirKind::Data => "data directory",
            DirKind::Metadata => "metadata directory",
            DirKind::DynamicMetadata => "dynamic metadata directory",
            DirKind::DynamicMetadataVoter => "dynamic metadata voter directory",
        })
    }
}

/// One directory that will be formatted.
#[derive(Debug, Clone)]
pub struct PlannedDir {
    /// Its path.
    pub path: PathBuf,
    /// What it is to the node.
    pub kind: DirKind,
    /// The id that it gets.
    pub directory_id: Uuid,
    /// Whether it gets a zero checkpoint.
    pub zero_checkpoint: bool,
    /// Whether a left-over `bootstrap.checkpoint` stands in it, which goes.
    pub legacy_bootstrap: bool,
}

/// Something to tell the operator that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatWarning {
    /// The cluster id is no UUID.
    NonUuidClusterId {
        /// The id.
        id: String,
    },
    /// The cluster id is a UUID, but not as anything would print it.
    NonCanonicalClusterId {
        /// The id.
        id: String,
        /// The usual text for the same 16 bytes.
        canonical: String,
    },
    /// A release version with a patch level, which counts for nothing.
    PatchLevelIgnored {
        /// As typed.
        typed: String,
        /// What it means.
        version: MetadataVersion,
    },
    /// This node is not in the list of initial controllers.
    NotAnInitialController {
        /// This node.
        node_id: i32,
    },
    /// Nothing was formatted, so these arguments had no effect.
    ArgumentsIgnored {
        /// The options.
        options: Vec<&'static str>,
    },
    /// A directory cannot be used and is left out.
    DirSkipped {
        /// The directory.
        dir: PathBuf,
        /// Why.
        reason: String,
    },
    /// The metadata directory of an old node is new: the voter set still has the id of the lost one.
    VoterSetHasOldDirectory {
        /// The metadata directory.
        dir: PathBuf,
        /// Its new id.
        directory_id: Uuid,
    },
    /// A left-over of an earlier format that failed; it will be removed.
    LegacyLeftOver {
        /// The file.
        path: PathBuf,
    },
    /// Directories that are not Kafka's; nothing in them is looked at.
    ForeignDirectories {
        /// Where they stand.
        dir: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
}

impl FormatWarning {
    /// Short name, that of the field cases where they have one.
    pub fn name(&self) -> &'static str {
        match self {
            FormatWarning::NonUuidClusterId { .. } => "NonUuidClusterId",
            FormatWarning::NonCanonicalClusterId { .. } => "NonCanonicalClusterId",
            FormatWarning::PatchLevelIgnored { .. } => "PatchLevelIgnored",
            FormatWarning::NotAnInitialController { .. } => "NotAnInitialController",
            FormatWarning::ArgumentsIgnored { .. } => "ArgumentsIgnored",
            FormatWarning::DirSkipped { .. } => "LogDirUnavailable",
            FormatWarning::VoterSetHasOldDirectory { .. } => "VoterSetHasOldDirectory",
            FormatWarning::LegacyLeftOver { .. } => "LegacyLeftOver",
            FormatWarning::ForeignDirectories { .. } => "ForeignDirectories",
        }
    }

    /// True if it only informs.
    pub fn is_info(&self) -> bool {
        matches!(
            self,
            FormatWarning::LegacyLeftOver { .. }
                | FormatWarning::ForeignDirectories { .. }
                | FormatWarning::PatchLevelIgnored { .. }
        )
    }
}

impl fmt::Display for FormatWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatWarning::NonUuidClusterId { id } => write!(
                f,
                "cluster id \"{}\" is no UUID; it is stored as given, random-uuid makes one",
                id.escape_debug()
            ),
            FormatWarning::NonCanonicalClusterId { id, canonical } => write!(
                f,
                "cluster id \"{id}\" is not in canonical form, which is \"{canonical}\"; it is stored as given, \
                 and the two are different ids to every node"
            ),
            FormatWarning::PatchLevelIgnored { typed, version } => {
                write!(f, "release version {typed} uses metadata.version {version}")
            }
            FormatWarning::NotAnInitialController { node_id } => write!(
                f,
                "node {node_id} is not in the list of initial controllers: it will not vote, and gets a new \
                 directory id"
            ),
            FormatWarning::ArgumentsIgnored { options } => {
                write!(f, "not applied, since no directory was formatted: {}", options.join(", "))
            }
            FormatWarning::DirSkipped { dir, reason } => {
                write!(f, "{} is skipped: {reason}", dir.display())
            }
            FormatWarning::VoterSetHasOldDirectory { dir, directory_id } => write!(
                f,
                "metadata directory {} gets the new directory.id {directory_id}; if this node was a voter, the \
                 voter set still lists the old one: remove that voter and add this one",
                dir.display()
            ),
            FormatWarning::LegacyLeftOver { path } => {
                write!(f, "{} is left over from an earlier format and will be removed", path.display())
            }
            FormatWarning::ForeignDirectories { dir, names } => {
                write!(f, "{} also holds {}, which is left alone", dir.display(), names.join(", "))
            }
        }
    }
}

/// A format, decided.
#[derive(Debug, Clone)]
pub struct FormatPlan {
    cluster_id: String,
    node_id: i32,
    layout: Layout,
    metadata_version: MetadataVersion,
    kraft_version: i16,
    features: Vec<(String, i16)>,
    scram: Vec<ScramCredential>,
    records: Vec<Vec<u8>>,
    voters: Option<Voters>,
    dirs: Vec<PlannedDir>,
    already_formatted: Vec<PathBuf>,
    skipped: Vec<(PathBuf, LogDirError)>,
    warnings: Vec<FormatWarning>,
}

impl FormatPlan {
    /// Reads the directories and decides. `random` makes directory ids and salts.
    ///
    /// Writes nothing.
    ///
    /// # Errors
    /// Everything that makes a format refuse; see [`FormatError`].
    pub async fn make(
        disk: &dyn Disk,
        request: &FormatRequest,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<FormatPlan, FormatError> {
        let options = Options::check(request, random)?;
        let config = &request.config;
        let ensemble = Ensemble::load(disk, &config.all_dirs(), config.metadata_dir()).await;
        let surveys = survey(disk, &ensemble).await?;
        options.plan(request, &ensemble, &surveys, random)
    }

    /// The cluster.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The node.
    pub fn node_id(&self) -> i32 {
        self.node_id
    }

    /// Which release's files are written.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The metadata.version that the cluster will start with.
    pub fn metadata_version(&self) -> MetadataVersion {
        self.metadata_version
    }

    /// 1 for a dynamic quorum, else 0.
    pub fn kraft_version(&self) -> i16 {
        self.kraft_version
    }

    /// Feature levels of the bootstrap records, in their order.
    pub fn features(&self) -> &[(String, i16)] {
        &self.features
    }

    /// Users of the bootstrap records, in their order.
    pub fn scram(&self) -> &[ScramCredential] {
        &self.scram
    }

    /// The bootstrap records, encoded.
    pub fn records(&self) -> &[Vec<u8>] {
        &self.records
    }

    /// The first voter set, if it is known here.
    pub fn voters(&self) -> Option<&Voters> {
        self.voters.as_ref()
    }

    /// What will be formatted, in this order: the metadata directory last.
    pub fn dirs(&self) -> &[PlannedDir] {
        &self.dirs
    }

    /// What is formatted already and left alone.
    pub fn already_formatted(&self) -> &[PathBuf] {
        &self.already_formatted
    }

    /// What cannot be used and is left out.
    pub fn skipped(&self) -> &[(PathBuf, LogDirError)] {
        &self.skipped
    }

    /// What to tell the operator.
    pub fn warnings(&self) -> &[FormatWarning] {
        &self.warnings
    }
}

/// Everything that follows from the request alone.
struct Options {
    levels: Levels,
    controllers: Option<Vec<InitialController>>,
    scram: Vec<ScramCredential>,
    records: Vec<Vec<u8>>,
    warnings: Vec<FormatWarning>,
}

impl Options {
    fn check(request: &FormatRequest, random: &mut dyn FnMut() -> u64) -> Result<Options, FormatError> {
        let config = &request.config;
        let mut warnings = Vec::new();
        let release = match &request.release_version {
            Some(typed) => {
                let release = ReleaseVersion::parse(typed, config.unstable_features())?;
                if release.patch_level_ignored() {
                    warnings.push(FormatWarning::PatchLevelIgnored {
                        typed: typed.clone(),
                        version: release.metadata_version(),
                    });
                }
                Some(release)
            }
            None => None,
        };
        let given = Levels::parse_arguments(&request.features)?;
        let static_quorum = !config.static_voters().is_empty();
        let dynamic_flag =
            matches!(request.quorum, QuorumArgument::Standalone | QuorumArgument::InitialControllers(_));
        if static_quorum && dynamic_flag {
            return Err(FormatError::StaticVotersWithDynamicFlag);
        }
        let is_controller = config.has_role(ProcessRole::Controller);
        let controllers = match &request.quorum {
            QuorumArgument::InitialControllers(list) => Some(parse_initial_controllers(list)?),
            QuorumArgument::Standalone if !is_controller => return Err(FormatError::StandaloneOnBroker),
            QuorumArgument::Standalone => Some(vec![standalone(config, random)?]),
            QuorumArgument::None if is_controller && !static_quorum => return Err(FormatError::NoQuorumFlag),
            QuorumArgument::None | QuorumArgument::NoInitialControllers => None,
        };
        check_cluster_id(&request.cluster_id, &mut warnings)?;
        let levels = Levels::resolve(release, given, static_quorum, config.unstable_features())?;
        if !request.scram.is_empty() && !levels.metadata_version.has_scram() {
            return Err(FormatError::ScramTooEarly);
        }
        let scram = parse_scram_arguments(&request.scram, random)?;
        let records = bootstrap_records(&levels.records, &scram)?;
        // Made once here, so that records that are too many show before anything is looked at.
        zero_checkpoint(0, None, &records, CheckpointTimes::all(0))?;
        if let Some(list) = &controllers
            && is_controller
            && !list.iter().any(|c| c.id == config.node_id())
        {
            warnings.push(FormatWarning::NotAnInitialController { node_id: config.node_id() });
        }
        Ok(Options { levels, controllers, scram, records, warnings })
    }

    fn plan(
        self,
        request: &FormatRequest,
        ensemble: &Ensemble,
        surveys: &[DirSurvey],
        random: &mut dyn FnMut() -> u64,
    ) -> Result<FormatPlan, FormatError> {
        let Options { levels, controllers, scram, records, mut warnings } = self;
        let config = &request.config;
        let found = Found::sort(ensemble, surveys)?;
        ensemble.verify(Some(&request.cluster_id), Some(config.node_id()))?;
        if !request.ignore_formatted
            && let Some(first) = found.formatted.first()
        {
            return Err(FormatError::AlreadyFormatted {
                dir: first.clone(),
                formatted: found.formatted.clone(),
                blank: found.blank.clone(),
            });
        }
        if found.formatted.is_empty() && found.blank.is_empty() {
            return Err(FormatError::NoDirAvailable { skipped: found.skipped });
        }
        let is_controller = config.has_role(ProcessRole::Controller);
        let mut dirs = Vec::new();
        let mut ids: Vec<Uuid> = Vec::new();
        for path in &found.blank {
            let is_metadata = path == config.metadata_dir();
            let own = controllers
                .as_ref()
                .filter(|_| is_metadata)
                .and_then(|list| list.iter().find(|c| c.id == config.node_id()));
            let kind = match (&controllers, own) {
                _ if !is_metadata => DirKind::Data,
                (None, _) => DirKind::Metadata,
                (Some(_), None) => DirKind::DynamicMetadata,
                (Some(_), Some(_)) => DirKind::DynamicMetadataVoter,
            };
            let directory_id = match own {
                Some(own) => own.directory_id,
                None => loop {
                    let id = ensemble.fresh_directory_id(random);
                    let listed = controllers.iter().flatten().any(|c| c.directory_id == id);
                    if !ids.contains(&id) && !listed {
                        break id;
                    }
                },
            };
            ids.push(directory_id);
            let legacy_bootstrap = surveys.iter().any(|s| s.path == *path && s.legacy_bootstrap);
            if legacy_bootstrap && request.layout == Layout::V4_4 {
                let path = path.join(names::BOOTSTRAP_CHECKPOINT);
                warnings.push(FormatWarning::LegacyLeftOver { path });
            }
            if is_metadata && is_controller && !found.formatted.is_empty() && levels.kraft_version >= 1 {
                warnings.push(FormatWarning::VoterSetHasOldDirectory { dir: path.clone(), directory_id });
            }
            let zero_checkpoint = is_metadata
                && match request.layout {
                    Layout::V4_4 => is_controller,
                    Layout::V4_3 => controllers.is_some(),
                };
            dirs.push(PlannedDir {
                path: path.clone(),
                kind,
                directory_id,
                zero_checkpoint,
                legacy_bootstrap,
            });
        }
        dirs.sort_by_key(|dir| dir.kind != DirKind::Data);
        for survey in surveys {
            if !survey.foreign.is_empty() && dirs.iter().any(|dir| dir.path == survey.path) {
                let (dir, names) = (survey.path.clone(), survey.foreign.clone());
                warnings.push(FormatWarning::ForeignDirectories { dir, names });
            }
        }
        if dirs.is_empty() {
            let options = ignored_options(request);
            if !options.is_empty() {
                warnings.push(FormatWarning::ArgumentsIgnored { options });
            }
        }
        for (dir, error) in &found.skipped {
            warnings.push(FormatWarning::DirSkipped { dir: dir.clone(), reason: error.to_string() });
        }
        let voters = controllers.as_ref().map(|list| voters(list, config));
        Ok(FormatPlan {
            cluster_id: request.cluster_id.clone(),
            node_id: config.node_id(),
            layout: request.layout,
            metadata_version: levels.metadata_version,
            kraft_version: levels.kraft_version,
            features: levels.records,
            scram,
            records,
            voters,
            dirs,
            already_formatted: found.formatted,
            skipped: found.skipped,
            warnings,
        })
    }
}

/// Directories by what can be done with them.
struct Found {
    formatted: Vec<PathBuf>,
    blank: Vec<PathBuf>,
    skipped: Vec<(PathBuf, LogDirError)>,
}

impl Found {
    /// Sorts them out, and refuses those that nothing may be done with.
    fn sort(ensemble: &Ensemble, surveys: &[DirSurvey]) -> Result<Found, FormatError> {
        let mut found = Found { formatted: Vec::new(), blank: Vec::new(), skipped: Vec::new() };
        if let Some(DirSurvey { path, data: Some((file, what)), .. }) =
            surveys.iter().find(|survey| survey.data.is_some())
        {
            return Err(FormatError::DirectoryHasData { dir: path.clone(), path: file.clone(), what });
        }
        for dir in ensemble.dirs() {
            match &dir.state {
                DirState::Props(_) => found.formatted.push(dir.path.clone()),
                DirState::Blank | DirState::Missing => found.blank.push(dir.path.clone()),
                DirState::Error(LogDirError::Malformed {
                    path,
                    cause: MetaPropertiesError::EmptyMetaProperties,
                }) => return Err(FormatError::EmptyMetaProperties { path: path.clone() }),
                DirState::Error(error) => found.skipped.push((dir.path.clone(), error.clone())),
            }
        }
        let metadata_dir = found.skipped.iter().find(|(dir, _)| dir == ensemble.metadata_dir());
        if let Some((dir, cause)) = metadata_dir
            && found.skipped.len() < ensemble.dirs().len()
        {
            return Err(FormatError::MetadataDirUnavailable { dir: dir.clone(), cause: cause.clone() });
        }
        Ok(found)
    }
}

/// Ids are stored as given. What cannot be meant is refused before it is on disk (field case C-4);
/// what is odd is told (C-2, C-3).
fn check_cluster_id(id: &str, warnings: &mut Vec<FormatWarning>) -> Result<(), FormatError> {
    let refuse = |reason| Err(FormatError::InvalidClusterId { id: id.to_owned(), reason });
    if id.is_empty() {
        return refuse("it is empty");
    }
    if id.chars().any(char::is_control) {
        return refuse("it contains a control character");
    }
    if id.trim() != id {
        return refuse("it begins or ends with a blank");
    }
    if !id.is_ascii() {
        return refuse("it contains characters beyond ASCII, which Kafka does not read back");
    }
    match id.parse::<Uuid>() {
        Err(_) => warnings.push(FormatWarning::NonUuidClusterId { id: id.to_owned() }),
        Ok(uuid) => {
            let canonical = uuid.to_string();
            if canonical != id {
                warnings.push(FormatWarning::NonCanonicalClusterId { id: id.to_owned(), canonical });
            }
        }
    }
    Ok(())
}

/// The one voter of `--standalone` (B-52): first controller listener as other nodes see it, fresh id.
fn standalone(
    config: &NodeConfig,
    random: &mut dyn FnMut() -> u64,
) -> Result<InitialController, FormatError> {
    let Some(listener) = config.controller_listeners().first() else {
        // The configuration was checked to have one.
        return Err(FormatError::StandaloneOnBroker);
    };
    let port = u16::try_from(listener.port).ok().filter(|&port| port != 0);
    Ok(InitialController {
        id: config.node_id(),
        host: listener.host.clone().unwrap_or_else(|| "localhost".to_owned()),
        port: port.ok_or(FormatError::StandalonePort { port: listener.port })?,
        directory_id: Uuid::random(random),
    })
}

fn voters(list: &[InitialController], config: &NodeConfig) -> Voters {
    let listener = config.controller_listener_names().first().map_or("CONTROLLER", String::as_str);
    let voters = kafka_order(list.to_vec(), |c| c.id).into_iter().map(|c| Voter {
        id: c.id,
        directory_id: c.directory_id,
        endpoints: vec![Endpoint {
            name: listener.to_uppercase(),
            host: c.host,
            port: c.port,
            ..Endpoint::default()
        }],
        kraft_version_min: 0,
        kraft_version_max: 1,
        ..Voter::default()
    });
    Voters { voters: voters.collect(), ..Voters::default() }
}

/// Options that say something about the content, and so need a directory to be formatted.
fn ignored_options(request: &FormatRequest) -> Vec<&'static str> {
    let mut options = Vec::new();
    if !request.scram.is_empty() {
        options.push("--add-scram");
    }
    if request.release_version.is_some() {
        options.push("--release-version");
    }
    if !request.features.is_empty() {
        options.push("--feature");
    }
    match request.quorum {
        QuorumArgument::None | QuorumArgument::NoInitialControllers => {}
        QuorumArgument::Standalone => options.push("--standalone"),
        QuorumArgument::InitialControllers(_) => options.push("--initial-controllers"),
    }
    options
}
