//! A process that is killed while it appends has lost nothing that it acknowledged.
//!
//! The test runs itself as a child: it opens the log, leads a new epoch, appends from several threads and
//! writes the last offset of each acknowledged append to its standard output. The parent kills it after
//! some acknowledgements, opens the log and holds it against what was acknowledged. A power cut is the
//! simulated disk's business; this is about the process.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{Epoch, Isolation, LogConfig, Offset};
use kraftlog_codecs::batch::Batches;
use kraftlog_io::BackendChoice;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use support::{Place, batch_at};

const DIR: &str = "KRAFTLOG_KILL_DIR";
const BACKEND: &str = "KRAFTLOG_KILL_BACKEND";
const ROUNDS: i32 = 6;

fn config() -> LogConfig {
    let mut config = LogConfig::default();
    // Small, so that some kills hit a roll.
    config.segment_bytes_max = 60_000;
    config
}

/// Appends until it is killed. Does nothing when it is run as an ordinary test.
#[test]
fn child_that_appends_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let choice = match std::env::var(BACKEND).as_deref() {
        Ok("uring") => BackendChoice::Uring,
        _ => BackendChoice::Portable,
    };
    let (rt, backend) = kraftlog_io::ThreadRt::open(dir.as_ref(), choice).unwrap();
    let taken = kraftlog::MetadataDir::with_rt(dir.as_ref(), rt, backend);
    let dir = kraftlog_io::rt::block_on(taken).unwrap();
    let (log, report) = kraftlog::MetadataLog::open_blocking(dir, config()).unwrap();
    eprintln!("child: {report}");
    let epoch = Epoch(log.last_epoch().0 + 1);
    log.initialize_leader_epoch_blocking(epoch).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8i64 {
            let log = &log;
            scope.spawn(move || {
                for round in 0.. {
                    // The timestamp says who wrote it, so that the parent knows the batch again.
                    let bytes = batch_at(0, 0, 1 + (round % 5), 1_000_000 * writer + round as i64);
                    let ticket = log.append_as_leader(epoch, bytes).unwrap();
                    let appended = ticket.durable_blocking().unwrap();
                    let line = format!(
                        "acked {} {} {} {}\n",
                        appended.first,
                        appended.last,
                        appended.epoch,
                        1_000_000 * writer + round as i64
                    );
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Acked {
    first: i64,
    last: i64,
    epoch: i32,
    timestamp: i64,
}

fn parse(line: &str) -> Option<Acked> {
    let mut words = line.split("acked ").nth(1)?.split(' ');
    Some(Acked {
        first: words.next()?.parse().ok()?,
        last: words.next()?.parse().ok()?,
        epoch: words.next()?.parse().ok()?,
        timestamp: words.next()?.parse().ok()?,
    })
}

fn kill_again_and_again(choice: BackendChoice, name: &str) {
    let Some(place) = Place::new(choice) else { return };
    let seed = std::env::var("KRAFTLOG_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random: u64 = seed.unwrap_or_else(|| place.rt.random());
    println!("KRAFTLOG_SEED={random}");
    let mut acked: Vec<Acked> = Vec::new();
    for round in 0..ROUNDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wanted = (random >> 40) % 700;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_appends_until_it_is_killed", "--nocapture"])
            .env(DIR, place.path())
            .env(BACKEND, name)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        let mut line = |acked: &mut Vec<Acked>| match lines.next() {
            Some(line) => {
                acked.extend(parse(&line.unwrap()));
                true
            }
            None => false,
        };
        while seen <= wanted && line(&mut acked) {
            seen += 1;
        }
        child.kill().unwrap();
        // What it said before it died counts.
        while line(&mut acked) {}
        child.wait().unwrap();
        assert!(seen > wanted, "round {round}: the child ended by itself after {seen} lines");

        let (log, report) = place.open_with(config());
        println!("round {round}: {} acknowledged so far; {report}", acked.len());
        check(&log, &acked);
        log.close_blocking().unwrap();
    }
    assert!(!acked.is_empty());
}

/// Every acknowledged batch is there, where it was, as it was.
fn check(log: &kraftlog::MetadataLog, acked: &[Acked]) {
    let mut there = std::collections::BTreeSet::new();
    let mut next = log.start_offset();
    while next < log.end_offset() {
        let fetched = log.read_blocking(next, Isolation::Uncommitted, 1 << 20).unwrap();
        assert_eq!(fetched.start, next);
        for item in Batches::new(&fetched.bytes) {
            let batch = item.1.unwrap();
            let header = batch.header();
            there.insert(Acked {
                first: header.base_offset,
                last: header.last_offset(),
                epoch: header.leader_epoch,
                timestamp: header.max_timestamp,
            });
        }
        next = fetched.next;
    }
    assert_eq!(next, log.end_offset());
    for one in acked {
        assert!(there.contains(one), "{one:?} was acknowledged and is gone; the log ends at {next}");
    }
    let _ = Offset::ZERO;
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill_portable() {
    kill_again_and_again(BackendChoice::Portable, "portable");
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill_uring() {
    kill_again_and_again(BackendChoice::Uring, "uring");
}
