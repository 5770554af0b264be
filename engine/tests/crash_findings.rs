//! What the crash exploration found (`crash`, in tests/), each as its user would have met it.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use kraftlog::node::{Node, NodeConfig, StartOptions};
use kraftlog::{
    AppendError, Epoch, LogConfig, MetadataDir, MetadataLog, Offset, OpenError, OpenReport, Preallocation,
};
use kraftlog_codecs::batch::{BatchBuilder, BatchOptions};
use kraftlog_codecs::properties::Properties;
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, FileSystem, Latency, Machine, SimDisk};
use std::path::{Path, PathBuf};

const DIR: &str = "/node";

fn segment(base: i64) -> PathBuf {
    Path::new(DIR).join(format!("__cluster_metadata-0/{base:020}.log"))
}

fn machine(disk: SimDisk) -> Machine {
    disk.make_dir(Path::new(DIR)).unwrap();
    Machine::with_disk(disk, Latency::None, 1)
}

fn try_open(machine: &Machine, config: LogConfig) -> Result<(MetadataLog, OpenReport), OpenError> {
    machine.block_on(async {
        let dir = MetadataDir::with_rt(Path::new(DIR), machine.rt(), machine.backend()).await.unwrap();
        MetadataLog::open(dir, config).await
    })
}

fn open(machine: &Machine) -> (MetadataLog, OpenReport) {
    try_open(machine, config()).unwrap_or_else(|error| panic!("{error}"))
}

/// The records of these tests mean nothing.
fn config() -> LogConfig {
    let mut config = LogConfig::default();
    config.check_records = false;
    config
}

/// A batch of one record, so many bytes long.
fn batch(bytes: usize) -> Vec<u8> {
    let sizes = 4..bytes;
    let batches = sizes.map(|value| {
        let mut batch = Vec::new();
        let mut builder = BatchBuilder::new(&mut batch, BatchOptions::data(0, 1, 1_700_000_000_000));
        builder.append(None, &[&[1, 20, 0, 0][..], &vec![0x5a; value - 4]].concat()).unwrap();
        builder.finish();
        batch
    });
    batches.into_iter().find(|batch| batch.len() == bytes).expect("there is a record of that size")
}

/// "The power failed, and now the node says that its log is damaged at byte 301 and a valid batch
/// follows, and does not start." A group of three batches was on its way; the first sector of it was lost.
/// The third batch was whole all the same, because it began three bytes before the end of the lost
/// sector, and a base offset begins with zeros.
#[test]
fn a_lost_sector_in_which_a_whole_batch_begins_is_torn_and_no_rot() {
    let machine = machine(SimDisk::new(FileSystem::Weak, 1));
    let (log, _) = open(&machine);
    machine.block_on(async {
        log.initialize_leader_epoch(Epoch(1)).await.unwrap();
        log.append_as_leader(Epoch(1), batch(301)).unwrap().durable().await.unwrap();
        let group = [batch(104), batch(104), batch(200)];
        let tickets = group.map(|batch| log.append_as_leader(Epoch(1), batch).unwrap());
        for ticket in tickets {
            ticket.durable().await.unwrap();
        }
    });
    let found = machine.disk().fork(1);
    let mut bytes = found.read(&segment(0)).unwrap();
    assert_eq!(bytes[509..517], 3_i64.to_be_bytes(), "the last batch begins at byte 509");
    bytes[301..512].fill(0);
    found.write(&segment(0), &bytes).unwrap();
    let (log, report) = open(&self::machine(found));
    assert_eq!(log.end_offset(), Offset(1), "{report}");
    assert!(report.torn_tail.is_some(), "{report}");
}

/// "My append failed with an I/O error, so I wrote the record to another place. After the next power cut
/// it was in the log as well." The failed write was cut off, but not durably.
#[test]
fn an_append_that_was_refused_does_not_come_back_with_a_power_cut() {
    let mut left_whole = 0;
    for seed in 0..40 {
        let machine = machine(SimDisk::new(FileSystem::Weak, seed));
        let (log, _) = open(&machine);
        machine.block_on(async {
            log.initialize_leader_epoch(Epoch(1)).await.unwrap();
            machine.disk().on_step(|_, step| {
                let is_log = step.path.extension().is_some_and(|extension| extension == "log");
                (step.op == Op::Write && is_log).then_some(Fault::Fails(Errno::IO))
            });
            let tickets = [100, 100, 300].map(|len| log.append_as_leader(Epoch(1), batch(len)).unwrap());
            for ticket in tickets {
                let error = ticket.durable().await.unwrap_err();
                assert!(matches!(error, AppendError::Io(_)), "{error}");
            }
        });
        for keep in [0, usize::MAX] {
            let found = machine.disk().crash_choosing(seed, &mut |of| keep.min(of - 1));
            let length = found.read(&segment(0)).map_or(0, |bytes| bytes.len());
            left_whole += usize::from(length > 0);
            let (log, report) = open(&self::machine(found));
            assert_eq!(log.end_offset(), Offset(0), "seed {seed}: {report}");
        }
    }
    println!("{left_whole} crashes left bytes behind");
}

/// "The disk was full for a moment. It went on afterwards, but after a restart the node refuses to open:
/// offsets stand twice." The segment that could not be made was left, empty, and the log went on in the
/// old one.
#[test]
fn a_roll_that_failed_is_not_in_the_way_of_the_next_open() {
    let machine = machine(SimDisk::new(FileSystem::Weak, 1));
    let mut config = config();
    config.segment_bytes_max = 1000;
    config.preallocation = Preallocation::None;
    let (log, _) = try_open(&machine, config.clone()).unwrap();
    machine.block_on(async {
        log.initialize_leader_epoch(Epoch(1)).await.unwrap();
        let append = async |len| log.append_as_leader(Epoch(1), batch(len)).unwrap().durable().await;
        append(700).await.unwrap();
        machine.disk().on_step(|_, step| {
            let is_index = step.path.extension().is_some_and(|extension| extension == "timeindex");
            (step.op == Op::Create && is_index).then_some(Fault::Fails(Errno::NOSPC))
        });
        append(700).await.unwrap_err();
        machine.disk().clear_hook();
        assert_eq!(machine.disk().read(&segment(1)), None, "an empty segment was left");
        append(100).await.unwrap();
        append(700).await.unwrap();
        log.close().await.unwrap();
    });
    // An earlier build left it there.
    machine.disk().write(&segment(1), b"").unwrap();
    let (log, report) = try_open(&machine, config).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(log.end_offset(), Offset(3), "{report}");
    assert_eq!(machine.disk().read(&segment(1)), None);
}

/// "The power failed while a new broker started for the first time. Now it says that no meta.properties
/// was found in one of its directories, and that I should format the node, which format refuses." The
/// first start had written the file of the other directory.
#[test]
fn a_first_start_that_was_cut_short_is_finished_by_the_next_one() {
    let machine = machine(SimDisk::new(FileSystem::Weak, 1));
    let half = "version=2\nnode.id=1\ndirectory.id=FNu1jmuxSF2vc8q95hCkCQ\n";
    machine.disk().write(Path::new("/srv/data/meta.properties"), half.as_bytes()).unwrap();
    machine.disk().make_dir(Path::new("/srv/metadata")).unwrap();
    let properties: Properties = [
        ("process.roles", "broker"),
        ("node.id", "1"),
        ("listeners", "PLAINTEXT://h:9092"),
        ("controller.listener.names", "CONTROLLER"),
        ("controller.quorum.bootstrap.servers", "h:9093"),
        ("log.dirs", "/srv/data"),
        ("metadata.log.dir", "/srv/metadata"),
    ]
    .into_iter()
    .collect();
    let start = async |discover| {
        let mut options = StartOptions::default();
        options.discover_cluster_id = discover;
        let config = NodeConfig::from_properties(&properties).unwrap();
        Node::start_with_rt(config, options, machine.rt(), machine.backend()).await
    };
    machine.block_on(async {
        let refused = start(false).await.err().expect("only a node that may discover goes on");
        assert_eq!(refused.name(), "NotFormatted");
        let node = start(true).await.unwrap_or_else(|error| panic!("{error}"));
        let data = node.identity().directory_id(Path::new("/srv/data")).unwrap();
        assert_eq!(data.to_string(), "FNu1jmuxSF2vc8q95hCkCQ");
        assert!(node.identity().directory_id(Path::new("/srv/metadata")).is_some());
        node.learn_cluster_id("Jk01gj4RQRegVl2GLqYuTg").await.unwrap();
        drop(node);
        // A blank directory beside ones that know their cluster is a lost disk, not a first start.
        machine.disk().remove_file(Path::new("/srv/metadata/meta.properties")).unwrap();
        assert_eq!(start(true).await.err().unwrap().name(), "NotFormatted");
    });
}

/// "The disk was full for one batch. The next one began a new segment, and after a power cut the node did
/// not start any more: damaged, and valid batches follow." What the failed write had left was cut off,
/// but not durably, and came back in front of the new segment.
#[test]
fn what_a_failed_write_left_does_not_come_back_in_front_of_a_new_segment() {
    for preallocation in [Preallocation::Extend(512), Preallocation::KeepSize(512), Preallocation::None] {
        let machine = machine(SimDisk::new(FileSystem::Weak, 1));
        let mut config = config();
        config.segment_bytes_max = 1000;
        config.preallocation = preallocation;
        let (log, _) = try_open(&machine, config.clone()).unwrap();
        machine.block_on(async {
            log.initialize_leader_epoch(Epoch(1)).await.unwrap();
            let append = async |len| log.append_as_leader(Epoch(1), batch(len)).unwrap().durable().await;
            append(600).await.unwrap();
            machine.disk().on_step(|_, step| {
                let is_log = step.path.extension().is_some_and(|extension| extension == "log");
                (step.op == Op::Write && is_log).then_some(Fault::Fails(Errno::NOSPC))
            });
            let refused = append(350).await.unwrap_err();
            assert!(matches!(refused, AppendError::NoSpace { .. }), "{refused}");
            machine.disk().clear_hook();
            append(600).await.unwrap();
        });
        for seed in 0..50 {
            let found = self::machine(machine.disk().crash(seed));
            let (log, report) = try_open(&found, config.clone()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(log.end_offset(), Offset(2), "{preallocation:?}, seed {seed}: {report}");
        }
    }
}

/// "A sync failed, so I restarted the node; it ran for weeks. Then the power failed, and now it says that
/// the log is damaged where a segment ends." The sync that failed was to make the cut of the reserve
/// durable; the restart found the right length in the cache and left it at that.
#[test]
fn a_cut_whose_sync_failed_is_made_again_by_the_next_open() {
    let machine = machine(SimDisk::new(FileSystem::Weak, 1));
    let mut config = config();
    config.segment_bytes_max = 1000;
    config.preallocation = Preallocation::Extend(4096);
    let (log, _) = try_open(&machine, config.clone()).unwrap();
    machine.block_on(async {
        log.initialize_leader_epoch(Epoch(1)).await.unwrap();
        let append = async |len| log.append_as_leader(Epoch(1), batch(len)).unwrap().durable().await;
        append(700).await.unwrap();
        let mut cut = false;
        machine.disk().on_step(move |_, step| {
            cut |= step.op == Op::SetLen;
            (cut && step.op == Op::Sync).then_some(Fault::LostSync { cache_keeps: true })
        });
        // Belongs into a new segment, before which the old one is cut.
        append(700).await.unwrap_err();
        machine.disk().clear_hook();
        drop(log);
    });
    let again = Machine::with_disk(machine.disk().fork(2), Latency::None, 2);
    let (log, _) = try_open(&again, config.clone()).unwrap();
    again.block_on(async {
        log.initialize_leader_epoch(Epoch(2)).await.unwrap();
        log.append_as_leader(Epoch(2), batch(700)).unwrap().durable().await.unwrap();
    });
    for seed in 0..50 {
        let found = self::machine(again.disk().crash(seed));
        let (log, report) = try_open(&found, config.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(log.end_offset(), Offset(2), "seed {seed}: {report}");
    }
}

/// "The node was killed in its first second. It was started again and acknowledged a batch; then the power
/// failed, and its whole directory is gone." The first had made the directory and not synced its name, and
/// the second took it as it was.
#[test]
fn a_part_directory_that_a_killed_node_left_is_durable_before_the_first_acknowledgement() {
    let first = machine(SimDisk::new(FileSystem::Weak, 1));
    let (tell, killed) = std::sync::mpsc::channel();
    first.disk().on_step(move |disk, step| {
        if step.op == Op::SyncDir && step.path == Path::new(DIR) {
            let _ = tell.send(disk.fork(2));
        }
        None
    });
    drop(open(&first));
    first.disk().clear_hook();
    let second = Machine::with_disk(killed.recv().unwrap(), Latency::None, 2);
    let (log, _) = open(&second);
    second.block_on(async {
        log.initialize_leader_epoch(Epoch(1)).await.unwrap();
        log.append_as_leader(Epoch(1), batch(100)).unwrap().durable().await.unwrap();
    });
    for seed in 0..50 {
        let (log, _) = open(&Machine::with_disk(second.disk().crash(seed), Latency::None, 3));
        assert_eq!(log.end_offset(), Offset(1), "seed {seed}: an acknowledged batch is gone");
    }
}
