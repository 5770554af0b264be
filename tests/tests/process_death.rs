//! A node that is killed with SIGKILL at any moment has lost nothing that it acknowledged.
//!
//! The parent starts itself again as a node, reads what the node acknowledges through a pipe, kills it
//! after a random time and opens the directory: it is the oracle, and keeps nothing in the node. The page
//! cache outlives a killed process, so this proves the order of acknowledgements, not that of the syncs.
//!
//! `KRAFTLOG_KILLS=200` kills more often, `KRAFTLOG_SEED` repeats a run's moments.

#![expect(clippy::disallowed_methods, reason = "a killer waits on the real clock")]

use kraftlog::codecs::batch::Batches;
use kraftlog::codecs::metadata::{MetadataRecord, TopicRecord};
use kraftlog::codecs::quorum::{QuorumState, VersionData};
use kraftlog::io::{BackendChoice, BackendError, ThreadRt};
use kraftlog::{Epoch, Isolation, LogConfig, MetadataDir, MetadataLog, NodeId, Offset, SnapshotId, snapshot};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for the node: the directory it lives in.
const NODE_DIR: &str = "KRAFTLOG_PROCESS_DEATH_DIR";
const KILLS_DEFAULT: u32 = 20;
const WRITERS: u32 = 8;

fn config() -> LogConfig {
    let mut config = LogConfig::default();
    config.node_id = Some(NodeId(1));
    // Small, so that kills also meet rolls.
    config.segment_bytes_max = 64 << 10;
    config
}

fn open(dir: &Path) -> (MetadataLog, kraftlog::OpenReport) {
    let locked = MetadataDir::open_blocking(dir, BackendChoice::Auto).expect("the directory is free");
    MetadataLog::open_blocking(locked, config()).unwrap_or_else(|error| panic!("the log opens: {error}"))
}

/// A record that no other append has.
fn record(name: &str) -> Vec<u8> {
    let mut value = Vec::new();
    let topic = TopicRecord { name, ..TopicRecord::default() };
    MetadataRecord::Topic(topic).encode(0, &mut value).expect("a topic can be encoded");
    value
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).expect("the parent listens");
    out.flush().expect("the parent listens");
}

/// The node: leads a new epoch, appends from many threads, freezes checkpoints, says what is durable.
#[test]
fn node() {
    let Some(dir) = std::env::var_os(NODE_DIR) else { return };
    // The harness has begun a line; what follows must be lines of ours alone.
    say("");
    let (log, _) = open(Path::new(&dir));
    let epoch = Epoch(log.last_epoch().0 + 1);
    log.initialize_leader_epoch_blocking(epoch).expect("a new epoch begins");
    let vote =
        QuorumState { leader_id: Some(1), leader_epoch: epoch.0, voted: None, version_data: VersionData::V1 };
    log.quorum_state().write_blocking(&vote).expect("the vote is written");
    say(&format!("vote {epoch}"));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let log = &log;
            scope.spawn(move || {
                for at in 0.. {
                    let name = format!("{epoch}-{writer}-{at}");
                    let ticket = log.append_records(epoch, [record(&name)]).expect("the log takes it");
                    let appended = ticket.durable_blocking().expect("it becomes durable");
                    say(&format!("appended {} {name}", appended.first));
                }
            });
        }
        loop {
            let end = log.durable_end();
            log.update_high_watermark(end).expect("the durable end is in the log");
            // Every append is one batch of one record, so any offset is a border.
            let id = SnapshotId { end_offset: end, epoch };
            if let Ok(mut writer) = log.create_snapshot_blocking(id) {
                writer.append_blocking(&[record("state")]).expect("the checkpoint takes it");
                writer.freeze_blocking().expect("it freezes");
                say(&format!("frozen {} {}", id.end_offset, id.epoch));
            }
            std::thread::sleep(Duration::from_millis(7));
        }
    });
}

/// What the node acknowledged, over all its lives.
#[derive(Default)]
struct Acknowledged {
    appends: BTreeMap<i64, String>,
    frozen: Vec<SnapshotId>,
    vote: i32,
}

impl Acknowledged {
    fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        // The test harness has words of its own on the same pipe.
        match (words.next(), words.next(), words.next()) {
            (Some("vote"), Some(epoch), None) => self.vote = epoch.parse().expect("an epoch"),
            (Some("appended"), Some(offset), Some(name)) => {
                let offset = offset.parse().expect("an offset");
                let before = self.appends.insert(offset, name.to_owned());
                assert_eq!(before, None, "offset {offset} was acknowledged twice");
            }
            (Some("frozen"), Some(offset), Some(epoch)) => {
                let (offset, epoch) = (offset.parse().expect("an offset"), epoch.parse().expect("an epoch"));
                self.frozen.push(SnapshotId::new(offset, epoch));
            }
            _ => {}
        }
    }

    /// Opens the directory and looks for all of it.
    fn check(&self, dir: &Path, seed: u64, kill: u32) {
        let (log, report) = open(dir);
        let what = |lost: &str| format!("{lost}; seed {seed}, kill {kill}, open said: {report}");
        let mut found = BTreeMap::new();
        let mut next = log.start_offset();
        while next < log.end_offset() {
            let fetched =
                log.read_blocking(next, Isolation::Uncommitted, 1 << 20).expect("the log can be read");
            for (_, batch) in Batches::new(&fetched.bytes) {
                let batch = batch.expect("a whole batch");
                assert_eq!(batch.header().base_offset, next.0, "{}", what("there is a hole"));
                next = Offset(batch.header().next_offset());
                for record in batch.records().expect("records") {
                    let record = record.expect("a record");
                    let value = record.value.unwrap_or_default();
                    if let Ok(MetadataRecord::Topic(topic)) =
                        MetadataRecord::decode(value).map(|framed| framed.record)
                    {
                        found.insert(record.offset, topic.name.to_owned());
                    }
                }
            }
        }
        for (offset, name) in &self.appends {
            assert_eq!(
                found.get(offset),
                Some(name),
                "{}",
                what(&format!("append at {offset} was acknowledged"))
            );
        }
        for id in &self.frozen {
            assert!(
                log.snapshots().iter().any(|(known, _)| known == id),
                "{}",
                what(&format!("{id} was frozen"))
            );
            let file = dir.join(format!("__cluster_metadata-0/{id}.checkpoint"));
            snapshot::verify_file(&file).unwrap_or_else(|error| panic!("{}", what(&error.to_string())));
        }
        let vote =
            log.quorum_state().read_blocking().expect("the vote can be read").map(|vote| vote.leader_epoch);
        assert!(
            vote >= Some(self.vote),
            "{}",
            what(&format!("vote of epoch {} was acknowledged, {vote:?} is there", self.vote))
        );
        log.close_blocking().expect("it closes");
    }
}

/// Small random numbers from a seed (xorshift).
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn kill_again_and_again(backend: &str, choice: BackendChoice) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    if let Err(BackendError::Unsupported { reason }) = ThreadRt::open(dir.path(), choice) {
        println!("not run: {backend} cannot be had: {reason}");
        return;
    }
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = number("KRAFTLOG_KILLS")
        .map_or(KILLS_DEFAULT, |kills| u32::try_from(kills).expect("a number of kills"));
    let seed = number("KRAFTLOG_SEED").unwrap_or_else(|| u64::from(std::process::id()) * 7919 + 1);
    println!("{backend}: {kills} kills, seed {seed}");
    let mut random = seed.max(1);
    let mut acknowledged = Acknowledged::default();
    for kill in 1..=kills {
        let mut node = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "node", "--nocapture", "--test-threads=1"])
            .env(NODE_DIR, dir.path())
            .env("KRAFTLOG_IO", backend)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the node starts");
        let out = BufReader::new(node.stdout.take().expect("a pipe"));
        // Some are killed while they open, most in the middle of appends.
        let life = Duration::from_millis(5 + next_random(&mut random) % 120);
        let reader = std::thread::spawn(move || {
            // What was not yet in the pipe was not heard by anybody. A last line may be cut.
            let lines: Vec<String> = out
                .split(b'\n')
                .map_while(Result::ok)
                .filter_map(|line| String::from_utf8(line).ok())
                .collect();
            lines
        });
        std::thread::sleep(life);
        assert_eq!(
            node.try_wait().expect("its state"),
            None,
            "the node ended by itself: {}",
            stderr(&mut node)
        );
        node.kill().expect("SIGKILL");
        node.wait().expect("it is dead");
        let mut lines = reader.join().expect("the reader ends");
        if lines.last().is_some_and(|line| line.starts_with("appended") && line.split(' ').count() < 3) {
            lines.pop();
        }
        for line in &lines {
            acknowledged.hear(line);
        }
        acknowledged.check(dir.path(), seed, kill);
    }
    assert!(acknowledged.vote > 0, "no vote was ever heard");
    assert!(acknowledged.appends.len() > 10, "only {} appends were acknowledged", acknowledged.appends.len());
    println!(
        "{backend}: {} appends and {} checkpoints acknowledged, all there",
        acknowledged.appends.len(),
        acknowledged.frozen.len()
    );
}

fn stderr(node: &mut std::process::Child) -> String {
    let mut text = String::new();
    if let Some(pipe) = &mut node.stderr {
        let _ = std::io::Read::read_to_string(pipe, &mut text);
    }
    text
}

#[test]
fn nothing_acknowledged_is_lost_when_the_node_is_killed_portable() {
    kill_again_and_again("portable", BackendChoice::Portable);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_node_is_killed_uring() {
    kill_again_and_again("uring", BackendChoice::Uring);
}
