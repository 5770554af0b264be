//! A metadata directory that is ours: locked, with the runtime and the back end that serve it.
//!
//! The lock lives as long as any clone of [`MetadataDir`], any log opened in it, and any lane that
//! still drains. Opening the same directory again in this process waits while only lanes are left; a
//! directory that somebody still holds a handle of is `Locked`.
//!
//! This file takes the lock and picks the back end; it reads and writes nothing in the directory.

use crate::error::{ErrorKind, io_kind};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use kraftlog_io::{
    BackendChoice, BackendError, BackendReport, DirId, DirLock, HeldLock, IoError, LockError, Rt, ThreadRt,
};
use std::collections::HashMap;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Waker};

/// Why a directory could not be taken. Nothing was changed in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirError {
    /// A running node, another tool, or another handle in this process has it; or it has no lock to take.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The back end asked for cannot be had here.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl DirError {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            DirError::Lock(LockError::Io(cause)) | DirError::Backend(BackendError::Io(cause)) => {
                io_kind(cause)
            }
            DirError::Lock(_) => ErrorKind::Locked,
            DirError::Backend(_) => ErrorKind::Unsupported,
        }
    }
}

/// One locked directory: the metadata log and the vote in it share a lane and a fence.
#[derive(Clone)]
pub struct MetadataDir {
    inner: Arc<DirInner>,
    /// Held by handles only, never by lanes: when the last one goes, only lanes are left.
    _held: Arc<Held>,
}

/// What lanes hold of the directory.
pub(crate) struct DirInner {
    path: PathBuf,
    rt: Arc<dyn Rt>,
    backend: BackendReport,
    /// One log at a time.
    log: Mutex<LogPlace>,
    next_log: AtomicU64,
    use_: Arc<Use>,
    lock: Box<dyn HeldLock>,
    /// Last field: tells those who wait once the lock is free.
    _freed: Freed,
}

/// The place for the one log of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogPlace {
    Free,
    /// There are handles of the log with this number.
    Open(u64),
    /// Only lanes are left.
    Draining,
}

/// What a later open of the same directory in this process waits for.
struct Use {
    handles_gone: AtomicBool,
    freed: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Use {
    async fn freed(&self) {
        poll_fn(|context| {
            self.waiting.lock().push(context.waker().clone());
            match self.freed.load(Ordering::SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

struct Held {
    use_: Arc<Use>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.use_.handles_gone.store(true, Ordering::SeqCst);
    }
}

/// Wakes waiting opens after the lock is freed: dropped behind it.
struct Freed(Arc<Use>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.freed.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}

fn in_use() -> &'static Mutex<HashMap<DirId, Weak<Use>>> {
    static IN_USE: OnceLock<Mutex<HashMap<DirId, Weak<Use>>>> = OnceLock::new();
    IN_USE.get_or_init(|| Mutex::new(HashMap::new()))
}

impl MetadataDir {
    /// Takes the directory's lock, as a running Kafka would (behaviour.md B-24), and picks the back end:
    /// `KRAFTLOG_IO` if it is set, else `choice`.
    ///
    /// If an earlier log of this process still drains in the directory, this waits for it.
    ///
    /// # Errors
    /// [`DirError::Lock`] if a process, or a handle in this one, has the directory;
    /// [`DirError::Backend`] if `choice` asks for what this machine lacks.
    ///
    /// # Cancel safety
    /// Dropping the future frees what it had taken.
    pub async fn open(path: &Path, choice: BackendChoice) -> Result<MetadataDir, DirError> {
        // The lock first: picking the back end may write a probe.
        let acquire = || DirLock::acquire(path).map(|lock| Box::new(lock) as Box<dyn HeldLock>);
        let (lock, id) = lock(|| DirId::of(path), acquire).await?;
        let (rt, backend) = ThreadRt::open(path, BackendChoice::from_env_or(choice)?)?;
        Ok(MetadataDir::held(path, rt, backend, lock, id))
    }

    /// As [`open`](MetadataDir::open), blocking this thread.
    ///
    /// # Errors
    /// Those of [`open`](MetadataDir::open).
    pub fn open_blocking(path: &Path, choice: BackendChoice) -> Result<MetadataDir, DirError> {
        kraftlog_io::rt::block_on(MetadataDir::open(path, choice))
    }

    /// A directory on a runtime of the caller's own, such as a simulated one. Takes the lock.
    ///
    /// # Errors
    /// Those of [`open`](MetadataDir::open), back ends aside.
    pub async fn with_rt(
        path: &Path,
        rt: Arc<dyn Rt>,
        backend: BackendReport,
    ) -> Result<MetadataDir, DirError> {
        let (lock, id) = lock(|| rt.dir_id(path), || rt.lock_dir(path)).await?;
        Ok(MetadataDir::held(path, rt, backend, lock, id))
    }

    fn held(
        path: &Path,
        rt: Arc<dyn Rt>,
        backend: BackendReport,
        lock: Box<dyn HeldLock>,
        id: DirId,
    ) -> MetadataDir {
        let use_ = Arc::new(Use {
            handles_gone: AtomicBool::new(false),
            freed: AtomicBool::new(false),
            waiting: Mutex::new(Vec::new()),
        });
        let mut in_use = in_use().lock();
        in_use.retain(|_, held| held.strong_count() > 0);
        in_use.insert(id, Arc::downgrade(&use_));
        drop(in_use);
        let held = Arc::new(Held { use_: Arc::clone(&use_) });
        let inner = Arc::new(DirInner {
            path: path.to_path_buf(),
            rt,
            backend,
            log: Mutex::new(LogPlace::Free),
            next_log: AtomicU64::new(0),
            use_: Arc::clone(&use_),
            lock,
            _freed: Freed(use_),
        });
        MetadataDir { inner, _held: held }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Which back end serves it, and why that one.
    pub fn backend(&self) -> &BackendReport {
        &self.inner.backend
    }

    /// Clock, sleep and lanes of the directory.
    pub fn rt(&self) -> &Arc<dyn Rt> {
        &self.inner.rt
    }

    pub(crate) fn inner(&self) -> &Arc<DirInner> {
        &self.inner
    }
}

impl DirInner {
    /// Claims the directory for one log; the lease frees it.
    pub(crate) fn claim_log(self: &Arc<DirInner>) -> Option<LogLease> {
        let mut place = self.log.lock();
        match *place {
            LogPlace::Free => {
                let number = self.next_log.fetch_add(1, Ordering::SeqCst);
                *place = LogPlace::Open(number);
                Some(LogLease { dir: Arc::clone(self), number })
            }
            LogPlace::Open(_) | LogPlace::Draining => None,
        }
    }

    /// True if waiting for [`log_freed`](DirInner::log_freed) has an end.
    pub(crate) fn log_is_draining(&self) -> bool {
        !matches!(*self.log.lock(), LogPlace::Open(_))
    }

    /// Whether the lock still keeps others out. A Kafka that lets go deletes the file of whoever has taken
    /// the lock in between.
    pub(crate) fn lock_is_intact(&self) -> bool {
        self.lock.is_intact()
    }

    /// Waits for the change that frees the log's place, if only lanes are left of it.
    pub(crate) async fn log_freed(&self) {
        poll_fn(|context| {
            self.use_.waiting.lock().push(context.waker().clone());
            // Looked at behind the entry in the list: what frees it in between finds the waker there.
            match *self.log.lock() {
                LogPlace::Free => Poll::Ready(()),
                LogPlace::Open(_) | LogPlace::Draining => Poll::Pending,
            }
        })
        .await;
    }
}

/// The right to be the one log of a directory. Held by the log's lanes; dropped when all have ended.
pub(crate) struct LogLease {
    dir: Arc<DirInner>,
    number: u64,
}

impl LogLease {
    /// The last handle of this log is gone. (A closed log has handles too, and there may be another log by
    /// then.)
    pub(crate) fn drains(&self) {
        let mut place = self.dir.log.lock();
        if *place == LogPlace::Open(self.number) {
            *place = LogPlace::Draining;
        }
    }
}

impl Drop for LogLease {
    fn drop(&mut self) {
        *self.dir.log.lock() = LogPlace::Free;
        self.dir.use_.wake();
    }
}

/// Takes the lock, waiting for lanes of this process that still drain.
async fn lock(
    id: impl Fn() -> Result<DirId, IoError>,
    acquire: impl Fn() -> Result<Box<dyn HeldLock>, LockError>,
) -> Result<(Box<dyn HeldLock>, DirId), DirError> {
    loop {
        // Looked up before the lock is tried: what frees it in between shows as `freed`, not as a failure.
        let id = id().map_err(LockError::from)?;
        let used = used_here(id);
        match acquire() {
            Ok(lock) => return Ok((lock, id)),
            Err(error @ LockError::Locked { .. }) => {
                let draining = used.filter(|used| used.handles_gone.load(Ordering::SeqCst));
                match draining {
                    Some(used) => used.freed().await,
                    None => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The use of a directory in this process, if there is one that has not freed its lock yet.
fn used_here(id: DirId) -> Option<Arc<Use>> {
    let used = in_use().lock().get(&id).and_then(Weak::upgrade)?;
    (!used.freed.load(Ordering::SeqCst)).then_some(used)
}
