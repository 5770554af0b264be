//! A node that is killed with SIGKILL at any moment has lost nothing that it acknowledged.
//!
//! The parent starts itself again as a node, reads what the node acknowledges through a pipe, kills it at
//! a random moment (while it opens and recovers, appends and rolls, writes a checkpoint, closes) and opens
//! the directory: it is the oracle, and keeps nothing in the node. After some kills it does not look, so
//! that the next node finds what the kill left, and may be killed in its recovery. The page cache outlives
//! a killed process, so this proves the order of acknowledgements, not that of the syncs; for those see
//! `power_cut_image.rs` and the simulated disk.
//!
//! `KRAFTLOG_KILLS=200` kills more often, `KRAFTLOG_SEED` repeats a run's choices.

mod support;

use kraftlog::io::BackendChoice;
use std::collections::BTreeMap;
use std::time::Duration;
use support::acknowledged::Acknowledged;
use support::child::Node;
use support::{can_be_had, number, seed};

const KILLS_DEFAULT: u64 = 20;
/// A directory lives through so many kills: looking for everything takes longer with each.
const KILLS_A_DIRECTORY: u64 = 25;

#[test]
fn node() {
    support::node::live_if_asked();
}

/// Lets the node live until the moment of its death.
fn live(node: &mut Node, random: &mut fastrand::Rng, acknowledged: &mut Acknowledged) {
    let at_most = |random: &mut fastrand::Rng, micros| Duration::from_micros(random.u64(0..=micros));
    let more = match random.u32(0..5) {
        0 => {
            node.hear_until("opening", acknowledged);
            at_most(random, 8_000)
        }
        1 => {
            node.hear_until("opened", acknowledged);
            at_most(random, 8_000)
        }
        2 => {
            node.hear_until("freezing", acknowledged);
            at_most(random, 60_000)
        }
        3 => {
            node.hear_until("frozen", acknowledged);
            node.hear_until("freezing", acknowledged);
            at_most(random, 4_000)
        }
        _ => {
            node.hear_until("closing", acknowledged);
            at_most(random, 8_000)
        }
    };
    node.hear_for(more, acknowledged);
}

fn kill_again_and_again(backend: &str, choice: BackendChoice) {
    let kills = number("KRAFTLOG_KILLS").unwrap_or(KILLS_DEFAULT);
    let seed = seed();
    println!("{backend}: {kills} kills, seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut killed_while: BTreeMap<String, u64> = BTreeMap::new();
    let (mut appends, mut checkpoints, mut recovered) = (0, 0, 0);
    let mut kill = 0;
    while kill < kills {
        let dir = tempfile::tempdir().expect("a temporary directory");
        if !can_be_had(choice, dir.path()) {
            return;
        }
        let mut acknowledged = Acknowledged::default();
        let last = kills.min(kill + KILLS_A_DIRECTORY);
        while kill < last {
            kill += 1;
            let mut node = Node::start(dir.path(), backend);
            live(&mut node, &mut random, &mut acknowledged);
            let was = node.kill(&mut acknowledged);
            *killed_while.entry(was).or_default() += 1;
            if kill == last || random.u32(0..3) > 0 {
                let context = format!("seed {seed}, kill {kill}");
                let report = acknowledged.check(dir.path(), choice, &context);
                recovered += u64::from(report.rewritten_bytes > 0 || report.torn_tail.is_some());
            }
        }
        appends += acknowledged.appends();
        checkpoints += acknowledged.checkpoints();
        assert!(acknowledged.vote() > 0, "no vote was ever heard; seed {seed}, kill {kill}");
    }
    assert!(appends > 10, "only {appends} appends were acknowledged; seed {seed}");
    let moments: Vec<String> = killed_while.iter().map(|(was, times)| format!("{was} {times}")).collect();
    println!("{backend}: killed while (last word) {}; {recovered} opens had to mend", moments.join(", "));
    println!("{backend}: {appends} appends and {checkpoints} checkpoints acknowledged, all there");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_node_is_killed_portable() {
    kill_again_and_again("portable", BackendChoice::Portable);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_node_is_killed_uring() {
    kill_again_and_again("uring", BackendChoice::Uring);
}
