//! Why a format was refused or failed.

use super::voters::InitialControllersError;
use crate::node::{IdentityError, LogDirError};
use crate::scram::ScramError;
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_io::IoError;
use kraftlog_io::lock::LockError;
use std::path::PathBuf;

/// Why nothing, or not everything, was formatted. Where `kafka-storage` has a sentence for it,
/// `Display` is that sentence; [`details`](FormatError::details) has what an operator needs besides.
///
/// All but [`Locked`](FormatError::Locked), [`Changed`](FormatError::Changed) and
/// [`Io`](FormatError::Io) are found before the first write.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FormatError {
    #[error("Unknown metadata.version '{version}'. Supported metadata.version are: {supported}")]
    UnknownReleaseVersion { version: String, supported: String },
    #[error("Can't parse feature=level string {argument}: equals sign not found.")]
    FeatureWithoutEquals { argument: String },
    #[error("Can't parse feature=level string {argument}: unable to parse {level} as a short.")]
    FeatureLevelNotAShort { argument: String, level: String },
    #[error(
        "You cannot specify controller.quorum.voters and format the node with --initial-controllers or \
         --standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify \
         controller.quorum.bootstrap.servers instead."
    )]
    StaticVotersWithDynamicFlag,
    #[error(transparent)]
    InitialControllers(#[from] InitialControllersError),
    #[error("You can only use --standalone on a controller.")]
    StandaloneOnBroker,
    #[error("Invalid port {port} in dynamic voter string.")]
    StandalonePort { port: i32 },
    #[error(
        "Because controller.quorum.voters is not set on this controller, you must specify one of the \
         following: --standalone, --initial-controllers, or --no-initial-controllers."
    )]
    NoQuorumFlag,
    #[error("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")]
    MetadataVersionTwice,
    #[error("metadata.version {version} is not yet stable.")]
    UnstableMetadataVersion { version: MetadataVersion },
    #[error(
        "No MetadataVersion with feature level {level}. Valid feature levels are from {lowest} to {highest}."
    )]
    UnknownMetadataVersion { level: i16, lowest: i16, highest: i16 },
    #[error("Unsupported feature: {name}. Supported features are: {supported}")]
    UnknownFeature { name: String, supported: String },
    #[error("No feature:{name} with feature level {level}")]
    UnknownFeatureLevel { name: &'static str, level: i16 },
    #[error("{name} could not be set to {level} because it depends on {needs} level {needs_level}")]
    FeatureDependency { name: &'static str, level: i16, needs: &'static str, needs_level: i16 },
    #[error(
        "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags \
         --standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers \
         support, try removing the --feature flag for kraft.version."
    )]
    KraftVersionTooLow,
    #[error(
        "Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one of the flags \
         --standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers \
         support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and \
         removing controller.quorum.voters."
    )]
    KraftVersionTooHigh { level: i16 },
    #[error("SCRAM is only supported in metadata.version 3.5-IV2 or later.")]
    ScramTooEarly,
    #[error(transparent)]
    Scram(#[from] ScramError),
    #[error("Invalid cluster.id \"{}\": {reason}", id.escape_debug())]
    InvalidClusterId { id: String, reason: &'static str },
    #[error(
        "The total record(s) size of {size} exceeds the maximum allowed batch size of {limit} for the \
         bootstrap records"
    )]
    BatchTooLarge { size: usize, limit: usize },
    #[error("a bootstrap record cannot be encoded")]
    Record(#[from] kraftlog_codecs::error::EncodeError),

    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(
        "Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and format \
         the others.",
        dir.display()
    )]
    AlreadyFormatted { dir: PathBuf, formatted: Vec<PathBuf>, blank: Vec<PathBuf> },
    #[error("{} holds {what}, but {} does not name its cluster", path.display(), dir.join("meta.properties").display())]
    DirectoryHasData { dir: PathBuf, path: PathBuf, what: &'static str },
    #[error("{} is empty: damage, most likely of a power loss", path.display())]
    EmptyMetaProperties { path: PathBuf },
    #[error("the metadata directory {} cannot be used", dir.display())]
    MetadataDirUnavailable {
        dir: PathBuf,
        #[source]
        cause: LogDirError,
    },
    #[error("No available log directories to format.")]
    NoDirAvailable { skipped: Vec<(PathBuf, LogDirError)> },

    #[error(transparent)]
    Locked(#[from] LockError),
    #[error("{} changed while it was being formatted", path.display())]
    Changed { path: PathBuf },
    #[error(transparent)]
    Io(#[from] IoError),
}

impl FormatError {
    /// Short name of the failure, for programs; those of the field cases where they have one.
    pub fn name(&self) -> &'static str {
        use FormatError as E;
        match self {
            E::UnknownReleaseVersion { .. } => "UnknownReleaseVersion",
            E::InitialControllers(_) | E::StandalonePort { .. } => "InvalidInitialControllers",
            E::Scram(_) | E::ScramTooEarly => "InvalidScram",
            E::InvalidClusterId { .. } => "InvalidClusterId",
            E::BatchTooLarge { .. } => "BatchTooLarge",
            E::Identity(error) => error.name(),
            E::AlreadyFormatted { .. } => "AlreadyFormatted",
            E::DirectoryHasData { .. } => "DirectoryHasData",
            E::EmptyMetaProperties { .. } => "EmptyMetaProperties",
            E::MetadataDirUnavailable { .. } | E::NoDirAvailable { .. } => "LogDirUnavailable",
            E::Locked(LockError::Io(error)) | E::Io(error) => io_name(error),
            E::Locked(_) => "DirectoryLocked",
            E::Changed { .. } => "DirectoryLocked",
            _ => "UsageError",
        }
    }

    /// What to say besides the sentence: places, the values expected and found, the next step. One
    /// line each.
    pub fn details(&self) -> Vec<String> {
        use FormatError as E;
        let dirs = |list: &[PathBuf]| {
            list.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        match self {
            E::InitialControllers(error) => vec![error.place()],
            E::Scram(error) => vec![error.place()],
            E::InvalidClusterId { .. } => {
                vec!["use the id that the other nodes have, or make one with random-uuid".to_owned()]
            }
            E::AlreadyFormatted { formatted, blank, .. } => {
                let mut lines = vec![format!("formatted: {}", dirs(formatted))];
                if !blank.is_empty() {
                    lines.push(format!("not formatted: {}", dirs(blank)));
                }
                lines
            }
            E::DirectoryHasData { dir, .. } => vec![format!(
                "nothing was changed; move the data away, or restore {} if this node is to go on with it",
                dir.join("meta.properties").display()
            )],
            E::EmptyMetaProperties { .. } => vec![
                "nothing was changed; restore the file (cluster.id and node.id are those of this node's other \
                 directories), or empty the directory if its data may go"
                    .to_owned(),
            ],
            E::MetadataDirUnavailable { cause, .. } => {
                vec![cause.to_string(), "nothing was written".to_owned()]
            }
            E::NoDirAvailable { skipped } => {
                skipped.iter().map(|(dir, cause)| format!("{}: {cause}", dir.display())).collect()
            }
            E::BatchTooLarge { .. } => {
                vec!["give fewer --add-scram here and add the other users to the running cluster".to_owned()]
            }
            E::Identity(error) => error.details(),
            E::Changed { .. } => vec!["another format or a node is at work there; look again".to_owned()],
            _ => Vec::new(),
        }
    }
}

fn io_name(error: &IoError) -> &'static str {
    use kraftlog_io::IoErrorKind as K;
    match error.kind() {
        K::PermissionDenied | K::ReadOnly => "PermissionDenied",
        K::NoSpace => "NoSpace",
        K::TooManyOpenFiles => "TooManyOpenFiles",
        K::NotADirectory => "LogDirUnavailable",
        _ => "IoError",
    }
}
