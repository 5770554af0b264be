//! The `meta.properties` of all directories of a node: what each holds, and whether they agree.
//!
//! Reading never fails as a whole: each directory ends in one class (B-7 to B-9), and
//! [`Ensemble::verify`] says whether what was read can belong to one node (B-10 to B-14). Nothing
//! here writes.

use kraftlog_codecs::meta_properties::{MetaProperties, MetaPropertiesError};
use kraftlog_codecs::names;
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::disk::read_file;
use kraftlog_io::{Disk, EntryKind, IoError, Op};
use std::path::{Path, PathBuf};

/// No real file comes near this many bytes; what does is not read.
const META_PROPERTIES_BYTES_MAX: usize = 1 << 20;

/// All directories of a node, sorted by path.
#[derive(Debug, Clone)]
pub struct Ensemble {
    metadata_dir: PathBuf,
    dirs: Vec<LogDir>,
}

/// One log directory and what was read from it.
#[derive(Debug, Clone)]
pub struct LogDir {
    /// Its path, as configured.
    pub path: PathBuf,
    /// What was found there.
    pub state: DirState,
}

impl LogDir {
    /// Path of its `meta.properties`.
    pub fn meta_path(&self) -> PathBuf {
        self.path.join(names::META_PROPERTIES)
    }

    /// What its file says, if it has a readable one.
    pub fn props(&self) -> Option<&MetaProperties> {
        match &self.state {
            DirState::Props(props) => Some(props),
            _ => None,
        }
    }
}

/// The class of a directory (B-8).
#[derive(Debug, Clone)]
pub enum DirState {
    /// It has a readable `meta.properties`.
    Props(MetaProperties),
    /// The directory is there, the file is not.
    Blank,
    /// The directory is not there.
    Missing,
    /// Anything else.
    Error(LogDirError),
}

/// Why a directory cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LogDirError {
    /// A file, or something else, stands in its place.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Its `meta.properties` cannot be understood.
    #[error("{}: {cause}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: MetaPropertiesError,
    },
    /// It cannot be read.
    #[error("{error}: {}", error.cause)]
    Io {
        /// The operation that failed, on what, why.
        error: IoError,
    },
}

impl LogDirError {
    /// Short name of the failure, that of the field cases.
    pub fn name(&self) -> &'static str {
        match self {
            LogDirError::NotADirectory { .. } | LogDirError::Io { .. } => "LogDirUnavailable",
            LogDirError::Malformed { cause, .. } => match cause {
                MetaPropertiesError::EmptyMetaProperties => "EmptyMetaProperties",
                MetaPropertiesError::UnsupportedMetaVersion { .. } => "UnsupportedMetaVersion",
                MetaPropertiesError::ClusterIdMissing => "ClusterIdMissing",
                _ => "MetaPropertiesInvalid",
            },
        }
    }
}

/// Why the directories cannot belong to the node that is asked for. `Display` is Kafka's sentence
/// where it has one.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Another cluster's directory.
    #[error(
        "Invalid cluster.id in: {}. Expected \"{}\", but read \"{}\"",
        path.display(), expected.escape_debug(), found.escape_debug()
    )]
    ClusterIdMismatch {
        /// The file.
        path: PathBuf,
        /// The id asked for, or the first one seen.
        expected: String,
        /// The id in the file.
        found: String,
    },
    /// A file without a cluster id where there must be one.
    #[error("cluster ID not found in {}", path.display())]
    ClusterIdMissing {
        /// The file.
        path: PathBuf,
    },
    /// Another node's directory.
    #[error(
        "Stored node id {found} doesn't match previous node id {expected} in {}. If you moved your data, \
         make sure your configured node id matches. If you intend to create a new node, you should remove \
         all data in your data directories.",
        path.display()
    )]
    NodeIdMismatch {
        /// The file.
        path: PathBuf,
        /// The configured id.
        expected: i32,
        /// The id in the file.
        found: i32,
    },
    /// A file without a node id where there must be one.
    #[error("node ID not found in {}", path.display())]
    NodeIdMissing {
        /// The file.
        path: PathBuf,
    },
    /// An id that no directory may have.
    #[error("Invalid reserved directory ID {id} found in {}", dir.display())]
    ReservedDirectoryId {
        /// The directory.
        dir: PathBuf,
        /// Its id.
        id: Uuid,
    },
    /// One id in two directories: most likely one is a copy of the other.
    #[error(
        "Duplicate directory ID {id} found. It was the ID of {}, but also of {}",
        first.display(), second.display()
    )]
    DuplicateDirectoryId {
        /// The id.
        id: Uuid,
        /// One directory.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

impl IdentityError {
    /// Short name of the failure, that of the field cases.
    pub fn name(&self) -> &'static str {
        match self {
            IdentityError::ClusterIdMismatch { .. } => "ClusterIdMismatch",
            IdentityError::ClusterIdMissing { .. } => "ClusterIdMissing",
            IdentityError::NodeIdMismatch { .. } => "NodeIdMismatch",
            IdentityError::NodeIdMissing { .. } => "MetaPropertiesInvalid",
            IdentityError::ReservedDirectoryId { .. } => "MetaPropertiesInvalid",
            IdentityError::DuplicateDirectoryId { .. } => "DuplicateDirectoryId",
        }
    }

    /// What to say besides the sentence: what the eye does not see, and the next step.
    pub fn details(&self) -> Vec<String> {
        match self {
            IdentityError::ClusterIdMismatch { path, expected, found } => {
                let mut lines = Vec::new();
                let same = match (expected.parse::<Uuid>(), found.parse::<Uuid>()) {
                    (Ok(a), Ok(b)) => a == b,
                    _ => false,
                };
                if same {
                    lines.push("hint: same 16 bytes, different last character".to_owned());
                } else if expected.trim() == found.trim() {
                    lines.push("hint: the two differ in blanks around the id only".to_owned());
                }
                lines.push(format!(
                    "use the id \"{}\", or empty {} if its data may go; nothing was changed",
                    found.escape_debug(),
                    kraftlog_io::disk::parent(path).display()
                ));
                lines
            }
            IdentityError::NodeIdMismatch { expected, found, .. } => vec![format!(
                "configured node.id {expected}, stored {found}: set node.id={found} if this is that node's data; \
                 emptying the directory is right for a new node only"
            )],
            IdentityError::DuplicateDirectoryId { .. } => vec![
                "one is a copy of the other: take the copy out of log.dirs; nothing was changed".to_owned(),
            ],
            IdentityError::ReservedDirectoryId { .. } => {
                vec![
                    "Kafka gives the first hundred ids a meaning of their own; nothing was changed"
                        .to_owned(),
                ]
            }
            IdentityError::ClusterIdMissing { path } | IdentityError::NodeIdMissing { path } => {
                vec![format!("complete {} by hand; nothing was changed", path.display())]
            }
        }
    }
}

impl Ensemble {
    /// Reads the `meta.properties` of every directory. `dirs` is sorted and without duplicates, see
    /// [`NodeConfig::all_dirs`](super::NodeConfig::all_dirs).
    pub async fn load(disk: &dyn Disk, dirs: &[PathBuf], metadata_dir: &Path) -> Ensemble {
        let mut loaded = Vec::with_capacity(dirs.len());
        for path in dirs {
            loaded.push(LogDir { path: path.clone(), state: load_dir(disk, path).await });
        }
        Ensemble { metadata_dir: metadata_dir.to_path_buf(), dirs: loaded }
    }

    /// All directories, sorted.
    pub fn dirs(&self) -> &[LogDir] {
        &self.dirs
    }

    /// The metadata directory.
    pub fn metadata_dir(&self) -> &Path {
        &self.metadata_dir
    }

    /// What was read from `path`.
    pub fn dir(&self, path: &Path) -> Option<&LogDir> {
        self.dirs.iter().find(|dir| dir.path == path)
    }

    /// Directories with a readable file, with what it says.
    pub fn formatted(&self) -> impl Iterator<Item = (&LogDir, &MetaProperties)> {
        self.dirs.iter().filter_map(|dir| Some((dir, dir.props()?)))
    }

    /// Checks that all readable files name one cluster, one node and pairwise different directories.
    /// Without an expected id the first one seen, in sorted order, is the one that the others must
    /// have.
    ///
    /// # Errors
    /// The first disagreement; nothing is chosen and nothing repaired.
    pub fn verify(&self, cluster_id: Option<&str>, node_id: Option<i32>) -> Result<(), IdentityError> {
        let mut cluster_id = cluster_id;
        let mut node_id = node_id;
        let mut ids: Vec<(Uuid, &Path)> = Vec::new();
        for (dir, props) in self.formatted() {
            if let Some(found) = props.cluster_id.as_deref() {
                let expected = *cluster_id.get_or_insert(found);
                if expected != found {
                    return Err(IdentityError::ClusterIdMismatch {
                        path: dir.meta_path(),
                        expected: expected.to_owned(),
                        found: found.to_owned(),
                    });
                }
            }
            if let Some(found) = props.node_id {
                let expected = *node_id.get_or_insert(found);
                if expected != found {
                    return Err(IdentityError::NodeIdMismatch { path: dir.meta_path(), expected, found });
                }
            }
            if let Some(id) = props.directory_id {
                if id.is_reserved_directory() {
                    return Err(IdentityError::ReservedDirectoryId { dir: dir.path.clone(), id });
                }
                if let Some((_, first)) = ids.iter().find(|(other, _)| *other == id) {
                    return Err(IdentityError::DuplicateDirectoryId {
                        id,
                        first: first.to_path_buf(),
                        second: dir.path.clone(),
                    });
                }
                ids.push((id, &dir.path));
            }
        }
        Ok(())
    }

    /// A fresh directory id that none of these directories has.
    pub fn fresh_directory_id(&self, random: &mut dyn FnMut() -> u64) -> Uuid {
        loop {
            let id = Uuid::random(&mut *random);
            if self.formatted().all(|(_, props)| props.directory_id != Some(id)) {
                return id;
            }
        }
    }
}

async fn load_dir(disk: &dyn Disk, dir: &Path) -> DirState {
    let io = |error| DirState::Error(LogDirError::Io { error });
    match disk.stat(dir).await {
        Ok(None) => return DirState::Missing,
        Ok(Some(entry)) if entry.kind == EntryKind::Dir => {}
        Ok(Some(_)) => return DirState::Error(LogDirError::NotADirectory { path: dir.to_path_buf() }),
        Err(error) if is_not_a_directory(&error) => {
            return DirState::Error(LogDirError::NotADirectory {
                path: kraftlog_io::disk::parent(&error.path),
            });
        }
        Err(error) => return io(error),
    }
    let path = dir.join(names::META_PROPERTIES);
    match read_file(disk, &path, META_PROPERTIES_BYTES_MAX).await {
        Ok(None) => DirState::Blank,
        Ok(Some(bytes)) => match MetaProperties::parse(&bytes) {
            Ok(props) => DirState::Props(props),
            Err(cause) => DirState::Error(LogDirError::Malformed { path, cause }),
        },
        Err(error) => io(error),
    }
}

fn is_not_a_directory(error: &IoError) -> bool {
    error.op == Op::Stat && error.kind() == kraftlog_io::IoErrorKind::NotADirectory
}
