//! Files that real Kafkas wrote, and what Kafka's own classes read from them.
//!
//! A [`Capture`] is a directory or a single file under `tests/fixtures` (its README says what is
//! there). Captures are never opened in place: [`Capture::unpack`] makes a copy that goes away with
//! the value, so that tests may write to it.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

/// Name of the directory of the metadata log.
pub const PART_DIR: &str = "__cluster_metadata-0";

const EXPECTED: &str = ".expected.jsonl.gz";

/// Where the fixtures are.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// One directory or file as a Kafka left it.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Its path below the fixtures, without suffix: `lived-4.4.0/n1-killed`.
    pub name: String,
    path: PathBuf,
}

/// A copy of a capture in a temporary directory.
#[derive(Debug)]
pub struct Unpacked {
    temp: tempfile::TempDir,
}

/// What Kafka read from one file of a capture.
#[derive(Debug, Clone)]
pub struct ExpectedFile {
    /// Name of the file, without directory.
    pub name: String,
    /// The line of kind `file`: `size`, `type` and what the name says.
    pub file: Value,
    /// Its batches in order.
    pub batches: Vec<ExpectedBatch>,
    /// The line of kind `end`: totals, `trailingBytes`, `kraftReader`.
    pub end: Value,
}

/// What Kafka read from one batch.
#[derive(Debug, Clone)]
pub struct ExpectedBatch {
    /// The line of kind `batch`.
    pub batch: Value,
    /// Its records in order, lines of kind `record`.
    pub records: Vec<Value>,
}

/// Every capture that has an expectation, in order of names.
///
/// # Panics
/// If the fixtures cannot be listed.
pub fn captures() -> Vec<Capture> {
    let mut found = Vec::new();
    collect(&root(), &mut found);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() >= 60, "only {} captures under {}", found.len(), root().display());
    found
}

/// The capture of this name, which need not have an expectation.
pub fn capture(name: &str) -> Capture {
    Capture { name: name.to_owned(), path: root().join(name) }
}

fn collect(dir: &Path, found: &mut Vec<Capture>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path();
        let text = path.to_string_lossy().into_owned();
        if let Some(stem) = text.strip_suffix(EXPECTED) {
            let path = PathBuf::from(stem);
            let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
            found.push(Capture { name, path });
        } else if path.is_dir() {
            collect(&path, found);
        }
    }
}

impl Capture {
    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        path.into()
    }

    /// Copies the capture into a temporary directory of its own.
    ///
    /// # Panics
    /// If there is no such capture or it cannot be unpacked.
    pub fn unpack(&self) -> Unpacked {
        let temp = tempfile::tempdir().unwrap_or_else(|error| panic!("temporary directory: {error}"));
        self.unpack_into(temp.path()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Unpacked { temp }
    }

    /// Copies the capture into a directory that exists.
    ///
    /// # Errors
    /// If there is no such capture or it cannot be unpacked.
    pub fn unpack_into(&self, to: &Path) -> io::Result<()> {
        let (archive, single) = (self.beside(".tar.gz"), self.beside(".gz"));
        if archive.exists() {
            tar::Archive::new(GzDecoder::new(File::open(archive)?)).unpack(to)
        } else if single.exists() {
            let name = self.path.file_name().unwrap_or_default();
            let mut file = File::options().write(true).create_new(true).open(to.join(name))?;
            io::copy(&mut GzDecoder::new(File::open(single)?), &mut file)?;
            Ok(())
        } else if self.path.is_dir() {
            copy_tree(&self.path, to)
        } else {
            fs::copy(&self.path, to.join(self.path.file_name().unwrap_or_default())).map(|_| ())
        }
    }

    /// What Kafka read from each file.
    ///
    /// # Panics
    /// If there is no expectation or it is no such JSON.
    pub fn expected(&self) -> Vec<ExpectedFile> {
        let path = self.beside(EXPECTED);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut files: Vec<ExpectedFile> = Vec::new();
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let line: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            take_line(&mut files, line);
        }
        files
    }

    /// What Kafka's log class and loader say of the directory, if that was asked.
    ///
    /// # Panics
    /// If it is no JSON.
    pub fn load(&self) -> Option<Value> {
        let path = self.beside(".load.json");
        let text = fs::read_to_string(&path).ok()?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }
}

fn take_line(files: &mut Vec<ExpectedFile>, line: Value) {
    let kind = line["kind"].as_str().unwrap_or_default().to_owned();
    if kind == "file" {
        let name = line["name"].as_str().unwrap_or_default().to_owned();
        files.push(ExpectedFile { name, file: line, batches: Vec::new(), end: Value::Null });
        return;
    }
    let file = files.last_mut().unwrap_or_else(|| panic!("a line before any file: {line}"));
    match kind.as_str() {
        "batch" => file.batches.push(ExpectedBatch { batch: line, records: Vec::new() }),
        "record" => match file.batches.last_mut() {
            Some(batch) => batch.records.push(line),
            None => panic!("a record before any batch: {line}"),
        },
        "end" => file.end = line,
        _ => panic!("a line of unknown kind: {line}"),
    }
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Unpacked {
    /// The copy: a log directory, or the directory that holds the single file.
    pub fn dir(&self) -> &Path {
        self.temp.path()
    }

    /// The directory of the metadata log in the copy.
    pub fn part_dir(&self) -> PathBuf {
        self.dir().join(PART_DIR)
    }

    /// The path of a file with this name, at the top or in the metadata log's directory.
    ///
    /// # Panics
    /// If there is none.
    pub fn find(&self, name: &str) -> PathBuf {
        let places = [self.dir().join(name), self.part_dir().join(name)];
        let found = places.into_iter().find(|path| path.exists());
        found.unwrap_or_else(|| panic!("no {name} in {}", self.dir().display()))
    }

    /// The content of the file that [`Unpacked::find`] finds.
    ///
    /// # Panics
    /// If there is none or it cannot be read.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.find(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}
