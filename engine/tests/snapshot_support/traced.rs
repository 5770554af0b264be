//! A runtime that writes down what the bulk lane does to the disk, and makes one step fail.

use bytes::{Bytes, BytesMut};
use kraftlog_io::rt::{BoxFuture, LaneFn};
use kraftlog_io::{
    Allocate, AppendSyncError, DirId, Disk, Entry, File, HeldLock, IoError, LocalFuture, LockError, Op,
    OpenHow, Rt,
};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Result<T> = std::result::Result<T, IoError>;

/// Steps in their order, and the step that fails from now on.
#[derive(Default)]
pub struct Trace {
    steps: Mutex<Vec<String>>,
    fails: Mutex<Option<(&'static str, i32)>>,
}

impl Trace {
    /// Steps so far, each once where it comes several times in a row.
    pub fn steps(&self) -> Vec<String> {
        let mut steps = self.steps.lock().unwrap().clone();
        steps.dedup();
        steps
    }

    /// Every step that begins with `step` fails with this number of the operating system.
    pub fn fail(&self, step: &'static str, errno: i32) {
        *self.fails.lock().unwrap() = Some((step, errno));
    }

    pub fn mend(&self) {
        *self.fails.lock().unwrap() = None;
    }

    fn step(&self, op: Op, path: &Path, step: String) -> Result<()> {
        self.steps.lock().unwrap().push(step.clone());
        match *self.fails.lock().unwrap() {
            Some((fails, errno)) if step.starts_with(fails) => {
                Err(IoError::new(op, path, std::io::Error::from_raw_os_error(errno)))
            }
            _ => Ok(()),
        }
    }
}

pub struct TracedRt {
    pub inner: Arc<dyn Rt>,
    pub trace: Arc<Trace>,
}

impl Rt for TracedRt {
    fn spawn_lane(&self, name: &str, dir: &Path, lane: LaneFn) -> Result<()> {
        if name != "kraftlog-bulk" {
            return self.inner.spawn_lane(name, dir, lane);
        }
        let trace = Arc::clone(&self.trace);
        let lane: LaneFn = Box::new(move |inner| lane(Rc::new(TracedDisk { inner, trace }) as Rc<dyn Disk>));
        self.inner.spawn_lane(name, dir, lane)
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
    fn dir_id(&self, dir: &Path) -> Result<DirId> {
        self.inner.dir_id(dir)
    }
    fn lock_dir(&self, dir: &Path) -> std::result::Result<Box<dyn HeldLock>, LockError> {
        self.inner.lock_dir(dir)
    }
}

struct TracedDisk {
    inner: Rc<dyn Disk>,
    trace: Arc<Trace>,
}

/// `part` for any name of a checkpoint in the making, else the name.
fn short(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    if name.ends_with(".part") { "part".to_string() } else { name.to_string() }
}

impl Disk for TracedDisk {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }
    fn open<'a>(&'a self, path: &'a Path, how: OpenHow) -> LocalFuture<'a, Result<Rc<dyn File>>> {
        Box::pin(async move {
            if let OpenHow::CreateNew { mode } = how {
                self.trace.step(Op::Create, path, format!("create {} {mode:o}", short(path)))?;
            }
            let inner = self.inner.open(path, how).await?;
            let trace = Arc::clone(&self.trace);
            Ok(Rc::new(TracedFile { inner, trace }) as Rc<dyn File>)
        })
    }
    fn list<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<Vec<Entry>>> {
        self.inner.list(dir)
    }
    fn stat<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<Option<Entry>>> {
        self.inner.stat(path)
    }
    fn create_dir<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>> {
        self.inner.create_dir(path)
    }
    fn rename<'a>(&'a self, from: &'a Path, to: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            self.trace.step(Op::Rename, from, format!("rename {} to {}", short(from), short(to)))?;
            self.inner.rename(from, to).await
        })
    }
    fn remove<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            self.trace.step(Op::Remove, path, format!("remove {}", short(path)))?;
            self.inner.remove(path).await
        })
    }
    fn sync_dir<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            self.trace.step(Op::SyncDir, dir, "sync the directory".to_string())?;
            self.inner.sync_dir(dir).await
        })
    }
}

struct TracedFile {
    inner: Rc<dyn File>,
    trace: Arc<Trace>,
}

impl TracedFile {
    fn step(&self, op: Op, what: &str) -> Result<()> {
        let path = self.inner.path();
        self.trace.step(op, path, format!("{what} {}", short(path)))
    }
}

impl File for TracedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn len<'a>(&'a self) -> LocalFuture<'a, Result<u64>> {
        self.inner.len()
    }
    fn read_at<'a>(&'a self, position: u64, len: usize, buf: BytesMut) -> LocalFuture<'a, Result<BytesMut>> {
        Box::pin(async move {
            self.step(Op::Read, "read")?;
            self.inner.read_at(position, len, buf).await
        })
    }
    fn write_at<'a>(&'a self, position: u64, bufs: Vec<Bytes>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let bytes: usize = bufs.iter().map(Bytes::len).sum();
            assert!(bytes <= 256 * 1024, "{bytes} bytes at once");
            self.step(Op::Write, "write")?;
            self.inner.write_at(position, bufs).await
        })
    }
    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, std::result::Result<(), AppendSyncError>> {
        self.inner.append_and_sync(position, bufs, written)
    }
    fn sync_data<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            self.step(Op::Sync, "fdatasync")?;
            self.inner.sync_data().await
        })
    }
    fn sync_all<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            self.step(Op::Sync, "fsync")?;
            self.inner.sync_all().await
        })
    }
    fn allocate<'a>(&'a self, how: Allocate, position: u64, len: u64) -> LocalFuture<'a, Result<()>> {
        self.inner.allocate(how, position, len)
    }
    fn set_len<'a>(&'a self, len: u64) -> LocalFuture<'a, Result<()>> {
        self.inner.set_len(len)
    }
    fn set_mode<'a>(&'a self, mode: u32) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            self.step(Op::SetMode, &format!("mode {mode:o}"))?;
            self.inner.set_mode(mode).await
        })
    }
}
