//! The lock on a directory, in one process and across two.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use kraftlog_io::lock::LOCK_FILE;
use kraftlog_io::{DirLock, IoErrorKind, LockError, LockHolder};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The error of a lock that somebody has.
fn locked(dir: &Path) -> (Option<u32>, bool) {
    match DirLock::acquire(dir) {
        Err(LockError::Locked { path, holder_pid, this_process }) => {
            assert_eq!(path, dir);
            (holder_pid, this_process)
        }
        other => panic!("{} should be locked: {other:?}", dir.display()),
    }
}

/// Another process, which is this test binary running the one test `child` below.
struct Other {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Other {
    fn start(dir: &Path) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env("KRAFTLOG_TEST_LOCK_DIR", dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Other { child, stdin, stdout }
    }

    /// Sends a command and waits for the answer to it.
    fn ask(&mut self, command: &str) -> String {
        writeln!(self.stdin, "{command}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the other process died");
            // The test harness talks on the same line.
            if let Some((_, answer)) = line.split_once("answer: ") {
                return answer.trim_end().to_owned();
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What the other process does: not a test unless started by one.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("KRAFTLOG_TEST_LOCK_DIR") else { return };
    let dir = Path::new(&dir);
    let mut held = None;
    for command in std::io::stdin().lines() {
        let answer = match command.unwrap().as_str() {
            "lock" => match DirLock::acquire(dir) {
                Ok(lock) => {
                    held = Some(lock);
                    "locked".to_owned()
                }
                Err(error) => error.to_string(),
            },
            "unlock" => {
                drop(held.take());
                "unlocked".to_owned()
            }
            "probe" => format!("{:?}", DirLock::probe(dir).unwrap().map(|h| h.pid)),
            other => panic!("{other}"),
        };
        println!("answer: {answer}");
    }
}

#[test]
fn a_locked_directory_is_refused_to_this_process_under_every_name() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("dir");
    std::fs::create_dir(&dir).unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let dotted = home.path().join("dir/../dir/.");
    // A relative name from wherever the tests run.
    let up = "../".repeat(std::env::current_dir().unwrap().components().count());
    let relative = Path::new(&up).join(dir.strip_prefix("/").unwrap());

    let lock = DirLock::acquire(&link).unwrap();
    let me = Some(std::process::id());
    for name in [&dir, &link, &dotted, &relative] {
        assert_eq!(locked(name), (me, true), "{}", name.display());
        assert_eq!(DirLock::probe(name).unwrap(), Some(LockHolder { pid: me, this_process: true }));
    }
    let text = DirLock::acquire(&dir).unwrap_err().to_string();
    assert!(text.contains("this process") && text.contains("dir"), "{text}");
    assert!(lock.is_intact());
    drop(lock);
    for name in [&dir, &link, &dotted, &relative] {
        assert_eq!(DirLock::probe(name).unwrap(), None);
        drop(DirLock::acquire(name).unwrap());
    }
}

#[test]
fn two_directories_have_two_locks() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _a = DirLock::acquire(a.path()).unwrap();
    let _b = DirLock::acquire(b.path()).unwrap();
}

#[test]
fn another_process_is_kept_out_and_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start(dir.path());
    let lock = DirLock::acquire(dir.path()).unwrap();
    let me = std::process::id();
    assert_eq!(other.ask("probe"), format!("Some(Some({me}))"));
    assert!(other.ask("lock").contains(&format!("in use by process {me}")));
    // A probe and a refused attempt of this process must not give our lock up.
    DirLock::probe(dir.path()).unwrap();
    locked(dir.path());
    assert!(other.ask("lock").contains("in use by process"));
    drop(lock);
    assert_eq!(other.ask("probe"), "None");
    assert_eq!(other.ask("lock"), "locked");
    assert_eq!(locked(dir.path()), (Some(other.child.id()), false));
    let holder = DirLock::probe(dir.path()).unwrap();
    assert_eq!(holder, Some(LockHolder { pid: Some(other.child.id()), this_process: false }));
    assert_eq!(other.ask("unlock"), "unlocked");
    drop(DirLock::acquire(dir.path()).unwrap());
    other.kill();
}

#[test]
fn a_lock_dies_with_its_process_and_its_file_locks_nobody_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start(dir.path());
    assert_eq!(other.ask("lock"), "locked");
    other.kill();
    assert!(dir.path().join(LOCK_FILE).exists(), "a killed process leaves the file");
    assert_eq!(DirLock::probe(dir.path()).unwrap(), None);
    drop(DirLock::acquire(dir.path()).unwrap());
}

#[test]
fn the_lock_file_is_gone_when_the_lock_is() {
    let dir = tempfile::tempdir().unwrap();
    let lock = DirLock::acquire(dir.path()).unwrap();
    assert!(dir.path().join(LOCK_FILE).exists());
    drop(lock);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_lock_whose_file_was_deleted_knows_it_and_does_not_delete_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let lock = DirLock::acquire(dir.path()).unwrap();
    let path = dir.path().join(LOCK_FILE);
    std::fs::remove_file(&path).unwrap();
    assert!(!lock.is_intact());
    let mut other = Other::start(dir.path());
    assert_eq!(other.ask("lock"), "locked");
    drop(lock);
    assert!(path.exists(), "the other's lock file was deleted");
    assert_eq!(locked(dir.path()), (Some(other.child.id()), false));
    other.kill();
}

#[test]
fn two_processes_that_take_turns_never_hold_it_both() {
    const ROUNDS: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start(dir.path());
    for round in 0..ROUNDS {
        assert_eq!(other.ask("lock"), "locked", "round {round}");
        // The other lets go while we try: we get it at some attempt, and then it is ours alone.
        writeln!(other.stdin, "unlock").unwrap();
        let lock = loop {
            match DirLock::acquire(dir.path()) {
                Ok(lock) => break lock,
                Err(LockError::Locked { .. }) => std::thread::yield_now(),
                Err(error) => panic!("round {round}: {error:?}"),
            }
        };
        assert!(lock.is_intact(), "round {round}");
        assert_eq!(other.ask("probe"), "unlocked", "round {round}");
        let mut line = String::new();
        other.stdout.read_line(&mut line).unwrap();
        assert!(line.contains(&format!("{:?}", Some(Some(std::process::id())))), "round {round}: {line}");
    }
    other.kill();
}

#[test]
fn a_probe_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(DirLock::probe(dir.path()).unwrap(), None);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_none_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let file = dir.path().join("file");
    std::fs::OpenOptions::new().write(true).create_new(true).open(&file).unwrap();
    for (path, kind) in [(&gone, IoErrorKind::NotFound), (&file, IoErrorKind::NotADirectory)] {
        match DirLock::acquire(path) {
            Err(LockError::Io(error)) => assert_eq!((&error.path, error.kind()), (path, kind)),
            other => panic!("{other:?}"),
        }
        assert_eq!(DirLock::probe(path).unwrap_err().kind(), kind);
    }
    std::fs::create_dir(dir.path().join(LOCK_FILE)).unwrap();
    match DirLock::acquire(dir.path()) {
        Err(LockError::Io(error)) => assert_eq!(error.path, dir.path().join(LOCK_FILE)),
        other => panic!("{other:?}"),
    }
}
