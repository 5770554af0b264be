//! What a power cut leaves, and all the ways in which it could have left something else.
//!
//! A **choice** is a question with a number of answers: which of the versions since the last sync does
//! this sector, length or name have? Whoever answers the questions decides the crash: a seed, or a
//! systematic walk over all answers ([`AllCrashes`]).

use super::FileSystem;
use super::image::{FileNode, Image, Inode, Node};
use super::versions::Versions;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers the questions of a crash.
pub(super) type Choose<'a> = &'a mut dyn FnMut(usize) -> usize;

/// The disk after a power cut.
pub(super) fn crash(image: &Image, choose: Choose<'_>) -> Image {
    let mut after = After { image, nodes: BTreeMap::new(), journal: None };
    if image.file_system == FileSystem::Ext4 {
        after.choose_journal(choose);
    }
    // Names first: what no name leads to need not be decided.
    let mut files = Vec::new();
    after.dir(0, choose, &mut files);
    for inode in files {
        after.file(inode, choose);
    }
    image.with_nodes(after.nodes)
}

struct After<'a> {
    image: &'a Image,
    nodes: BTreeMap<Inode, Arc<Node>>,
    /// With a journal: the moment of the last change of a name or length that it has.
    journal: Option<u64>,
}

impl After<'_> {
    /// How far the journal came: any beginning of what it had to take.
    fn choose_journal(&mut self, choose: Choose<'_>) {
        let mut moments = Vec::new();
        for node in self.image.nodes.values() {
            match &**node {
                Node::Dir(dir) => moments.extend(dir.names.values().flat_map(Versions::moments)),
                Node::File(file) => moments.extend(file.len.moments()),
            }
        }
        moments.sort_unstable();
        moments.dedup();
        let taken = ask(choose, moments.len() + 1);
        self.journal = Some(if taken == 0 { 0 } else { moments[taken - 1] });
    }

    fn pick<T: Clone + PartialEq>(&self, versions: &Versions<T>, choose: Choose<'_>) -> T {
        match self.journal {
            Some(moment) => versions.at(moment).clone(),
            None => {
                let candidates = versions.candidates();
                let chosen = ask(choose, candidates.len());
                candidates[chosen].clone()
            }
        }
    }

    fn dir(&mut self, inode: Inode, choose: Choose<'_>, files: &mut Vec<Inode>) {
        let Some(Node::Dir(dir)) = self.image.nodes.get(&inode).map(|node| &**node) else { return };
        let mut names = BTreeMap::new();
        let mut below = Vec::new();
        for (name, entry) in &dir.names {
            if let Some(inode) = self.pick(entry, choose) {
                names.insert(name.clone(), Versions::durable(Some(inode)));
                below.push(inode);
            }
        }
        let survived = super::image::DirNode { names, mode: dir.mode };
        self.nodes.insert(inode, Arc::new(Node::Dir(survived)));
        for inode in below {
            match self.image.nodes.get(&inode).map(|node| &**node) {
                Some(Node::Dir(_)) => self.dir(inode, choose, files),
                // Two names may lead to one file: half of a rename.
                Some(Node::File(_)) if !files.contains(&inode) => files.push(inode),
                _ => {}
            }
        }
    }

    fn file(&mut self, inode: Inode, choose: Choose<'_>) {
        let Some(node) = self.image.nodes.get(&inode) else { return };
        let Node::File(file) = &**node else { return };
        if !file.len.is_dirty() && file.dirty.is_empty() && is_settled(file) {
            self.nodes.insert(inode, Arc::clone(node));
            return;
        }
        let len = self.pick(&file.len, choose);
        let grown_from = *file.len.on_medium();
        let end = len.div_ceil(super::SECTOR_BYTES as u64);
        let mut sectors = BTreeMap::new();
        for (index, versions) in file.sectors.range(..end) {
            let behind_old_end = (index + 1) * super::SECTOR_BYTES as u64 > grown_from;
            let sector = match self.journal {
                // Data goes before the length that makes it visible.
                Some(_) if len > grown_from && behind_old_end => versions.live().clone(),
                _ => {
                    let candidates = versions.candidates();
                    let chosen = ask(choose, candidates.len());
                    candidates[chosen].clone()
                }
            };
            if let Some(sector) = sector {
                sectors.insert(*index, Versions::durable(Some(sector)));
            }
        }
        let mut after = FileNode::whole(len, sectors, file.mode);
        after.clear_behind_end();
        self.nodes.insert(inode, Arc::new(Node::File(after)));
    }
}

/// Whether what programs see of a file is what is on the medium. After a failed sync that is not so,
/// though nothing is pending.
fn is_settled(file: &FileNode) -> bool {
    file.len.live() == file.len.on_medium()
        && file.sectors.values().all(|sector| sector.live() == sector.on_medium())
}

/// A question with one answer is none.
fn ask(choose: Choose<'_>, answers: usize) -> usize {
    if answers < 2 {
        return 0;
    }
    let chosen = choose(answers);
    assert!(chosen < answers, "answer {chosen} of {answers}");
    chosen
}

/// A walk over all ways in which one crash can turn out.
#[derive(Debug, Default)]
pub struct AllCrashes {
    /// The answers of the last walk, each with how many there were.
    answers: Vec<(usize, usize)>,
    begun: bool,
}

impl AllCrashes {
    /// The answers for the next crash; `false` when all have been given.
    pub(super) fn advance(&mut self) -> bool {
        if !std::mem::replace(&mut self.begun, true) {
            return true;
        }
        while let Some((chosen, of)) = self.answers.pop() {
            if chosen + 1 < of {
                self.answers.push((chosen + 1, of));
                return true;
            }
        }
        false
    }

    /// Answers question `number` of the present crash.
    pub(super) fn answer(&mut self, number: usize, of: usize) -> usize {
        if number == self.answers.len() {
            self.answers.push((0, of));
        }
        self.answers[number].0
    }
}
