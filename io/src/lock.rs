//! The lock on a directory that keeps a running JVM out, and keeps us out of a running JVM's.
//!
//! Kafka locks `DIR/.lock` with `FileChannel.tryLock`, which is a POSIX record lock (`fcntl`) over
//! the whole file. Such a lock belongs to the process: a second one by the same process succeeds, and
//! closing *any* descriptor of the file gives it up. So this process opens `.lock` only here, under
//! one registry of the directories that it holds (`registry.rs`), and never while it holds that directory.
//! The registry knows a directory by device and inode: two names for one directory are one lock.
//!
//! Kafka deletes the file when it lets go, and so do we. Whoever gets a lock on a file that was
//! deleted meanwhile has nothing, so the name is looked up again after locking. We delete *before* we
//! let go; Kafka deletes after it, which leaves it a window of microseconds that
//! [`DirLock::is_intact`] tells of.
//!
//! After a crash the file may be left; a lock dies with its process, so it locks nobody out.

use crate::error::{IoError, Op, Result};
use crate::registry::Registry;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Flock, FlockType};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Name of the lock file, Kafka's.
pub const LOCK_FILE: &str = ".lock";

/// How often a lock file may be deleted under our hands before we call the directory locked: each
/// time somebody else had it.
const ATTEMPTS_MAX: usize = 100;

/// Why a directory could not be locked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody has it: another process (a running Kafka node, or kraftlog), or this one.
    #[error("{} is in use by {}", path.display(), holder_text(*this_process, *holder_pid))]
    Locked {
        /// The directory, by the name that was asked for.
        path: PathBuf,
        /// The process that has it, where the system can tell.
        holder_pid: Option<u32>,
        /// Whether that is this very process.
        this_process: bool,
    },
    /// The lock file could not be opened, or the file system has no locks.
    #[error(transparent)]
    Io(#[from] IoError),
}

fn holder_text(this_process: bool, pid: Option<u32>) -> String {
    match (this_process, pid) {
        (true, _) => "this process; close it first".into(),
        (false, Some(pid)) => format!("process {pid}; stop that node first"),
        (false, None) => "another process; stop that node first".into(),
    }
}

/// Who holds a directory's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHolder {
    /// The process, where the system can tell (not across machines or PID namespaces).
    pub pid: Option<u32>,
    /// Whether it is this process.
    pub this_process: bool,
}

/// Device and inode.
type Id = (u64, u64);

/// Which directory it is, whatever path led to it. Equal for one directory of one machine only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId {
    /// 0 for the machine that we run on, else a simulated one.
    machine: u64,
    id: Id,
}

impl DirId {
    /// The directory at a path of this machine.
    ///
    /// # Errors
    /// If nothing or no directory is there.
    pub fn of(dir: &Path) -> Result<DirId> {
        Ok(DirId { machine: 0, id: dir_id(dir)? })
    }

    #[cfg(feature = "sim")]
    pub(crate) fn simulated(machine: u64, inode: u64) -> DirId {
        DirId { machine, id: (0, inode) }
    }

    #[cfg(feature = "sim")]
    pub(crate) fn inode(&self) -> u64 {
        self.id.1
    }
}

/// A held lock on a directory, of this machine or a simulated one. Dropping it lets go.
pub trait HeldLock: Send + Sync {
    /// Whether it still keeps others out.
    fn is_intact(&self) -> bool;
}

impl HeldLock for DirLock {
    fn is_intact(&self) -> bool {
        DirLock::is_intact(self)
    }
}

/// The directories that this process holds. Whoever opens or closes a `.lock` does it in here.
static HELD: LazyLock<Registry<Id>> = LazyLock::new(Registry::new);

/// A held lock on a directory. Dropping it deletes the lock file and lets go.
#[derive(Debug)]
pub struct DirLock {
    /// The one descriptor of the lock file in this process; `None` only while dropping.
    file: Option<File>,
    dir: PathBuf,
    dir_id: Id,
}

impl DirLock {
    /// Locks a directory, or says at once who has it. Makes `.lock` if there is none.
    ///
    /// Nothing is made durable: the lock dies with the process.
    ///
    /// # Errors
    /// [`LockError::Locked`] if it is held; [`LockError::Io`] with the path of the directory if that
    /// cannot be looked at or is none, with that of the lock file if that cannot be made or locked.
    pub fn acquire(dir: &Path) -> std::result::Result<DirLock, LockError> {
        DirLock::acquire_with(dir, || {})
    }

    /// `opened` is called between opening the lock file and locking it, for tests to get in between.
    fn acquire_with(dir: &Path, opened: impl FnMut()) -> std::result::Result<DirLock, LockError> {
        let dir_id = dir_id(dir)?;
        let file = HELD
            .acquire(dir_id, || open_locked(dir, opened))
            .unwrap_or_else(|| Err(locked(dir, Some(std::process::id()), true)))?;
        Ok(DirLock { file: Some(file), dir: dir.to_path_buf(), dir_id })
    }

    /// Who holds a directory, if anybody. Writes nothing, and does not disturb a lock that this
    /// process holds. The answer may be old when it arrives.
    ///
    /// # Errors
    /// Those of the disk, with the path.
    pub fn probe(dir: &Path) -> Result<Option<LockHolder>> {
        let dir_id = dir_id(dir)?;
        // The descriptor is closed again in there: closing it would give up a lock taken meanwhile.
        let looked = HELD.unless_held(dir_id, || {
            let path = dir.join(LOCK_FILE);
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(e) => return Err(IoError::new(Op::Lock, &path, e)),
            };
            Ok(conflict(&file, &path)?.map(|pid| LockHolder { pid, this_process: false }))
        });
        looked.unwrap_or(Ok(Some(LockHolder { pid: Some(std::process::id()), this_process: true })))
    }

    /// The directory, by the name that it was locked by.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the lock file still has its name. Once somebody deleted it, others can make and lock a
    /// new one: ask before the first write to a directory.
    pub fn is_intact(&self) -> bool {
        self.file.as_ref().is_some_and(|file| is_at(file, &self.dir.join(LOCK_FILE)).unwrap_or(false))
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        HELD.release(self.dir_id, || {
            if self.is_intact() {
                // A lock file that cannot be deleted locks nobody out.
                let _ = fs::remove_file(self.dir.join(LOCK_FILE));
            }
            drop(self.file.take());
        });
    }
}

/// Opens the lock file of a directory, making it if there is none, and locks it.
fn open_locked(dir: &Path, mut opened: impl FnMut()) -> std::result::Result<File, LockError> {
    let path = dir.join(LOCK_FILE);
    for _ in 0..ATTEMPTS_MAX {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| IoError::new(Op::Lock, &path, e))?;
        opened();
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::AGAIN) => return Err(locked(dir, holder(&file, &path)?, false)),
            Err(Errno::INTR) => continue,
            Err(e) => return Err(IoError::new(Op::Lock, &path, e).into()),
        }
        if is_at(&file, &path)? {
            return Ok(file);
        }
    }
    Err(locked(dir, None, false))
}

fn locked(dir: &Path, holder_pid: Option<u32>, this_process: bool) -> LockError {
    LockError::Locked { path: dir.to_path_buf(), holder_pid, this_process }
}

fn dir_id(dir: &Path) -> Result<Id> {
    let meta = fs::metadata(dir).map_err(|e| IoError::new(Op::Lock, dir, e))?;
    if !meta.is_dir() {
        return Err(IoError::new(Op::Lock, dir, io::ErrorKind::NotADirectory));
    }
    Ok(id(&meta))
}

fn id(meta: &Metadata) -> Id {
    (meta.dev(), meta.ino())
}

/// Whether `path` still names the open file.
fn is_at(file: &File, path: &Path) -> Result<bool> {
    let failed = |e| IoError::new(Op::Lock, path, e);
    let ours = file.metadata().map_err(failed)?;
    match fs::metadata(path) {
        Ok(there) => Ok(id(&there) == id(&ours)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(e)),
    }
}

/// Process that holds a lock which kept us out; `None` if it let go meanwhile or cannot be told.
fn holder(file: &File, path: &Path) -> Result<Option<u32>> {
    Ok(conflict(file, path)?.flatten())
}

/// The lock of another process that stands in the way of ours: its process, where it can be told.
fn conflict(file: &File, path: &Path) -> Result<Option<Option<u32>>> {
    // From 0 with length 0 is the whole file, and all that it may grow to.
    let wanted = Flock::from(FlockType::WriteLock);
    match rustix::process::fcntl_getlk(file, &wanted) {
        Ok(None) => Ok(None),
        Ok(Some(lock)) => Ok(Some(lock.pid.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()))),
        Err(e) => Err(IoError::new(Op::Lock, path, e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_file_that_was_deleted_meanwhile_is_tried_again_on_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK_FILE);
        let mut times = 0;
        let lock = DirLock::acquire_with(dir.path(), || {
            // The holder lets go between our opening and our locking, twice.
            times += 1;
            if times <= 2 {
                fs::remove_file(&path).unwrap();
            }
        });
        assert!(lock.unwrap().is_intact());
        assert_eq!(times, 3);
    }

    #[test]
    fn a_lock_file_that_never_stays_is_somebody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK_FILE);
        let lock = DirLock::acquire_with(dir.path(), || fs::remove_file(&path).unwrap());
        assert!(matches!(lock, Err(LockError::Locked { this_process: false, .. })), "{lock:?}");
        // And nothing of the attempts is left in the registry.
        drop(DirLock::acquire(dir.path()).unwrap());
    }
}
