//! Who waits when the directory is fenced.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use kraftlog::snapshot::SnapshotWriteError;
use kraftlog::{Epoch, ErrorKind, LogConfig, MetadataDir, MetadataLog, Offset, SnapshotId};
use kraftlog_io::Op;
use kraftlog_io::sim::{Errno, Fault, FileSystem, Latency, Machine, SimDisk};
use std::path::Path;

/// A caller saw his `create_snapshot` sleep and look, twenty times a second, while a sync took long: nothing woke it
/// when the sync failed. On a simulated machine, where nobody sleeps, one that is not woken stands still.
#[test]
fn a_snapshot_that_waits_for_durability_is_woken_by_the_failed_sync() {
    let disk = SimDisk::new(FileSystem::Weak, 1);
    disk.make_dir(Path::new("/node")).unwrap();
    let machine = Machine::with_disk(disk, Latency::Of(Op::Sync, 1000, 1000), 1);
    machine.block_on(async {
        let dir = MetadataDir::with_rt(Path::new("/node"), machine.rt(), machine.backend()).await.unwrap();
        let (log, _) = MetadataLog::open(dir, LogConfig::default()).await.unwrap();
        log.initialize_leader_epoch(Epoch(1)).await.unwrap();
        machine.disk().on_step(|_, step| (step.op == Op::Sync).then_some(Fault::Fails(Errno::IO)));

        let mut watch = log.watch();
        let ticket = log.append_records(Epoch(1), [[1_u8, 20, 0, 0]]).unwrap();
        let ends = watch.changed().await.unwrap();
        assert_eq!((ends.end, ends.durable_end), (Offset(1), Offset(0)), "written, and its sync under way");
        log.update_high_watermark(Offset(1)).unwrap();
        let refused = log.create_snapshot(SnapshotId::new(1, 1)).await.err().unwrap();
        assert!(matches!(refused, SnapshotWriteError::Fenced(_)), "{refused}");
        assert_eq!(ticket.durable().await.unwrap_err().kind(), ErrorKind::Fenced);
    });
}
