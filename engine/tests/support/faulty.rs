//! A runtime whose disk fails where a test says.

use bytes::{Bytes, BytesMut};
use kraftlog_io::rt::{BoxFuture, LaneFn};
use kraftlog_io::{
    Allocate, AppendSyncError, DirId, Disk, Entry, File, HeldLock, IoError, LocalFuture, LockError, Op,
    OpenHow, Rt,
};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What fails, switched while a test runs.
#[derive(Default)]
pub(crate) struct Faults {
    /// Writes and new files find no space.
    pub(crate) full: AtomicBool,
    /// `append_and_sync` writes, then its sync fails.
    pub(crate) sync_fails: AtomicBool,
    /// Bytes given out by `read_at`.
    pub(crate) bytes_read: AtomicU64,
}

pub(crate) struct FaultyRt {
    pub(crate) inner: Arc<dyn Rt>,
    pub(crate) faults: Arc<Faults>,
}

impl Rt for FaultyRt {
    fn spawn_lane(&self, name: &str, dir: &Path, lane: LaneFn) -> Result<(), IoError> {
        let faults = Arc::clone(&self.faults);
        self.inner.spawn_lane(
            name,
            dir,
            Box::new(move |inner| lane(Rc::new(FaultyDisk { inner, faults }) as Rc<dyn Disk>)),
        )
    }
    fn sleep(&self, time: Duration) -> BoxFuture<()> {
        self.inner.sleep(time)
    }
    fn now(&self) -> Duration {
        self.inner.now()
    }
    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }
    fn random(&self) -> u64 {
        self.inner.random()
    }
    fn block_on<'a>(&self, future: Pin<Box<dyn Future<Output = ()> + 'a>>) {
        self.inner.block_on(future);
    }
    fn dir_id(&self, dir: &Path) -> Result<DirId, IoError> {
        self.inner.dir_id(dir)
    }
    fn lock_dir(&self, dir: &Path) -> Result<Box<dyn HeldLock>, LockError> {
        self.inner.lock_dir(dir)
    }
}

struct FaultyDisk {
    inner: Rc<dyn Disk>,
    faults: Arc<Faults>,
}

fn no_space(op: Op, path: &Path) -> IoError {
    IoError::new(op, path, std::io::Error::from(std::io::ErrorKind::StorageFull))
}

impl Disk for FaultyDisk {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }
    fn open<'a>(&'a self, path: &'a Path, how: OpenHow) -> LocalFuture<'a, Result<Rc<dyn File>, IoError>> {
        Box::pin(async move {
            let makes = matches!(how, OpenHow::CreateNew { .. } | OpenHow::CreateOrTruncate { .. });
            if makes && self.faults.full.load(Ordering::SeqCst) {
                return Err(no_space(Op::Create, path));
            }
            let inner = self.inner.open(path, how).await?;
            let faults = Arc::clone(&self.faults);
            Ok(Rc::new(FaultyFile { inner, faults, path: path.to_path_buf() }) as Rc<dyn File>)
        })
    }
    fn list<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<Vec<Entry>, IoError>> {
        self.inner.list(dir)
    }
    fn stat<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<Option<Entry>, IoError>> {
        self.inner.stat(path)
    }
    fn create_dir<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.create_dir(path)
    }
    fn rename<'a>(&'a self, from: &'a Path, to: &'a Path) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.rename(from, to)
    }
    fn remove<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.remove(path)
    }
    fn sync_dir<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.sync_dir(dir)
    }
}

struct FaultyFile {
    inner: Rc<dyn File>,
    faults: Arc<Faults>,
    path: PathBuf,
}

impl File for FaultyFile {
    fn path(&self) -> &Path {
        &self.path
    }
    fn len<'a>(&'a self) -> LocalFuture<'a, Result<u64, IoError>> {
        self.inner.len()
    }
    fn read_at<'a>(
        &'a self,
        position: u64,
        len: usize,
        buf: BytesMut,
    ) -> LocalFuture<'a, Result<BytesMut, IoError>> {
        Box::pin(async move {
            let before = buf.len();
            let buf = self.inner.read_at(position, len, buf).await?;
            self.faults.bytes_read.fetch_add((buf.len() - before) as u64, Ordering::SeqCst);
            Ok(buf)
        })
    }
    fn write_at<'a>(&'a self, position: u64, bufs: Vec<Bytes>) -> LocalFuture<'a, Result<(), IoError>> {
        if self.faults.full.load(Ordering::SeqCst) {
            return Box::pin(async { Err(no_space(Op::Write, &self.path)) });
        }
        self.inner.write_at(position, bufs)
    }
    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, Result<(), AppendSyncError>> {
        Box::pin(async move {
            if self.faults.full.load(Ordering::SeqCst) {
                // A full disk takes what fits.
                let part = bufs[0].slice(..bufs[0].len() / 2);
                self.inner.write_at(position, vec![part]).await.map_err(AppendSyncError::Write)?;
                return Err(AppendSyncError::Write(no_space(Op::Write, &self.path)));
            }
            if self.faults.sync_fails.load(Ordering::SeqCst) {
                self.inner.write_at(position, bufs).await.map_err(AppendSyncError::Write)?;
                if let Some(written) = written {
                    written();
                }
                let cause = std::io::Error::from_raw_os_error(5);
                return Err(AppendSyncError::Sync(IoError::new(Op::Sync, &self.path, cause)));
            }
            self.inner.append_and_sync(position, bufs, written).await
        })
    }
    fn sync_data<'a>(&'a self) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.sync_data()
    }
    fn sync_all<'a>(&'a self) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.sync_all()
    }
    fn allocate<'a>(
        &'a self,
        how: Allocate,
        position: u64,
        len: u64,
    ) -> LocalFuture<'a, Result<(), IoError>> {
        if self.faults.full.load(Ordering::SeqCst) {
            return Box::pin(async { Err(no_space(Op::Allocate, &self.path)) });
        }
        self.inner.allocate(how, position, len)
    }
    fn set_len<'a>(&'a self, len: u64) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.set_len(len)
    }
    fn set_mode<'a>(&'a self, mode: u32) -> LocalFuture<'a, Result<(), IoError>> {
        self.inner.set_mode(mode)
    }
}

impl super::Place {
    /// Another directory, on a disk that can be made to fail.
    pub(crate) fn faulty(&self) -> (super::Place, Arc<Faults>) {
        let faults = Arc::new(Faults::default());
        let mut place = self.another();
        place.rt = Arc::new(FaultyRt { inner: Arc::clone(&self.rt), faults: Arc::clone(&faults) });
        (place, faults)
    }
}
