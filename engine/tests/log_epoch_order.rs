//! Epochs that are begun while others append.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use kraftlog::{AppendError, Epoch, EpochError, LogConfig, MetadataDir, MetadataLog, Offset};
use kraftlog_io::sim::{FileSystem, Latency, Machine, SimDisk};
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use support::{batch, chain};

const DIR: &str = "/node";

/// Each step of its disk takes a millisecond, a sync ten.
fn machine() -> Machine {
    let disk = SimDisk::new(FileSystem::Weak, 1);
    let machine = Machine::with_disk(disk, Latency::Between(1000, 1000), 1);
    machine.disk().make_dir(Path::new(DIR)).unwrap();
    machine
}

async fn open(machine: &Machine) -> MetadataLog {
    let dir = MetadataDir::with_rt(Path::new(DIR), machine.rt(), machine.backend()).await.unwrap();
    let opened = MetadataLog::open(dir, LogConfig::default()).await;
    opened.unwrap_or_else(|error| panic!("the node does not start: {}", chain(&error))).0
}

/// Starts a future and lets the lane be busy with it for a while, without waiting for the end.
async fn begin<T>(machine: &Machine, future: std::pin::Pin<&mut impl Future<Output = T>>) {
    let mut future = future;
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    machine.rt().sleep(Duration::from_millis(5)).await;
}

/// A node that led epoch 5 numbered a batch of epoch 7 itself, and the handle still took a batch of
/// epoch 5 behind it. The next open refused the log: an epoch went down.
#[test]
fn a_leader_does_not_append_behind_a_newer_epoch() {
    let machine = machine();
    machine.block_on(async {
        let log = open(&machine).await;
        log.initialize_leader_epoch(Epoch(5)).await.unwrap();
        log.append_as_leader(Epoch(5), batch(0, 5, 1)).unwrap().durable().await.unwrap();
        log.append_at(Offset(1), Epoch(7), batch(0, 7, 1)).unwrap().durable().await.unwrap();
        let refused = log.append_as_leader(Epoch(5), batch(0, 5, 1)).err();
        assert!(matches!(refused, Some(AppendError::WrongEpoch { .. })), "{refused:?}");
        log.close().await.unwrap();
        assert_eq!(open(&machine).await.end_offset(), Offset(2));
    });
}

/// While a node wrote down that it leads epoch 5, a batch of epoch 7 came from a newer leader. The node
/// then led epoch 5 behind it, and the next open refused the log.
#[test]
fn an_epoch_is_not_begun_when_a_newer_one_comes_meanwhile() {
    let machine = machine();
    machine.block_on(async {
        let log = open(&machine).await;
        log.initialize_leader_epoch(Epoch(3)).await.unwrap();
        log.append_as_leader(Epoch(3), batch(0, 3, 1)).unwrap().durable().await.unwrap();
        let begun = {
            let mut begun = pin!(log.initialize_leader_epoch(Epoch(5)));
            begin(&machine, begun.as_mut()).await;
            let newer = log.append_as_follower(Epoch(7), batch(1, 7, 1)).unwrap().ticket().unwrap();
            newer.durable().await.unwrap();
            begun.await
        };
        assert!(matches!(begun, Err(EpochError::NotAbove { .. })), "{begun:?}");
        let refused = log.append_as_leader(Epoch(5), batch(0, 5, 1)).err();
        assert!(matches!(refused, Some(AppendError::WrongEpoch { .. })), "{refused:?}");
        assert_eq!(log.last_epoch(), Epoch(7));
        log.close().await.unwrap();
        assert_eq!(open(&machine).await.end_offset(), Offset(2));
    });
}

/// While a node wrote down that it leads epoch 5, a late batch of epoch 3 was taken. Epoch 5 was said to
/// begin before that batch: until the next restart, a follower was told the wrong end of epoch 3.
#[test]
fn no_batch_of_an_older_epoch_comes_behind_the_call_that_begins_one() {
    let machine = machine();
    machine.block_on(async {
        let log = open(&machine).await;
        log.initialize_leader_epoch(Epoch(3)).await.unwrap();
        log.append_as_leader(Epoch(3), batch(0, 3, 1)).unwrap().durable().await.unwrap();
        let mut begun = pin!(log.initialize_leader_epoch(Epoch(5)));
        begin(&machine, begun.as_mut()).await;
        let late = log.append_at(Offset(1), Epoch(3), batch(0, 3, 1)).err();
        assert!(matches!(late, Some(AppendError::EpochGoesDown { .. })), "{late:?}");
        let late = log.append_as_leader(Epoch(3), batch(0, 3, 1)).err();
        assert!(matches!(late, Some(AppendError::WrongEpoch { .. })), "{late:?}");
        begun.await.unwrap();
        log.append_as_leader(Epoch(5), batch(0, 5, 1)).unwrap().durable().await.unwrap();
        let told = log.end_offset_for_epoch(Epoch(3));
        assert_eq!((told.epoch, told.end_offset), (Epoch(3), Offset(1)));
    });
}
