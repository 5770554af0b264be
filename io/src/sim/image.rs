//! What the simulated medium holds: directories and files, each part as programs see it and as it is
//! on the medium.
//!
//! Nothing here fails by design or by chance; that is `disk.rs` and `crash.rs`. Every change is put at
//! a moment, a number that only grows, so that a stricter file system can keep their order.

use super::FileSystem;
use super::versions::Versions;
use crate::disk::{Entry, EntryKind};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::sync::Arc;

/// What a disk writes whole or not at all.
pub(super) const SECTOR_BYTES: usize = 512;
/// Larger files are `EFBIG`.
const FILE_BYTES_MAX: u64 = 1 << 44;

pub(super) type Sector = Arc<[u8; SECTOR_BYTES]>;
/// The number of a file or directory.
pub(super) type Inode = u64;

const ROOT: Inode = 0;

#[derive(Debug, Clone)]
pub(super) struct FileNode {
    pub(super) len: Versions<u64>,
    /// `None` reads as zeros. Sectors that are and were zeros are not here.
    pub(super) sectors: BTreeMap<u64, Versions<Option<Sector>>>,
    /// The sectors that a crash decides about.
    pub(super) dirty: BTreeSet<u64>,
    pub(super) mode: u32,
    /// End of the space reserved behind the end.
    reserved: u64,
}

#[derive(Debug, Clone)]
pub(super) struct DirNode {
    pub(super) names: BTreeMap<String, Versions<Option<Inode>>>,
    pub(super) mode: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

/// All of a disk. Clones share what neither changes.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) nodes: BTreeMap<Inode, Arc<Node>>,
    pub(super) file_system: FileSystem,
    /// The last moment at which something changed.
    moment: u64,
    next_inode: Inode,
    /// Bytes that fit; `None` for as many as memory holds.
    pub(super) capacity_bytes: Option<u64>,
}

type Result<T> = std::result::Result<T, Errno>;

impl FileNode {
    fn new(mode: u32) -> FileNode {
        FileNode {
            len: Versions::fresh(0),
            sectors: BTreeMap::new(),
            dirty: BTreeSet::new(),
            mode,
            reserved: 0,
        }
    }

    pub(super) fn whole(len: u64, sectors: BTreeMap<u64, Versions<Option<Sector>>>, mode: u32) -> FileNode {
        FileNode { len: Versions::durable(len), sectors, dirty: BTreeSet::new(), mode, reserved: 0 }
    }

    /// What stands behind the end in its last sector reads as zeros if the file grows again.
    pub(super) fn clear_behind_end(&mut self) {
        let (index, within) = place(*self.len.live());
        if let Some(versions) = self.sectors.get_mut(&index)
            && let Some(sector) = versions.live()
        {
            let mut cleared = **sector;
            cleared[within..].fill(0);
            versions.rot(Some(Arc::new(cleared)));
        }
    }

    fn occupied(&self) -> u64 {
        (*self.len.live()).max(self.reserved)
    }

    fn read(&self, position: u64, len: usize) -> Vec<u8> {
        let end = position.saturating_add(len as u64).min(*self.len.live());
        let mut bytes = Vec::new();
        let mut at = position;
        while at < end {
            let (index, within) = place(at);
            let take = (SECTOR_BYTES - within).min(clamp(end - at));
            match self.sectors.get(&index).and_then(|sector| sector.live().as_ref()) {
                Some(sector) => bytes.extend_from_slice(&sector[within..within + take]),
                None => bytes.resize(bytes.len() + take, 0),
            }
            at += take as u64;
        }
        bytes
    }

    /// Changes a part of a sector; `None` for zeros.
    fn patch(&mut self, moment: u64, index: u64, within: usize, bytes: &[u8]) {
        let versions = self.sectors.entry(index).or_insert_with(|| Versions::fresh(None));
        let mut sector = versions.live().as_ref().map_or([0; SECTOR_BYTES], |sector| **sector);
        sector[within..within + bytes.len()].copy_from_slice(bytes);
        let zero = sector.iter().all(|byte| *byte == 0);
        versions.set(moment, (!zero).then(|| Arc::new(sector)));
        self.settle(index);
    }

    /// Keeps `dirty` and the map as their comments say.
    fn settle(&mut self, index: u64) {
        let Some(versions) = self.sectors.get(&index) else { return };
        match versions.is_dirty() {
            true => self.dirty.insert(index),
            false => self.dirty.remove(&index),
        };
        if !versions.is_dirty() && versions.live().is_none() && versions.on_medium().is_none() {
            self.sectors.remove(&index);
        }
    }

    fn write(&mut self, moment: u64, position: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (index, within) = place(position + done as u64);
            let take = (SECTOR_BYTES - within).min(bytes.len() - done);
            self.patch(moment, index, within, &bytes[done..done + take]);
            done += take;
        }
        let end = position + bytes.len() as u64;
        // Also when a failed sync has lost a length: bytes that reach the medium behind its end move it.
        if end > *self.len.live() || end > *self.len.on_medium() {
            self.len.set(moment, end.max(*self.len.live()));
        }
    }

    fn set_len(&mut self, moment: u64, len: u64) {
        let old = *self.len.live();
        if len < old {
            // What is behind the new end reads as zeros if the file grows again.
            let (index, within) = place(len);
            let first_whole = if within > 0 {
                if self.sectors.get(&index).is_some_and(|sector| sector.live().is_some()) {
                    self.patch(moment, index, within, &[0; SECTOR_BYTES][within..]);
                }
                index + 1
            } else {
                index
            };
            let behind: Vec<u64> = self.sectors.range(first_whole..).map(|(index, _)| *index).collect();
            for index in behind {
                if let Some(versions) = self.sectors.get_mut(&index) {
                    versions.set(moment, None);
                }
                self.settle(index);
            }
            self.reserved = self.reserved.min(len);
        }
        if len != old || len != *self.len.on_medium() {
            self.len.set(moment, len);
        }
    }

    fn sync(&mut self, moment: u64) {
        self.len.sync(moment);
        for index in std::mem::take(&mut self.dirty) {
            if let Some(versions) = self.sectors.get_mut(&index) {
                versions.sync(moment);
            }
            self.settle(index);
        }
    }

    /// Sector by sector, `arrives` says what a failed sync brought to the medium.
    fn lose(&mut self, cache_keeps: bool, arrives: &mut dyn FnMut() -> bool) {
        if self.len.is_dirty() {
            // The length is the inode's, which no failed write of a page takes back.
            self.len.lose(arrives(), true);
        }
        for index in std::mem::take(&mut self.dirty) {
            if let Some(versions) = self.sectors.get_mut(&index) {
                versions.lose(arrives(), cache_keeps);
            }
            self.settle(index);
        }
    }
}

impl DirNode {
    fn new(mode: u32) -> DirNode {
        DirNode { names: BTreeMap::new(), mode }
    }

    fn live(&self, name: &str) -> Option<Inode> {
        self.names.get(name).and_then(|entry| *entry.live())
    }

    fn set(&mut self, moment: u64, name: &str, to: Option<Inode>) {
        self.names.entry(name.to_owned()).or_insert_with(|| Versions::fresh(None)).set(moment, to);
        self.forget_gone();
    }

    fn forget_gone(&mut self) {
        self.names
            .retain(|_, entry| entry.is_dirty() || entry.live().is_some() || entry.on_medium().is_some());
    }
}

/// Sector and place in it of a position.
fn place(position: u64) -> (u64, usize) {
    let sector = SECTOR_BYTES as u64;
    (position / sector, clamp(position % sector))
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Image {
    /// An empty disk with a root directory.
    pub(super) fn new(file_system: FileSystem) -> Image {
        let root = Arc::new(Node::Dir(DirNode::new(0o755)));
        Image {
            nodes: BTreeMap::from([(ROOT, root)]),
            file_system,
            moment: 0,
            next_inode: ROOT + 1,
            capacity_bytes: None,
        }
    }

    /// The same disk with other content and nothing pending.
    pub(super) fn with_nodes(&self, nodes: BTreeMap<Inode, Arc<Node>>) -> Image {
        Image { nodes, ..*self }
    }

    fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Follows the live names. Paths are absolute.
    pub(super) fn look_up(&self, path: &Path) -> Result<Inode> {
        let mut at = ROOT;
        for name in names(path)? {
            at = self.dir(at)?.live(name).ok_or(Errno::NOENT)?;
        }
        Ok(at)
    }

    /// The directory that a path's last name is in, and the name.
    fn above<'a>(&self, path: &'a Path) -> Result<(Inode, &'a str)> {
        let mut names = names(path)?;
        let name = names.pop().ok_or(Errno::EXIST)?;
        let mut at = ROOT;
        for name in names {
            at = self.dir(at)?.live(name).ok_or(Errno::NOENT)?;
        }
        self.dir(at)?;
        Ok((at, name))
    }

    pub(super) fn dir(&self, inode: Inode) -> Result<&DirNode> {
        match self.nodes.get(&inode).map(|node| &**node) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(Errno::NOTDIR),
            None => Err(Errno::NOENT),
        }
    }

    fn dir_mut(&mut self, inode: Inode) -> Result<&mut DirNode> {
        match self.nodes.get_mut(&inode).map(Arc::make_mut) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(Errno::NOTDIR),
            None => Err(Errno::NOENT),
        }
    }

    fn dir_to_change(&mut self, inode: Inode) -> Result<&mut DirNode> {
        let dir = self.dir_mut(inode)?;
        if dir.mode & 0o200 == 0 {
            return Err(Errno::ACCESS);
        }
        Ok(dir)
    }

    fn file(&self, inode: Inode) -> Result<&FileNode> {
        match self.nodes.get(&inode).map(|node| &**node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(Errno::ISDIR),
            None => Err(Errno::NOENT),
        }
    }

    fn file_mut(&mut self, inode: Inode) -> Result<&mut FileNode> {
        match self.nodes.get_mut(&inode).map(Arc::make_mut) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(Errno::ISDIR),
            None => Err(Errno::NOENT),
        }
    }

    /// What stands at a path.
    pub(super) fn stat(&self, path: &Path) -> Result<Entry> {
        let inode = self.look_up(path)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(self.describe(name, inode))
    }

    fn describe(&self, name: String, inode: Inode) -> Entry {
        match self.file(inode) {
            Ok(file) => Entry { name, kind: EntryKind::File, len: *file.len.live() },
            Err(_) => Entry { name, kind: EntryKind::Dir, len: 0 },
        }
    }

    pub(super) fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        let dir = self.dir(self.look_up(path)?)?;
        let live = dir.names.iter().filter_map(|(name, entry)| Some((name, (*entry.live())?)));
        Ok(live.map(|(name, inode)| self.describe(name.clone(), inode)).collect())
    }

    /// Opens what is there, for reading or for writing too.
    pub(super) fn open(&self, path: &Path, write: bool) -> Result<Inode> {
        let inode = self.look_up(path)?;
        match self.file(inode) {
            Ok(file) if write && file.mode & 0o200 == 0 => Err(Errno::ACCESS),
            Ok(file) if file.mode & 0o400 == 0 => Err(Errno::ACCESS),
            Err(_) if write => Err(Errno::ISDIR),
            _ => Ok(inode),
        }
    }

    /// Makes a file, or empties what is there unless it must be new.
    pub(super) fn create(&mut self, path: &Path, mode: u32, new: bool) -> Result<Inode> {
        let (above, name) = self.above(path)?;
        match self.dir(above)?.live(name) {
            Some(_) if new => Err(Errno::EXIST),
            Some(_) => {
                let inode = self.open(path, true)?;
                self.set_len(inode, 0)?;
                Ok(inode)
            }
            None => self.add(above, name, Node::File(FileNode::new(mode))),
        }
    }

    fn add(&mut self, above: Inode, name: &str, node: Node) -> Result<Inode> {
        let (moment, inode) = (self.tick(), self.next_inode);
        self.dir_to_change(above)?.set(moment, name, Some(inode));
        self.nodes.insert(inode, Arc::new(node));
        self.next_inode += 1;
        Ok(inode)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> Result<()> {
        let (above, name) = self.above(path)?;
        if self.dir(above)?.live(name).is_some() {
            return Err(Errno::EXIST);
        }
        self.add(above, name, Node::Dir(DirNode::new(0o755))).map(|_| ())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        let (old_dir, old_name) = self.above(from)?;
        let inode = self.dir(old_dir)?.live(old_name).ok_or(Errno::NOENT)?;
        let (new_dir, new_name) = self.above(to)?;
        if let Some(there) = self.dir(new_dir)?.live(new_name) {
            if there == inode {
                return Ok(());
            }
            match (self.dir(inode), self.dir(there)) {
                (Err(_), Ok(_)) => return Err(Errno::ISDIR),
                (Ok(_), Err(_)) => return Err(Errno::NOTDIR),
                (Ok(_), Ok(dir)) if dir.names.values().any(|entry| entry.live().is_some()) => {
                    return Err(Errno::NOTEMPTY);
                }
                _ => {}
            }
        }
        self.dir_to_change(new_dir)?;
        // One moment for both names: a journal keeps them together, a weaker file system does not.
        let moment = self.tick();
        self.dir_to_change(old_dir)?.set(moment, old_name, None);
        self.dir_to_change(new_dir)?.set(moment, new_name, Some(inode));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<()> {
        let (above, name) = self.above(path)?;
        let inode = self.dir(above)?.live(name).ok_or(Errno::NOENT)?;
        if self.dir(inode).is_ok() {
            return Err(Errno::ISDIR);
        }
        let moment = self.tick();
        self.dir_to_change(above)?.set(moment, name, None);
        Ok(())
    }

    pub(super) fn len(&self, inode: Inode) -> Result<u64> {
        Ok(self.file(inode).map_or(0, |file| *file.len.live()))
    }

    pub(super) fn read(&self, inode: Inode, position: u64, len: usize) -> Result<Vec<u8>> {
        if i64::try_from(position).is_err() {
            return Err(Errno::INVAL);
        }
        Ok(self.file(inode)?.read(position, len))
    }

    /// Writes what fits and says how much that was; nothing fits: `ENOSPC`.
    pub(super) fn write(&mut self, inode: Inode, position: u64, bytes: &[u8]) -> Result<usize> {
        if i64::try_from(position).is_err() {
            return Err(Errno::INVAL);
        }
        let end = position.checked_add(bytes.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(Errno::FBIG)?;
        let growth = end.saturating_sub(self.file(inode)?.occupied());
        let missing = growth.saturating_sub(self.free_bytes());
        let fits = bytes.len() - clamp(missing).min(bytes.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(Errno::NOSPC);
        }
        let moment = self.tick();
        self.file_mut(inode)?.write(moment, position, &bytes[..fits]);
        Ok(fits)
    }

    pub(super) fn set_len(&mut self, inode: Inode, len: u64) -> Result<()> {
        if len > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        let moment = self.tick();
        self.file_mut(inode)?.set_len(moment, len);
        Ok(())
    }

    pub(super) fn allocate(&mut self, inode: Inode, extend: bool, position: u64, len: u64) -> Result<()> {
        let end = position.checked_add(len).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
        if end.saturating_sub(self.file(inode)?.occupied()) > self.free_bytes() {
            return Err(Errno::NOSPC);
        }
        let moment = self.tick();
        let file = self.file_mut(inode)?;
        if extend && end > *file.len.live() {
            file.len.set(moment, end);
        }
        file.reserved = file.reserved.max(end);
        Ok(())
    }

    pub(super) fn set_mode(&mut self, inode: Inode, mode: u32) -> Result<()> {
        match self.nodes.get_mut(&inode).map(Arc::make_mut) {
            Some(Node::File(file)) => file.mode = mode,
            Some(Node::Dir(dir)) => dir.mode = mode,
            None => return Err(Errno::NOENT),
        }
        Ok(())
    }

    /// Bytes that still fit.
    fn free_bytes(&self) -> u64 {
        let Some(capacity) = self.capacity_bytes else { return u64::MAX };
        let used: u64 = self
            .nodes
            .values()
            .map(|node| if let Node::File(file) = &**node { file.occupied() } else { 0 })
            .sum();
        capacity.saturating_sub(used)
    }

    /// fsync of a file. On a journal, all names that came before it are on the medium too.
    pub(super) fn sync(&mut self, inode: Inode) -> Result<()> {
        let moment = self.moment;
        match self.nodes.get_mut(&inode).map(Arc::make_mut) {
            Some(Node::File(file)) => file.sync(moment),
            Some(Node::Dir(dir)) => sync_names(dir, moment),
            None => return Err(Errno::NOENT),
        }
        if self.file_system == FileSystem::Ext4 {
            self.commit_journal();
        }
        Ok(())
    }

    fn commit_journal(&mut self) {
        let moment = self.moment;
        for node in self.nodes.values_mut() {
            if matches!(&**node, Node::Dir(dir) if dir.names.values().any(Versions::is_dirty))
                && let Node::Dir(dir) = Arc::make_mut(node)
            {
                sync_names(dir, moment);
            }
        }
    }

    /// A sync that failed: `arrives` says for each part whether it made it to the medium; the rest of a
    /// file's content is lost and will not be tried again.
    pub(super) fn lose(&mut self, inode: Inode, cache_keeps: bool, arrives: &mut dyn FnMut() -> bool) {
        let moment = self.moment;
        match self.nodes.get_mut(&inode).map(Arc::make_mut) {
            Some(Node::File(file)) => file.lose(cache_keeps, arrives),
            // Names are metadata: a journal that cannot be written stops the file system, it does not
            // forget. What did not arrive is still on its way.
            Some(Node::Dir(dir)) => {
                let dirty = dir.names.values_mut().filter(|entry| entry.is_dirty());
                dirty.filter(|_| arrives()).for_each(|entry| entry.sync(moment));
                dir.forget_gone();
            }
            None => {}
        }
    }

    /// Flips one bit of what is on the medium and in the cache.
    pub(super) fn flip_bit(&mut self, inode: Inode, position: u64, bit: u8) {
        let (index, within) = place(position);
        if let Ok(file) = self.file_mut(inode)
            && position < *file.len.live()
        {
            let versions = file.sectors.entry(index).or_insert_with(|| Versions::fresh(None));
            let mut sector = versions.live().as_ref().map_or([0; SECTOR_BYTES], |sector| **sector);
            sector[within] ^= 1 << (bit % 8);
            versions.rot(Some(Arc::new(sector)));
            file.dirty.remove(&index);
        }
    }

    /// Forgets files that no name leads to any more, in the cache or on the medium.
    pub(super) fn forget_nameless(&mut self, is_open: impl Fn(Inode) -> bool) {
        let mut named = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Dir(dir) = &**node {
                for entry in dir.names.values() {
                    named.extend(entry.candidates().into_iter().flatten());
                    named.extend(entry.live());
                }
            }
        }
        self.nodes.retain(|inode, _| named.contains(inode) || is_open(*inode));
    }

    /// Everything, as programs see it, is on the medium.
    pub(super) fn sync_everything(&mut self) {
        let moment = self.moment;
        for node in self.nodes.values_mut() {
            match Arc::make_mut(node) {
                Node::File(file) => file.sync(moment),
                Node::Dir(dir) => sync_names(dir, moment),
            }
        }
    }

    /// Calls `visit` with every file that a live name leads to.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&str, &FileNode)) {
        let mut path = String::new();
        self.walk_from(ROOT, &mut path, visit);
    }

    fn walk_from(&self, inode: Inode, path: &mut String, visit: &mut dyn FnMut(&str, &FileNode)) {
        match self.nodes.get(&inode).map(|node| &**node) {
            Some(Node::File(file)) => visit(path, file),
            Some(Node::Dir(dir)) => {
                for (name, entry) in &dir.names {
                    let Some(inode) = *entry.live() else { continue };
                    let before = path.len();
                    path.push('/');
                    path.push_str(name);
                    self.walk_from(inode, path, visit);
                    path.truncate(before);
                }
            }
            None => {}
        }
    }
}

fn sync_names(dir: &mut DirNode, moment: u64) {
    dir.names.values_mut().for_each(|entry| entry.sync(moment));
    dir.forget_gone();
}

/// The names of an absolute path.
fn names(path: &Path) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str().ok_or(Errno::ILSEQ)?),
            Component::ParentDir => {
                names.pop();
            }
            Component::Prefix(_) => return Err(Errno::INVAL),
        }
    }
    Ok(names)
}
