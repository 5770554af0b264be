//! A power cut behind the death of a process: what the first left unsynced must not cost what the next
//! one acknowledged.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, Offset};
use kraftlog_io::Op;
use kraftlog_io::sim::{Latency, Machine, SimDisk};
use std::path::Path;
use support::{batch, chain};

const DIR: &str = "/node";

fn machine(disk: SimDisk) -> Machine {
    Machine::with_disk(disk, Latency::None, 1)
}

async fn open(machine: &Machine, config: LogConfig) -> MetadataLog {
    let dir = MetadataDir::with_rt(Path::new(DIR), machine.rt(), machine.backend()).await.unwrap();
    let opened = MetadataLog::open(dir, config).await;
    opened.unwrap_or_else(|error| panic!("the node does not start: {}", chain(&error))).0
}

/// A node was killed right after it had made its part directory. It was started again, acknowledged a
/// batch, and a power cut took the whole directory with it: its name had never been synced.
#[test]
fn a_part_directory_that_a_killed_node_left_is_durable_before_the_first_acknowledgement() {
    let first = Machine::new(1);
    first.disk().make_dir(Path::new(DIR)).unwrap();
    let (tell, killed) = std::sync::mpsc::channel();
    first.disk().on_step(move |disk, step| {
        if step.op == Op::SyncDir && step.path == Path::new(DIR) {
            let _ = tell.send(disk.fork(2));
        }
        None
    });
    first.block_on(async { open(&first, LogConfig::default()).await.close().await.unwrap() });
    first.disk().clear_hook();

    let second = machine(killed.recv().unwrap());
    second.block_on(async {
        let log = open(&second, LogConfig::default()).await;
        log.initialize_leader_epoch(Epoch(1)).await.unwrap();
        log.append_as_leader(Epoch(1), batch(0, 1, 1)).unwrap().durable().await.unwrap();
    });
    for seed in 0..50 {
        let third = machine(second.disk().crash(seed));
        let end = third.block_on(async { open(&third, LogConfig::default()).await.end_offset() });
        assert_eq!(end, Offset(1), "seed {seed}: an acknowledged batch is gone");
    }
}
