//! The simulated disk as programs see it: [`Disk`] and [`File`] over an [`Image`], with faults.
//!
//! Every operation takes effect at its first poll, in one or more [`Step`]s, and then waits as long as
//! its latency says. Dropping it after that loses the answer only.

use super::crash::{self, AllCrashes};
use super::fault::{Fault, Step};
use super::image::{Image, Inode, SECTOR_BYTES};
use super::machine::Clock;
use super::{FileSystem, Latency};
use crate::disk::{Allocate, AppendSyncError, Disk, Entry, File, LocalFuture, OpenHow};
use crate::error::{IoError, Op, Result};
use crate::lock::{DirId, HeldLock, LockError};
use crate::planted::{self, Plant};
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Looks at the disk before each step, and may let it go wrong.
pub type StepHook = Box<dyn FnMut(&SimDisk, &Step) -> Option<Fault> + Send>;

/// A simulated disk. Clones are handles of one disk; [`fork`](SimDisk::fork) makes another one.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

struct Shared {
    id: u64,
    state: Mutex<State>,
    /// Apart from the state, so that a hook may use the disk.
    hook: Mutex<Option<StepHook>>,
}

struct State {
    image: Image,
    rng: fastrand::Rng,
    steps: u64,
    open: BTreeMap<Inode, usize>,
    locked: BTreeSet<Inode>,
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl SimDisk {
    /// An empty disk. The seed decides what faults leave undecided.
    pub fn new(file_system: FileSystem, seed: u64) -> SimDisk {
        SimDisk::of(Image::new(file_system), seed)
    }

    fn of(image: Image, seed: u64) -> SimDisk {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let state = State {
            image,
            rng: fastrand::Rng::with_seed(seed),
            steps: 0,
            open: BTreeMap::new(),
            locked: BTreeSet::new(),
        };
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        SimDisk { shared: Arc::new(Shared { id, state: Mutex::new(state), hook: Mutex::new(None) }) }
    }

    /// Another disk with the same content, also of what is pending, that goes its own way. It has no
    /// hook and nobody holds its locks.
    pub fn fork(&self, seed: u64) -> SimDisk {
        SimDisk::of(self.shared.state.lock().image.clone(), seed)
    }

    /// The disk as it is found after a power cut now. Of everything that was not synced, the seed
    /// decides what survives: one crash in eight keeps all and one in eight nothing, because both are
    /// likelier in life than by chance.
    pub fn crash(&self, seed: u64) -> SimDisk {
        let mut rng = fastrand::Rng::with_seed(seed);
        let kind = rng.u8(..8);
        self.crash_choosing(seed, &mut |of| match kind {
            0 => 0,
            1 => of - 1,
            // Old and new alike, or mostly the one or the other.
            2 | 3 => {
                if rng.u8(..8) == 0 {
                    rng.usize(..of)
                } else {
                    0
                }
            }
            4 | 5 => {
                if rng.u8(..8) == 0 {
                    rng.usize(..of)
                } else {
                    of - 1
                }
            }
            _ => rng.usize(..of),
        })
    }

    /// The disk after a power cut of which `choose` answers every question, given how many answers it
    /// has: 0 keeps what was on the medium, the last one the newest.
    pub fn crash_choosing(&self, seed: u64, choose: &mut dyn FnMut(usize) -> usize) -> SimDisk {
        let image = self.shared.state.lock().image.clone();
        SimDisk::of(crash::crash(&image, choose), seed)
    }

    /// The next of all disks that a power cut now can leave; `None` after the last. Ask with one
    /// `walk`, and change nothing meanwhile.
    pub fn next_crash(&self, walk: &mut AllCrashes, seed: u64) -> Option<SimDisk> {
        if !walk.advance() {
            return None;
        }
        let mut number = 0;
        Some(self.crash_choosing(seed, &mut |of| {
            let answer = walk.answer(number, of);
            number += 1;
            answer
        }))
    }

    /// In how many ways a power cut now can turn out, counted up to `most`.
    pub fn crashes(&self, most: usize) -> usize {
        let image = self.shared.state.lock().image.clone();
        let mut walk = AllCrashes::default();
        let mut count = 0;
        while count < most && walk.advance() {
            let mut number = 0;
            crash::crash(&image, &mut |of| {
                let answer = walk.answer(number, of);
                number += 1;
                answer
            });
            count += 1;
        }
        count
    }

    /// Sets who looks at each step before it is taken. He may use the disk, but not set another hook.
    pub fn on_step(&self, hook: impl FnMut(&SimDisk, &Step) -> Option<Fault> + Send + 'static) {
        *self.shared.hook.lock() = Some(Box::new(hook));
    }

    /// Nobody looks any more.
    pub fn clear_hook(&self) {
        // Dropped outside of the lock: what the hook owns may use the disk.
        let hook = self.shared.hook.lock().take();
        drop(hook);
    }

    /// Lets only so many bytes fit; `None` for as many as memory holds.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.state.lock().image.capacity_bytes = bytes;
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.shared.state.lock().steps
    }

    // ---- what a test does from outside, which is no step and needs no sync

    /// The content of a file as programs see it; `None` if there is none.
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.shared.state.lock();
        let inode = state.image.look_up(path).ok()?;
        state.image.read(inode, 0, usize::MAX).ok()
    }

    /// Puts a file in place, durably, with the directories above it.
    ///
    /// # Errors
    /// If something else stands there.
    pub fn write(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        let mut state = self.shared.state.lock();
        let image = &mut state.image;
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for dir in above.into_iter().rev() {
            if image.look_up(dir).is_err() {
                image.create_dir(dir)?;
            }
        }
        let inode = match image.look_up(path) {
            Ok(inode) => inode,
            Err(_) => image.create(path, 0o644, true)?,
        };
        image.set_len(inode, 0)?;
        if image.write(inode, 0, content)? < content.len() {
            return Err(Errno::NOSPC.into());
        }
        image.sync_everything();
        Ok(())
    }

    /// Makes a directory with those above it, durably.
    ///
    /// # Errors
    /// If a file stands in the way.
    pub fn make_dir(&self, path: &Path) -> std::io::Result<()> {
        let mut state = self.shared.state.lock();
        let above: Vec<&Path> = path.ancestors().collect();
        for dir in above.into_iter().rev() {
            if state.image.look_up(dir).is_err() {
                state.image.create_dir(dir)?;
            }
        }
        state.image.sync_everything();
        Ok(())
    }

    /// Removes a file, durably.
    ///
    /// # Errors
    /// If there is none.
    pub fn remove_file(&self, path: &Path) -> std::io::Result<()> {
        let mut state = self.shared.state.lock();
        state.image.remove(path)?;
        state.image.sync_everything();
        Ok(())
    }

    /// Every file with its content as programs see it, by path.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.shared.state.lock();
        let mut paths = Vec::new();
        state.image.walk(&mut |path, _| paths.push(PathBuf::from(path)));
        let read = |path: &PathBuf| state.image.read(state.image.look_up(path).ok()?, 0, usize::MAX).ok();
        paths.into_iter().filter_map(|path| Some((path.clone(), read(&path)?))).collect()
    }

    /// A number that two disks share if programs see the same files with the same content on them.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.shared.state.lock().image.walk(&mut |path, file| {
            path.hash(&mut hasher);
            file.len.live().hash(&mut hasher);
            for (index, sector) in &file.sectors {
                if let Some(sector) = sector.live() {
                    index.hash(&mut hasher);
                    sector.hash(&mut hasher);
                }
            }
        });
        hasher.finish()
    }

    // ---- for the machine

    pub(super) fn dir_id(&self, dir: &Path) -> Result<DirId> {
        let failed = |e: Errno| IoError::new(Op::Lock, dir, e);
        let state = self.shared.state.lock();
        let inode = state.image.look_up(dir).map_err(failed)?;
        state.image.dir(inode).map_err(failed)?;
        Ok(DirId::simulated(self.shared.id, inode))
    }

    pub(super) fn lock_dir(&self, dir: &Path) -> std::result::Result<Box<dyn HeldLock>, LockError> {
        let inode = self.dir_id(dir)?.inode();
        if !self.shared.state.lock().locked.insert(inode) {
            return Err(LockError::Locked { path: dir.to_path_buf(), holder_pid: None, this_process: true });
        }
        Ok(Box::new(SimLock { disk: self.clone(), inode }))
    }

    pub(super) fn for_lane(&self, clock: &Arc<Clock>, latency: Latency) -> Rc<dyn Disk> {
        Rc::new(LaneDisk { disk: self.clone(), clock: Arc::clone(clock), latency })
    }

    /// Takes one step: counts it, lets the hook look, and hands on what goes wrong.
    fn step(&self, op: Op, path: &Path, to: Option<&Path>, position: u64, len: u64) -> Option<Fault> {
        let number = {
            let mut state = self.shared.state.lock();
            state.steps += 1;
            state.steps
        };
        // Taken out while it runs, so that it may use the disk.
        let mut hook = self.shared.hook.lock().take()?;
        let to = to.map(Path::to_path_buf);
        let fault = hook(self, &Step { number, op, path: path.to_path_buf(), to, position, len });
        self.shared.hook.lock().get_or_insert(hook);
        fault
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.shared.state.lock())
    }

    /// A step that is done whole or not at all.
    fn simple<T>(
        &self,
        op: Op,
        path: &Path,
        to: Option<&Path>,
        range: (u64, u64),
        skipped: impl FnOnce() -> Option<T>,
        work: impl FnOnce(&mut State) -> std::result::Result<T, Errno>,
    ) -> Result<T> {
        let done = match self.step(op, path, to, range.0, range.1) {
            Some(Fault::Fails(errno)) => Err(errno),
            Some(Fault::Skipped) => match skipped() {
                Some(answer) => Ok(answer),
                None => self.with(work),
            },
            _ => self.with(work),
        };
        done.map_err(|errno| IoError::new(op, path, errno))
    }
}

struct SimLock {
    disk: SimDisk,
    inode: Inode,
}

impl HeldLock for SimLock {
    fn is_intact(&self) -> bool {
        true
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.with(|state| state.locked.remove(&self.inode));
    }
}

struct LaneDisk {
    disk: SimDisk,
    clock: Arc<Clock>,
    latency: Latency,
}

impl LaneDisk {
    async fn wait(&self, op: Op) {
        wait(&self.clock, self.latency, op).await;
    }
}

async fn wait(clock: &Arc<Clock>, latency: Latency, op: Op) {
    if let Some(time) = clock.latency(latency, op) {
        clock.sleep(time).await;
    }
}

impl Disk for LaneDisk {
    fn backend(&self) -> &'static str {
        "sim"
    }

    fn open<'a>(&'a self, path: &'a Path, how: OpenHow) -> LocalFuture<'a, Result<Rc<dyn File>>> {
        Box::pin(async move {
            let (op, write) = match how {
                OpenHow::Read => (Op::Open, false),
                OpenHow::Write => (Op::Open, true),
                OpenHow::CreateNew { .. } | OpenHow::CreateOrTruncate { .. } => (Op::Create, true),
            };
            let opened = self.disk.simple(
                op,
                path,
                None,
                (0, 0),
                || None,
                |state| {
                    let inode = match how {
                        OpenHow::Read | OpenHow::Write => state.image.open(path, write)?,
                        OpenHow::CreateNew { mode } => state.image.create(path, mode, true)?,
                        OpenHow::CreateOrTruncate { mode } => state.image.create(path, mode, false)?,
                    };
                    *state.open.entry(inode).or_default() += 1;
                    Ok(inode)
                },
            );
            self.wait(op).await;
            let handle = Handle { disk: self.disk.clone(), inode: opened?, path: path.to_path_buf(), write };
            let file = SimFile { handle, clock: Arc::clone(&self.clock), latency: self.latency };
            Ok(Rc::new(file) as Rc<dyn File>)
        })
    }

    fn list<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<Vec<Entry>>> {
        Box::pin(async move {
            let entries = self.disk.simple(Op::List, dir, None, (0, 0), || None, |s| s.image.list(dir));
            self.wait(Op::List).await;
            entries
        })
    }

    fn stat<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<Option<Entry>>> {
        Box::pin(async move {
            let entry = self.disk.simple(
                Op::Stat,
                path,
                None,
                (0, 0),
                || None,
                |s| match s.image.stat(path) {
                    Err(Errno::NOENT) => Ok(None),
                    entry => entry.map(Some),
                },
            );
            self.wait(Op::Stat).await;
            entry
        })
    }

    fn create_dir<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let made =
                self.disk.simple(Op::CreateDir, path, None, (0, 0), || None, |s| s.image.create_dir(path));
            self.wait(Op::CreateDir).await;
            made
        })
    }

    fn rename<'a>(&'a self, from: &'a Path, to: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let done = self.disk.simple(
                Op::Rename,
                from,
                Some(to),
                (0, 0),
                || Some(()),
                |s| s.image.rename(from, to),
            );
            self.wait(Op::Rename).await;
            done
        })
    }

    fn remove<'a>(&'a self, path: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let gone =
                self.disk.simple(Op::Remove, path, None, (0, 0), || Some(()), |s| s.image.remove(path));
            self.wait(Op::Remove).await;
            gone
        })
    }

    fn sync_dir<'a>(&'a self, dir: &'a Path) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let synced = sync(&self.disk, Op::SyncDir, dir, |state| match state.image.look_up(dir) {
                Ok(inode) => state.image.dir(inode).map(|_| inode),
                Err(errno) => Err(errno),
            });
            self.wait(Op::SyncDir).await;
            synced
        })
    }
}

/// fsync, or what goes wrong with it.
fn sync(
    disk: &SimDisk,
    op: Op,
    path: &Path,
    find: impl FnOnce(&State) -> std::result::Result<Inode, Errno>,
) -> Result<()> {
    let fault = disk.step(op, path, None, 0, 0);
    let synced = disk.with(|state| {
        let inode = find(state)?;
        match fault {
            Some(Fault::Fails(errno)) => Err(errno),
            Some(Fault::Skipped) => Ok(()),
            Some(Fault::LostSync { cache_keeps }) => {
                let rng = &mut state.rng;
                state.image.lose(inode, cache_keeps, &mut || rng.bool());
                Err(Errno::IO)
            }
            _ => {
                state.image.sync(inode)?;
                let State { image, open, .. } = state;
                image.forget_nameless(|inode| open.contains_key(&inode));
                Ok(())
            }
        }
    });
    synced.map_err(|errno| IoError::new(op, path, errno))
}

/// What an open file is to the disk, counted for as long as it is open.
struct Handle {
    disk: SimDisk,
    inode: Inode,
    path: PathBuf,
    write: bool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.disk.with(|state| {
            if let Some(count) = state.open.get_mut(&self.inode) {
                *count -= 1;
                if *count == 0 {
                    state.open.remove(&self.inode);
                }
            }
        });
    }
}

struct SimFile {
    handle: Handle,
    clock: Arc<Clock>,
    latency: Latency,
}

impl Handle {
    fn failed(&self, op: Op, errno: Errno) -> IoError {
        IoError::new(op, &self.path, errno)
    }

    fn read(&self, position: u64, len: usize, mut buf: BytesMut) -> Result<BytesMut> {
        let fault = self.disk.step(Op::Read, &self.path, None, position, len as u64);
        if let Some(Fault::Fails(errno)) = fault {
            return Err(self.failed(Op::Read, errno));
        }
        let read = self.disk.with(|state| {
            let from = match fault {
                Some(Fault::Misdirected) => other_sector(state, self.inode, position),
                _ => position,
            };
            let mut bytes = state.image.read(self.inode, from, len)?;
            if let Some(Fault::BitFlip) = fault
                && !bytes.is_empty()
            {
                let at = state.rng.usize(..bytes.len());
                bytes[at] ^= 1 << state.rng.u8(..8);
            }
            Ok(bytes)
        });
        buf.extend_from_slice(&read.map_err(|errno| self.failed(Op::Read, errno))?);
        Ok(buf)
    }

    /// As the system call: takes a part perhaps, and says how much.
    fn write_some(&self, position: u64, bytes: &[u8]) -> Result<usize> {
        let fault = self.disk.step(Op::Write, &self.path, None, position, bytes.len() as u64);
        if !self.write {
            return Err(self.failed(Op::Write, Errno::BADF));
        }
        let written = self.disk.with(|state| {
            let (mut at, mut part) = (position, bytes);
            match fault {
                Some(Fault::Skipped) => return Ok(bytes.len()),
                Some(Fault::Fails(errno)) => {
                    let left = state.rng.usize(..=bytes.len());
                    if left > 0 {
                        state.image.write(self.inode, position, &bytes[..left])?;
                    }
                    return Err(errno);
                }
                Some(Fault::ShortWrite) if bytes.len() > 1 => {
                    part = &bytes[..state.rng.usize(1..bytes.len())];
                }
                Some(Fault::Misdirected) => at = other_sector(state, self.inode, position),
                _ => {}
            }
            let written = state.image.write(self.inode, at, part)?;
            if let Some(Fault::BitFlip) = fault {
                let byte = at + state.rng.u64(..written.max(1) as u64);
                let bit = state.rng.u8(..8);
                state.image.flip_bit(self.inode, byte, bit);
            }
            Ok(written)
        });
        written.map_err(|errno| self.failed(Op::Write, errno))
    }

    /// All of the buffers, in as many system calls as it takes.
    fn write(&self, position: u64, bufs: &[Bytes]) -> Result<()> {
        let bytes: Bytes = match bufs {
            [one] => one.clone(),
            many => many.iter().flatten().copied().collect::<Vec<u8>>().into(),
        };
        let (mut at, mut rest) = (position, bytes);
        while !rest.is_empty() {
            let written = self.write_some(at, &rest)?;
            if planted::is(Plant::TrustShortWrite) {
                return Ok(());
            }
            rest.advance(written);
            at += written as u64;
        }
        Ok(())
    }

    fn change(
        &self,
        op: Op,
        range: (u64, u64),
        work: impl FnOnce(&mut Image) -> std::result::Result<(), Errno>,
    ) -> Result<()> {
        let writable = self.write || op == Op::SetMode;
        self.disk.simple(
            op,
            &self.path,
            None,
            range,
            || Some(()),
            |state| match writable {
                true => work(&mut state.image),
                false => Err(Errno::INVAL),
            },
        )
    }
}

/// Where a misdirected access lands: as many bytes into another sector of the same file.
fn other_sector(state: &mut State, inode: Inode, position: u64) -> u64 {
    let sectors = state.image.len(inode).unwrap_or(0).div_ceil(SECTOR_BYTES as u64).max(2);
    let there = state.rng.u64(..sectors);
    there * SECTOR_BYTES as u64 + position % SECTOR_BYTES as u64
}

impl SimFile {
    async fn wait(&self, op: Op) {
        wait(&self.clock, self.latency, op).await;
    }

    fn sync(&self) -> Result<()> {
        sync(&self.handle.disk, Op::Sync, &self.handle.path, |_| Ok(self.handle.inode))
    }

    async fn changed(&self, op: Op, done: Result<()>) -> Result<()> {
        self.wait(op).await;
        done
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.handle.path
    }

    fn len<'a>(&'a self) -> LocalFuture<'a, Result<u64>> {
        Box::pin(async move {
            let Handle { disk, path, inode, .. } = &self.handle;
            disk.simple(Op::Stat, path, None, (0, 0), || None, |state| state.image.len(*inode))
        })
    }

    fn read_at<'a>(&'a self, position: u64, len: usize, buf: BytesMut) -> LocalFuture<'a, Result<BytesMut>> {
        Box::pin(async move {
            let read = self.handle.read(position, len, buf);
            self.wait(Op::Read).await;
            read
        })
    }

    fn write_at<'a>(&'a self, position: u64, bufs: Vec<Bytes>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { self.changed(Op::Write, self.handle.write(position, &bufs)).await })
    }

    fn append_and_sync<'a>(
        &'a self,
        position: u64,
        bufs: Vec<Bytes>,
        written: Option<Box<dyn FnOnce() + 'a>>,
    ) -> LocalFuture<'a, std::result::Result<(), AppendSyncError>> {
        Box::pin(async move {
            let wrote = self.changed(Op::Write, self.handle.write(position, &bufs)).await;
            wrote.map_err(AppendSyncError::Write)?;
            if let Some(written) = written {
                written();
            }
            self.changed(Op::Sync, self.sync()).await.map_err(AppendSyncError::Sync)
        })
    }

    fn sync_data<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { self.changed(Op::Sync, self.sync()).await })
    }

    fn sync_all<'a>(&'a self) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move { self.changed(Op::Sync, self.sync()).await })
    }

    fn allocate<'a>(&'a self, how: Allocate, position: u64, len: u64) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let (inode, extend) = (self.handle.inode, how == Allocate::Extend);
            let done = self
                .handle
                .change(Op::Allocate, (position, len), |image| image.allocate(inode, extend, position, len));
            self.changed(Op::Allocate, done).await
        })
    }

    fn set_len<'a>(&'a self, len: u64) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let inode = self.handle.inode;
            let done = self.handle.change(Op::SetLen, (len, 0), |image| image.set_len(inode, len));
            self.changed(Op::SetLen, done).await
        })
    }

    fn set_mode<'a>(&'a self, mode: u32) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let inode = self.handle.inode;
            let done = self.handle.change(Op::SetMode, (0, 0), |image| image.set_mode(inode, mode));
            self.changed(Op::SetMode, done).await
        })
    }
}
