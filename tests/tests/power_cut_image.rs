//! A node on a real ext4 whose power is cut at any moment has lost nothing that it acknowledged.
//!
//! The node is a process of its own on an ext4 in a file. At random moments the parent stops it, takes
//! what it has said so far, and copies the backing file: what was in the file system's cache only is not in
//! the copy, as after a power cut. The copy is mounted (which replays the journal), opened and held against
//! what was acknowledged. After some cuts the machine comes back: a new node lives on in such a copy,
//! recovers there and is cut off again. The backing file's own cache plays the disk, so this proves our
//! syncs and ext4's, not the disk's obedience; what weaker file systems may do, with single sectors lost,
//! is for the simulated disk.
//!
//! `KRAFTLOG_CUTS=100` cuts more often, `KRAFTLOG_SEED` repeats a run's choices.

#![allow(clippy::disallowed_methods, reason = "the test makes and moves images of file systems")]

mod support;

use kraftlog::io::BackendChoice;
use std::path::Path;
use std::time::Duration;
use support::acknowledged::Acknowledged;
use support::child::Node;
use support::loop_disk::{Mounted, NotRun, make_ext4};
use support::{can_be_had, number, seed};

const CUTS_DEFAULT: u64 = 25;
/// After so many cuts of one node the machine comes back with what the last one left.
const CUTS_A_LIFE: u64 = 5;
const IMAGE_MIB: u64 = 64;

#[test]
fn node() {
    support::node::live_if_asked();
}

/// Lets the node live until the moment of the cut.
fn live(node: &mut Node, random: &mut fastrand::Rng, acknowledged: &mut Acknowledged) {
    let (until, micros) = match random.u32(0..6) {
        0 => ("opening", 10_000),
        1 => ("opened", 40_000),
        2 => ("freezing", 8_000),
        // At once: what comes next may sync by chance what an earlier step should have.
        3 => ("vote", 0),
        4 => ("frozen", 0),
        _ => ("closing", 10_000),
    };
    node.hear_until(until, acknowledged);
    node.hear_for(Duration::from_micros(random.u64(0..=micros)), acknowledged);
}

/// Where a node lives in its file system.
fn node_dir(mounted: &Mounted) -> std::path::PathBuf {
    mounted.at().join("node")
}

/// Makes a file system with an empty directory for a node, durably.
fn make_disk(place: &Path, disk: &Path, options: &str) -> Result<(), NotRun> {
    make_ext4(disk, IMAGE_MIB)?;
    let mounted = Mounted::ext4(disk, &place.join("machine"), options)?;
    std::fs::create_dir(node_dir(&mounted)).expect("a directory");
    Ok(())
}

fn cut_again_and_again(backend: &str, choice: BackendChoice, options: &str, cuts: u64) -> Result<(), NotRun> {
    let seed = seed();
    let what = format!("{backend} on ext4 {options}, seed {seed}");
    println!("{what}: {cuts} power cuts");
    let mut random = fastrand::Rng::with_seed(seed);
    let place = tempfile::tempdir().expect("a temporary directory");
    let [disk, cut_off] = ["disk.img", "cut_off.img"].map(|name| place.path().join(name));
    make_disk(place.path(), &disk, options)?;
    let mut acknowledged = Acknowledged::default();
    let (mut mended, mut written_again) = (0, 0);
    let mut cut = 0;
    while cut < cuts {
        let machine = Mounted::ext4(&disk, &place.path().join("machine"), options)?;
        if !can_be_had(choice, machine.at()) {
            return Ok(());
        }
        let mut node = Node::start(&node_dir(&machine), backend);
        let last = cuts.min(cut + CUTS_A_LIFE);
        while cut < last {
            cut += 1;
            live(&mut node, &mut random, &mut acknowledged);
            node.stop();
            node.hear(&mut acknowledged);
            machine.copy_of_disk(&cut_off);
            let context = format!("{what}, cut {cut} while {}", node.doing());
            if cut == last {
                // The machine comes back with this disk, before anybody has looked at it.
                std::fs::copy(&cut_off, place.path().join("next.img")).expect("room for an image");
            }
            let seen = Mounted::ext4(&cut_off, &place.path().join("seen"), options)?;
            let report = acknowledged.check(&node_dir(&seen), choice, &context);
            mended += u64::from(report.torn_tail.is_some());
            written_again += report.rewritten_bytes;
            node.go_on();
        }
        drop(node);
        drop(machine);
        std::fs::rename(place.path().join("next.img"), &disk).expect("the image can be moved");
    }
    assert!(acknowledged.vote() > 0, "no vote was ever heard; {what}");
    assert!(acknowledged.appends() > 10, "{} appends were acknowledged; {what}", acknowledged.appends());
    println!(
        "{what}: {} appends, {} checkpoints and vote {} acknowledged, all there; {mended} torn tails cut, \
         {written_again} bytes written again",
        acknowledged.appends(),
        acknowledged.checkpoints(),
        acknowledged.vote(),
    );
    Ok(())
}

fn run(backend: &str, choice: BackendChoice, options: &str, cuts: u64) {
    if let Err(reason) = cut_again_and_again(backend, choice, options, cuts) {
        println!("{reason} ({backend} on ext4 {options})");
    }
}

fn cuts() -> u64 {
    number("KRAFTLOG_CUTS").unwrap_or(CUTS_DEFAULT)
}

#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut_on_ext4_portable() {
    run("portable", BackendChoice::Portable, "data=ordered", cuts());
}

#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut_on_ext4_uring() {
    run("uring", BackendChoice::Uring, "data=ordered", cuts());
}

/// Names and lengths may be on the disk before the bytes that they stand for, also of a file that
/// replaces another.
#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut_on_ext4_that_does_not_order_data() {
    run("portable", BackendChoice::Portable, "data=writeback,noauto_da_alloc", cuts().div_ceil(2));
}
