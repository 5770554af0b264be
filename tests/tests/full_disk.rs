//! A disk without space costs what does not fit and nothing else, on a real file system.
//!
//! A small ext4 and a small tmpfs are filled to the last block with appends, checkpoints and votes: each
//! refusal is typed and names its file, what was acknowledged stays, what was refused never comes back,
//! and when there is space the log goes on, with or without a restart in between. A limit on the size of
//! files (`ulimit -f`) is the same to a log. Needs root for its file systems; says `not run` without.

#![allow(clippy::disallowed_methods, reason = "the test takes space away and gives it back")]

mod support;

use kraftlog::codecs::quorum::{QuorumState, VersionData};
use kraftlog::io::{BackendChoice, IoError, IoErrorKind};
use kraftlog::snapshot::SnapshotWriteError;
use kraftlog::{
    AppendError, CloseError, Epoch, EpochError, ErrorKind, Isolation, MetadataLog, OpenError,
    QuorumWriteError, SnapshotId,
};
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use support::acknowledged::{Acknowledged, record};
use support::child::Node;
use support::loop_disk::{Mounted, NotRun, make_ext4};
use support::node::say;
use support::{can_be_had, chain, try_open};

/// Sizes that appends are tried with: when one is refused, a smaller one may still fit.
const APPEND_BYTES: [usize; 4] = [30_000, 3_000, 300, 1];
/// Bytes of a file that is removed to make room.
const BALLAST_BYTES: u64 = 300 << 10;
/// The largest file of the node that lives under a limit.
const LIMIT_KIB: u64 = 256;

/// The node that lives under a limit on the size of files: it meets it, says what was refused, and waits
/// for its end.
#[test]
fn node() {
    let Some((dir, choice)) = support::node::asked() else { return };
    let mut filling = Filling::new(dir, choice, 1 << 20, "under a limit".to_owned());
    filling.tells = true;
    let log = filling.open_and_lead();
    assert!(filling.append(&log, 1) && filling.vote(&log) && filling.checkpoint(&log, 1));
    while filling.append(&log, 3_000) {}
    assert!(!filling.append(&log, 3_000), "one append was refused and the next, as large, was not");
    // Another file is not concerned, unless it is as large.
    assert!(filling.vote(&log));
    assert!(!filling.checkpoint(&log, LIMIT_KIB.div_ceil(20) + 1));
    assert!(filling.checkpoint(&log, 1));
    say("limited");
    loop {
        std::thread::park();
    }
}

/// One log on a small file system, and what was acknowledged in it.
struct Filling {
    dir: PathBuf,
    choice: BackendChoice,
    segment_bytes_max: u64,
    epoch: Epoch,
    vote: i32,
    names: u32,
    acknowledged: Acknowledged,
    /// The oracle is another process.
    tells: bool,
    context: String,
}

impl Filling {
    fn new(dir: PathBuf, choice: BackendChoice, segment_bytes_max: u64, context: String) -> Filling {
        Filling {
            dir,
            choice,
            segment_bytes_max,
            epoch: Epoch(0),
            vote: 0,
            names: 0,
            acknowledged: Acknowledged::default(),
            tells: false,
            context,
        }
    }

    fn outcome(&mut self, line: &str) {
        self.acknowledged.hear(line);
        if self.tells {
            say(line);
        }
    }

    /// Asserts that an error is a full disk: the caller can try again, and the file is named.
    fn is_full(&self, kind: ErrorKind, io: Option<&IoError>, error: &dyn Error) {
        let all = chain(error);
        assert_eq!(kind, ErrorKind::Retry, "{all}; {}", self.context);
        let io = io.unwrap_or_else(|| panic!("no operation and path in: {all}; {}", self.context));
        assert_eq!(io.kind(), IoErrorKind::NoSpace, "{all}; {}", self.context);
        assert!(io.path.starts_with(&self.dir), "{all}; {}", self.context);
    }

    fn open(&self) -> Result<MetadataLog, OpenError> {
        try_open(&self.dir, self.choice, self.segment_bytes_max).map(|(log, _)| log)
    }

    /// Opens, looks for everything, and leads a new epoch.
    fn open_and_lead(&mut self) -> MetadataLog {
        let log = self.open().unwrap_or_else(|error| panic!("{}; {}", chain(&error), self.context));
        self.acknowledged.check_open(&log, &self.context);
        self.epoch = Epoch(log.last_epoch().0.max(self.epoch.0) + 1);
        let begun = log.initialize_leader_epoch_blocking(self.epoch);
        begun.unwrap_or_else(|error| panic!("{}; {}", chain(&error), self.context));
        log
    }

    /// True if it was taken.
    fn append(&mut self, log: &MetadataLog, bytes: usize) -> bool {
        self.names += 1;
        let name = format!("{}-{}", self.names, "n".repeat(bytes));
        let ticket = log.append_records(self.epoch, [record(&name)]);
        let ticket = ticket.unwrap_or_else(|error| panic!("{}; {}", chain(&error), self.context));
        match ticket.durable_blocking() {
            Ok(appended) => {
                self.outcome(&format!("appended {} {name}", appended.first));
                true
            }
            Err(error) => {
                let io = match &error {
                    AppendError::NoSpace { cause, .. } => Some(cause),
                    _ => None,
                };
                self.is_full(error.kind(), io, &error);
                self.outcome(&format!("refused {name}"));
                false
            }
        }
    }

    /// True if it was taken.
    fn vote(&mut self, log: &MetadataLog) -> bool {
        let leader_epoch = self.vote + 1;
        let vote =
            QuorumState { leader_id: Some(7), leader_epoch, voted: None, version_data: VersionData::V1 };
        match log.quorum_state().write_blocking(&vote) {
            Ok(()) => {
                self.vote = leader_epoch;
                self.outcome(&format!("vote {leader_epoch}"));
                true
            }
            Err(error) => {
                let io = match &error {
                    QuorumWriteError::Io(io) => Some(io),
                    _ => None,
                };
                self.is_full(error.kind(), io, &error);
                let read = log.quorum_state().read_blocking().expect("the vote can be read");
                let read = read.map_or(0, |vote| vote.leader_epoch);
                assert_eq!(read, self.vote, "the old vote counts; {}", self.context);
                false
            }
        }
    }

    /// A checkpoint of so many records of 20 KB. True if it was taken, or there is one at this offset.
    fn checkpoint(&mut self, log: &MetadataLog, records: u64) -> bool {
        let end = log.durable_end();
        log.update_high_watermark(end).expect("the durable end is in the log");
        let id = SnapshotId { end_offset: end, epoch: self.epoch };
        let frozen = log.create_snapshot_blocking(id).and_then(|mut writer| {
            let state = record(&"s".repeat(20_000));
            for _ in 0..records {
                writer.append_blocking(&[&state])?;
            }
            writer.freeze_blocking()
        });
        match frozen {
            Ok(_) => {
                self.outcome(&format!("frozen {} {}", id.end_offset, id.epoch));
                true
            }
            Err(error) if error.kind() == ErrorKind::Refused => true,
            Err(error) => {
                let io = match &error {
                    SnapshotWriteError::Io(io) => Some(io),
                    _ => None,
                };
                self.is_full(error.kind(), io, &error);
                false
            }
        }
    }

    /// Appends, votes and freezes until nothing more fits, not even the smallest append.
    fn fill(&mut self, log: &MetadataLog) {
        for bytes in APPEND_BYTES {
            let mut taken = 0;
            while self.append(log, bytes) {
                taken += 1;
                if taken % 8 == 0 {
                    self.vote(log);
                    self.checkpoint(log, 1);
                }
            }
        }
        assert!(!self.checkpoint(log, 1), "a checkpoint of 20 KB fits a full disk; {}", self.context);
        assert!(!self.vote(log), "a vote fits a full disk; {}", self.context);
        let next = Epoch(self.epoch.0 + 1);
        let error = log.initialize_leader_epoch_blocking(next).expect_err("an epoch fits a full disk");
        let io = match &error {
            EpochError::Io(io) => Some(io),
            _ => None,
        };
        self.is_full(error.kind(), io, &error);
        // Readers are not concerned, and nothing refused is in the way.
        assert_eq!(log.end_offset(), log.durable_end(), "{}", self.context);
        self.acknowledged.check_open(log, &self.context);
        let read = log.read_blocking(log.start_offset(), Isolation::Uncommitted, 1 << 20);
        assert!(!read.expect("it can be read").bytes.is_empty());
    }

    /// Everything goes on: an append, a vote, a checkpoint, an epoch.
    fn goes_on(&mut self, log: &MetadataLog) {
        assert!(self.append(log, 1), "an append after space was made; {}", self.context);
        assert!(self.vote(log), "a vote after space was made; {}", self.context);
        assert!(self.checkpoint(log, 1), "a checkpoint after space was made; {}", self.context);
        self.epoch = Epoch(self.epoch.0 + 1);
        let begun = log.initialize_leader_epoch_blocking(self.epoch);
        begun.unwrap_or_else(|error| panic!("{}; {}", chain(&error), self.context));
        assert!(self.append(log, 1), "an append in a new epoch; {}", self.context);
    }
}

fn put_ballast(mounted: &Mounted, name: &str) -> PathBuf {
    let path = mounted.at().join(name);
    std::fs::write(&path, vec![1; usize::try_from(BALLAST_BYTES).expect("a length")])
        .expect("room for ballast");
    std::fs::File::open(&path).and_then(|file| file.sync_all()).expect("ballast on the disk");
    path
}

fn fill_to_the_last_block(mounted: &Mounted, choice: BackendChoice, segment_bytes_max: u64) {
    if !can_be_had(choice, mounted.at()) {
        return;
    }
    let dir = mounted.at().join("node");
    std::fs::create_dir(&dir).expect("a directory");
    let [first, second] = ["first", "second"].map(|name| put_ballast(mounted, name));
    let context = format!("{choice:?} in {}", mounted.at().display());
    let mut log_on = Filling::new(dir, choice, segment_bytes_max, context);
    let log = log_on.open_and_lead();
    log_on.vote(&log);
    log_on.fill(&log);
    let full_at = log_on.acknowledged.appends();
    // Space comes while the log is open.
    std::fs::remove_file(first).expect("ballast can be removed");
    log_on.goes_on(&log);
    log_on.fill(&log);
    // A full disk at close and at open.
    match log.close_blocking() {
        Ok(report) => println!("closed on a full disk: {report:?}"),
        Err(error) => {
            let io = match &error {
                CloseError::Io(io) => Some(io),
                _ => None,
            };
            log_on.is_full(error.kind(), io, &error);
        }
    }
    match log_on.open() {
        Ok(log) => {
            log_on.acknowledged.check_open(&log, &log_on.context);
            drop(log);
        }
        Err(error) => {
            println!("a full disk is not opened: {}", chain(&error));
            let io = match &error {
                OpenError::Io(io) => Some(io),
                _ => None,
            };
            log_on.is_full(error.kind(), io, &error);
        }
    }
    // Space comes while it is closed.
    std::fs::remove_file(second).expect("ballast can be removed");
    let log = log_on.open_and_lead();
    log_on.goes_on(&log);
    log.close_blocking().unwrap_or_else(|error| panic!("{}; {}", chain(&error), log_on.context));
    log_on.acknowledged.check(&log_on.dir, choice, &log_on.context);
    assert!(full_at > 3, "the disk was full after {full_at} appends; {}", log_on.context);
    println!(
        "{}: full after {full_at} appends; {} appends, {} checkpoints and vote {} acknowledged and there, {} appends refused and not there",
        log_on.context,
        log_on.acknowledged.appends(),
        log_on.acknowledged.checkpoints(),
        log_on.acknowledged.vote(),
        log_on.acknowledged.refusals(),
    );
}

fn on_ext4(choice: BackendChoice) -> Result<(), NotRun> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let image = place.path().join("disk.img");
    make_ext4(&image, 16)?;
    let mounted = Mounted::ext4(&image, &place.path().join("disk"), "data=ordered")?;
    fill_to_the_last_block(&mounted, choice, 1 << 20);
    Ok(())
}

fn on_tmpfs(choice: BackendChoice) -> Result<(), NotRun> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mounted = Mounted::tmpfs(2 << 10, &place.path().join("disk"))?;
    fill_to_the_last_block(&mounted, choice, 128 << 10);
    Ok(())
}

fn run(test: fn(BackendChoice) -> Result<(), NotRun>, choice: BackendChoice) {
    if let Err(reason) = test(choice) {
        println!("{reason} ({choice:?})");
    }
}

#[test]
fn a_full_ext4_costs_what_does_not_fit_and_nothing_else_portable() {
    run(on_ext4, BackendChoice::Portable);
}

#[test]
fn a_full_ext4_costs_what_does_not_fit_and_nothing_else_uring() {
    run(on_ext4, BackendChoice::Uring);
}

#[test]
fn a_full_tmpfs_costs_what_does_not_fit_and_nothing_else_portable() {
    run(on_tmpfs, BackendChoice::Portable);
}

#[test]
fn a_full_tmpfs_costs_what_does_not_fit_and_nothing_else_uring() {
    run(on_tmpfs, BackendChoice::Uring);
}

/// Above its limit a process gets `EFBIG`, but only if it ignores the signal that comes first.
fn meet_a_limit_on_the_size_of_files(backend: &str, choice: BackendChoice) {
    let place = tempfile::tempdir().expect("a temporary directory");
    if !can_be_had(choice, place.path()) {
        return;
    }
    let limited = format!("trap '' XFSZ; ulimit -f {LIMIT_KIB}; exec \"$0\" \"$@\"");
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(limited).arg(std::env::current_exe().expect("this test"));
    let mut node = match bash_is_there() {
        true => Node::start_with(bash, place.path(), backend),
        false => {
            return println!("not run: a limit on the size of files is set with bash, which is not here");
        }
    };
    let mut acknowledged = Acknowledged::default();
    node.hear_until("limited", &mut acknowledged);
    node.kill(&mut acknowledged);
    assert!(acknowledged.refusals() > 1, "{} appends were refused", acknowledged.refusals());
    let context = format!("{backend} after a limit of {LIMIT_KIB} KiB a file");
    let mut free = Filling::new(place.path().to_path_buf(), choice, 1 << 20, context);
    std::mem::swap(&mut free.acknowledged, &mut acknowledged);
    (free.vote, free.names) = (free.acknowledged.vote(), 1_000_000);
    let log = free.open_and_lead();
    free.goes_on(&log);
    assert!(free.append(&log, 30_000), "an append beyond the old limit");
    log.close_blocking().expect("it closes");
    free.acknowledged.check(place.path(), choice, &free.context);
    println!(
        "{}: {} appends acknowledged and there, {} refused and not there",
        free.context,
        free.acknowledged.appends(),
        free.acknowledged.refusals()
    );
}

fn bash_is_there() -> bool {
    Command::new("bash").arg("-c").arg("exit").status().is_ok_and(|status| status.success())
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk_to_a_log_portable() {
    meet_a_limit_on_the_size_of_files("portable", BackendChoice::Portable);
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk_to_a_log_uring() {
    meet_a_limit_on_the_size_of_files("uring", BackendChoice::Uring);
}
