//! What a test does to the files of its [`Place`] from outside, on a real disk or a simulated one.

use super::place::{Ground, Place};
use flate2::read::GzDecoder;
use kraftlog::snapshot::{SnapshotError, SnapshotSummary, verify_file};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

impl Place {
    /// The content of a file.
    pub(crate) fn read(&self, path: &Path) -> Vec<u8> {
        self.find(path).unwrap_or_else(|| panic!("there is no {}", path.display()))
    }

    fn find(&self, path: &Path) -> Option<Vec<u8>> {
        match &*self.ground {
            Ground::Real(_) => fs::read(path).ok(),
            Ground::Sim(machine) => machine.disk().read(path),
        }
    }

    pub(crate) fn read_text(&self, path: &Path) -> String {
        String::from_utf8(self.read(path)).expect("text")
    }

    /// Whether a file is there.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        match &*self.ground {
            Ground::Real(_) => path.exists(),
            Ground::Sim(machine) => machine.disk().read(path).is_some(),
        }
    }

    pub(crate) fn len(&self, path: &Path) -> u64 {
        match &*self.ground {
            Ground::Real(_) => fs::metadata(path).expect("a file").len(),
            Ground::Sim(_) => self.read(path).len() as u64,
        }
    }

    /// Permission bits; `None` on a simulated disk, where nobody is kept out by them.
    pub(crate) fn mode(&self, path: &Path) -> Option<u32> {
        match &*self.ground {
            Ground::Real(_) => Some(fs::metadata(path).expect("a file").permissions().mode() & 0o7777),
            Ground::Sim(_) => None,
        }
    }

    /// Puts a file in place, with the directories above it; it may replace one that is read-only.
    pub(crate) fn write(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        match &*self.ground {
            Ground::Real(_) => {
                fs::create_dir_all(path.parent().expect("a file lies somewhere")).expect("directories");
                let _ = fs::remove_file(path);
                let file = File::options().create_new(true).write(true).open(path);
                file.and_then(|mut file| file.write_all(bytes)).expect("a file written");
            }
            Ground::Sim(machine) => machine.disk().write(path, bytes).expect("a file written"),
        }
    }

    /// Changes bytes of a file that may be open.
    pub(crate) fn patch(&self, path: &Path, position: usize, bytes: &[u8]) {
        match &*self.ground {
            Ground::Real(_) => {
                let file = File::options().write(true).open(path).expect("a file");
                file.write_all_at(bytes, position as u64).expect("a file written");
            }
            Ground::Sim(machine) => {
                let mut all = self.read(path);
                all[position..position + bytes.len()].copy_from_slice(bytes);
                machine.disk().write(path, &all).expect("a file written");
            }
        }
    }

    pub(crate) fn remove(&self, path: &Path) {
        match &*self.ground {
            Ground::Real(_) => fs::remove_file(path).expect("a file"),
            Ground::Sim(machine) => machine.disk().remove_file(path).expect("a file"),
        }
    }

    pub(crate) fn make_dir(&self, path: &Path) {
        match &*self.ground {
            Ground::Real(_) => fs::create_dir_all(path).expect("directories"),
            Ground::Sim(machine) => machine.disk().make_dir(path).expect("directories"),
        }
    }

    /// What lies in a directory, sorted.
    pub(crate) fn names(&self, dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = match &*self.ground {
            Ground::Real(_) => fs::read_dir(dir)
                .expect("a directory")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
                .collect(),
            Ground::Sim(_) => {
                let dir = dir.to_path_buf();
                let entries = self.on_disk(|disk| async move { disk.list(&dir).await });
                entries.expect("a directory").into_iter().map(|entry| entry.name).collect()
            }
        };
        names.sort();
        names
    }

    /// Every file with its content, for "nothing was changed".
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = match &*self.ground {
            Ground::Real(_) => tree(self.path()),
            Ground::Sim(machine) => {
                machine.disk().files().into_iter().filter(|(path, _)| path.starts_with(self.path())).collect()
            }
        };
        all.sort();
        all.retain(|(path, _)| !path.ends_with(".lock"));
        all
    }

    /// A directory without a log again.
    pub(crate) fn wipe(&self) {
        self.settle();
        match &*self.ground {
            Ground::Real(_) => {
                let _ = fs::remove_dir_all(self.part());
            }
            Ground::Sim(_) => self.everything().iter().for_each(|(path, _)| self.remove(path)),
        }
    }

    /// Puts a segment in place.
    pub(crate) fn put_segment(&self, base: i64, bytes: &[u8]) {
        self.write(&self.segment(base), bytes);
    }

    pub(crate) fn read_segment(&self, base: i64) -> Vec<u8> {
        self.read(&self.segment(base))
    }

    /// Copies a plain tree of the real disk into the directory.
    pub(crate) fn copy_in(&self, from: &Path) {
        for (path, bytes) in tree(from) {
            self.write(&self.path().join(path.strip_prefix(from).expect("it lies there")), bytes);
        }
    }

    /// Unpacks an archive of the real disk into the directory.
    pub(crate) fn unpack(&self, archive: &Path) {
        let packed = File::open(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
        let mut archive = tar::Archive::new(GzDecoder::new(packed));
        match &*self.ground {
            Ground::Real(_) => archive.unpack(self.path()).expect("an archive"),
            Ground::Sim(machine) => {
                for entry in archive.entries().expect("an archive") {
                    let mut entry = entry.expect("an entry");
                    let path: PathBuf =
                        self.path().join(entry.path().expect("a path")).components().collect();
                    match entry.header().entry_type() {
                        tar::EntryType::Directory => machine.disk().make_dir(&path).expect("directories"),
                        tar::EntryType::Regular => {
                            let mut bytes = Vec::new();
                            entry.read_to_end(&mut bytes).expect("its bytes");
                            self.write(&path, bytes);
                        }
                        other => panic!("{}: a simulated disk has no {other:?}", path.display()),
                    }
                }
            }
        }
    }

    /// Checks a checkpoint with the reader for files of the real disk.
    pub(crate) fn verify(&self, path: &Path) -> Result<SnapshotSummary, SnapshotError> {
        match &*self.ground {
            Ground::Real(_) => verify_file(path),
            Ground::Sim(_) => {
                let mut copy = tempfile::NamedTempFile::new().expect("a temporary file");
                copy.write_all(&self.read(path)).expect("a file written");
                verify_file(copy.path())
            }
        }
    }
}

fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.append(&mut tree(&path)),
            false => {
                let bytes = fs::read(&path).expect("a file");
                all.push((path, bytes));
            }
        }
    }
    all
}
