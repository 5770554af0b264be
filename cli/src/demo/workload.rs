//! What the demo appends, and whether it is all there again.
//!
//! One append creates one topic: its record, eight partitions and one setting, ten records in one
//! batch. Everything in it follows from (epoch, task, number), so that who knows which appends were
//! acknowledged can make every byte of them again and compare.

use kraftlog::{Epoch, Isolation, MetadataLog, Offset};
use kraftlog_codecs::batch::Batches;
use kraftlog_codecs::error::EncodeError;
use kraftlog_codecs::features::MetadataVersion;
use kraftlog_codecs::metadata::{ArrayBuf, ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord};
use kraftlog_codecs::uuid::Uuid;
use kraftlog_io::Rt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Records of one append.
pub(crate) const RECORDS_PER_APPEND: u64 = 10;
const PARTITIONS: i32 = 8;
/// `ConfigResource.Type.TOPIC`.
const TOPIC_RESOURCE: i8 = 2;
const READ_BYTES: usize = 4 << 20;

/// One acknowledged append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ack {
    /// Offset of its first record.
    pub(crate) offset: i64,
    pub(crate) epoch: i32,
    pub(crate) task: u64,
    pub(crate) number: u64,
}

/// The encoded records of one append.
pub(crate) fn records(epoch: i32, task: u64, number: u64) -> Result<Vec<Vec<u8>>, EncodeError> {
    let version = MetadataVersion::LATEST_PRODUCTION.partition_version();
    let name = format!("demo-{epoch}-{task}-{number}");
    // Far from the reserved ids.
    let topic_id = Uuid::from_halves((1 << 62) | u64::from(epoch.cast_unsigned()) << 32 | task, number);
    let replicas = ArrayBuf::<i32>::of([1])?;
    let directories = ArrayBuf::<Uuid>::of([Uuid::from_halves(1, 1 << 32)])?;
    let mut out = Vec::with_capacity(RECORDS_PER_APPEND as usize);
    let mut push = |record: MetadataRecord<'_>, version| -> Result<(), EncodeError> {
        let mut value = Vec::new();
        record.encode(version, &mut value)?;
        out.push(value);
        Ok(())
    };
    push(TopicRecord { name: &name, topic_id, ..TopicRecord::default() }.into(), 0)?;
    for partition_id in 0..PARTITIONS {
        let record = PartitionRecord {
            partition_id,
            topic_id,
            replicas: replicas.array(),
            isr: replicas.array(),
            leader: 1,
            leader_epoch: 0,
            partition_epoch: 0,
            directories: directories.array(),
            ..PartitionRecord::default()
        };
        push(record.into(), version)?;
    }
    let config = ConfigRecord {
        resource_type: TOPIC_RESOURCE,
        resource_name: &name,
        name: "retention.ms",
        value: Some("86400000"),
        ..ConfigRecord::default()
    };
    push(config.into(), 0)?;
    Ok(out)
}

/// Figures of many tasks that appended at once.
#[derive(Debug, Default)]
pub(crate) struct Appended {
    /// What was acknowledged, by offset.
    pub(crate) acks: Vec<Ack>,
    /// How long each waited for it, sorted.
    pub(crate) waits: Vec<Duration>,
    /// From the first to the last.
    pub(crate) took: Duration,
}

impl Appended {
    /// The wait that so many of a thousand appends did not exceed.
    pub(crate) fn per_mille(&self, rank: usize) -> Duration {
        let last = self.waits.len().saturating_sub(1);
        self.waits.get((self.waits.len() * rank / 1000).min(last)).copied().unwrap_or_default()
    }
}

/// Appends from many tasks at once, each waiting for the acknowledgement of its last append before the
/// next, until each has done `appends(task)` or one fails.
pub(crate) fn append(
    log: &MetadataLog,
    epoch: Epoch,
    tasks: u64,
    appends: impl Fn(u64) -> u64 + Sync,
    on_ack: &(dyn Fn(Ack) -> bool + Sync),
) -> Result<Appended, Box<dyn std::error::Error + Send + Sync>> {
    let rt = log.dir().rt();
    let begun = rt.monotonic();
    let stop = AtomicBool::new(false);
    let results: Vec<_> = std::thread::scope(|scope| {
        let task = |task| {
            let (appends, stop) = (&appends, &stop);
            scope.spawn(move || {
                let done = run_task(log, &**rt, epoch, task, appends(task), stop, on_ack);
                if done.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                done
            })
        };
        let threads: Vec<_> = (0..tasks).map(task).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut appended = Appended { took: rt.monotonic().saturating_sub(begun), ..Appended::default() };
    for result in results {
        let (acks, waits) = result.map_err(|_| "a task panicked")??;
        appended.acks.extend(acks);
        appended.waits.extend(waits);
    }
    appended.acks.sort_unstable();
    appended.waits.sort_unstable();
    Ok(appended)
}

type TaskDone = Result<(Vec<Ack>, Vec<Duration>), Box<dyn std::error::Error + Send + Sync>>;

fn run_task(
    log: &MetadataLog,
    rt: &dyn Rt,
    epoch: Epoch,
    task: u64,
    appends: u64,
    stop: &AtomicBool,
    on_ack: &(dyn Fn(Ack) -> bool + Sync),
) -> TaskDone {
    let (mut acks, mut waits) = (Vec::new(), Vec::new());
    for number in 0..appends {
        let records = records(epoch.0, task, number)?;
        let begun = rt.monotonic();
        let ticket = log.append_records(epoch, &records)?;
        let appended = ticket.durable_blocking()?;
        waits.push(rt.monotonic().saturating_sub(begun));
        // The only voter: what is durable here is committed.
        log.update_high_watermark(Offset(appended.last.0 + 1))?;
        let ack = Ack { offset: appended.first.0, epoch: epoch.0, task, number };
        acks.push(ack);
        if !on_ack(ack) || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok((acks, waits))
}

/// Reads the whole log and compares every acknowledged append, byte by byte; gives how many are
/// missing or differ. `acks` is sorted.
pub(crate) fn missing(
    log: &MetadataLog,
    acks: &[Ack],
) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let mut open = acks.iter().peekable();
    let mut found = 0u64;
    let mut at = log.start_offset();
    while at < log.end_offset() {
        let fetched = log.read_blocking(at, Isolation::Uncommitted, READ_BYTES)?;
        for (_, batch) in Batches::new(&fetched.bytes) {
            let batch = batch?;
            let base = batch.header().base_offset;
            while open.next_if(|ack| ack.offset < base).is_some() {}
            let Some(ack) = open.next_if(|ack| ack.offset == base) else { continue };
            let expected = records(ack.epoch, ack.task, ack.number)?;
            let mut same = batch.header().records_count as usize == expected.len();
            for (record, expected) in batch.records()?.zip(&expected) {
                same &= record?.value == Some(expected.as_slice());
            }
            found += u64::from(same && batch.header().leader_epoch == ack.epoch);
        }
        at = fetched.next;
    }
    Ok(acks.len() as u64 - found)
}
