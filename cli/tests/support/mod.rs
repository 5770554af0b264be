//! What the tests of the binary share: running it in a directory of its own, and comparing trees.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const ID: &str = "Jk01gj4RQRegVl2GLqYuTg";
pub(crate) const OTHER_ID: &str = "UxKV8_q9Td6gUtqlso_yHw";
pub(crate) const DIR_A: &str = "Y0_TxaqAQb2tTuW2MXphaA";
pub(crate) const DIR_B: &str = "FNu1jmuxSF2vc8q95hCkCQ";

/// A controller of a dynamic quorum with the log dir `d1`.
pub(crate) const DYNAMIC: &str = "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://ctrl-1.example:9093\n\
    controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=ctrl-1.example:9093\n\
    log.dirs=d1\n";
/// A controller of a static quorum with the log dir `d1`.
pub(crate) const STATIC: &str = "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://ctrl-1.example:9093\n\
    controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@ctrl-1.example:9093\nlog.dirs=d1\n";
/// A broker and controller of a static quorum with the log dirs `d1` and `d2`.
pub(crate) const TWO_DIRS: &str = "process.roles=broker,controller\nnode.id=1\n\
    listeners=PLAINTEXT://ctrl-1.example:9092,CONTROLLER://ctrl-1.example:9093\n\
    controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@ctrl-1.example:9093\nlog.dirs=d1,d2\n";

/// What a run of the binary did.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A directory with the configuration `F`, in which the binary runs.
pub(crate) struct Place {
    pub(crate) root: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(config: &str) -> Place {
        let place = Place { root: tempfile::tempdir().unwrap() };
        place.write("F", config);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Value of a key in a directory's meta.properties.
    pub(crate) fn meta(&self, dir: &str, key: &str) -> Option<String> {
        let text = String::from_utf8(self.read(&format!("{dir}/meta.properties"))).unwrap();
        let prefix = format!("{key}=");
        text.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kraftlog"));
        command.args(args).current_dir(self.root.path()).env_remove("KRAFTLOG_IO");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// `format -c F -t ID` and more.
    pub(crate) fn format(&self, more: &[&str]) -> Ran {
        self.run(&[&["format", "-c", "F", "-t", ID], more].concat())
    }

    /// Everything below the root: directories, and files with their bytes and modes.
    pub(crate) fn tree(&self) -> BTreeMap<String, (u32, Option<Vec<u8>>)> {
        let mut tree = BTreeMap::new();
        walk(self.root.path(), self.root.path(), &mut tree);
        tree
    }

    /// Runs a format that must be refused, and holds the tree to what it was.
    pub(crate) fn refused(&self, args: &[&str]) -> Ran {
        let before = self.tree();
        let ran = self.run(args);
        assert_eq!(ran.code, 1, "{args:?} printed {} {}", ran.out, ran.err);
        assert_eq!(self.tree(), before, "{args:?} changed something");
        ran
    }
}

fn walk(root: &Path, dir: &Path, tree: &mut BTreeMap<String, (u32, Option<Vec<u8>>)>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        // Closing any descriptor of a lock file would give up a lock that this process holds.
        let readable = meta.is_file() && !path.ends_with(".lock");
        let content = readable.then(|| std::fs::read(&path).unwrap());
        tree.insert(name, (meta.permissions().mode() & 0o7777, content));
        if meta.is_dir() {
            walk(root, &path, tree);
        }
    }
}

/// The bytes of a `.hex` file of the field cases.
pub(crate) fn case_bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let digits: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.chars())
        .filter(char::is_ascii_hexdigit)
        .collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
