//! The log, its snapshots and its small files, as a user of the crates calls them.

use crate::bare::{EXTEND_BYTES, Layout};
use crate::input::Records;
use crate::place::must;
use kraftlog::snapshot::SnapshotFile;
use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, Offset, Preallocation, SnapshotId, Ticket};
use kraftlog_codecs::batch::Batch;
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_io::{BackendChoice, ThreadRt, atomic};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The two back ends; both or one, as this machine has them.
pub const BACKENDS: [(&str, BackendChoice); 2] =
    [("portable", BackendChoice::Portable), ("uring", BackendChoice::Uring)];

/// Why a back end cannot be had here, or `None` if it can.
pub fn refusal(dir: &Path, choice: BackendChoice) -> Option<String> {
    ThreadRt::open(dir, choice).err().map(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    })
}

/// The epoch that the benches lead.
const EPOCH: Epoch = Epoch(1);
/// Records that a writer of checkpoints is given at once, as Kafka hands them over.
const RECORDS_AT_ONCE: usize = 1024;

/// A log that this process leads, in a directory of its own.
pub struct Subject {
    path: PathBuf,
    log: MetadataLog,
}

impl Subject {
    /// Opens a new log below `base` and begins an epoch.
    ///
    /// # Panics
    /// On any error, as all functions here.
    pub fn create(base: &Path, name: &str, choice: BackendChoice, layout: Layout) -> Subject {
        let path = base.join(name);
        must(std::fs::create_dir(&path), &path);
        let dir = must(MetadataDir::open_blocking(&path, choice), &path);
        let mut config = LogConfig::default();
        config.preallocation = match layout {
            Layout::Extended => Preallocation::Extend(EXTEND_BYTES),
            Layout::Growing => Preallocation::None,
        };
        let (log, _report) = must(MetadataLog::open_blocking(dir, config), &path);
        must(log.initialize_leader_epoch_blocking(EPOCH), &path);
        Subject { path, log }
    }

    /// Queues a batch.
    pub fn append(&self, batch: Vec<u8>) -> Ticket {
        must(self.log.append_as_leader(EPOCH, batch), &self.path)
    }

    /// Appends a batch and waits on this thread until it is durable.
    pub fn append_durably(&self, batch: Vec<u8>) {
        must(self.append(batch).durable_blocking(), &self.path);
    }

    /// Appends a batch and waits as a task until it is durable.
    pub async fn append_durably_as_task(&self, batch: Vec<u8>) {
        must(self.append(batch).durable().await, &self.path);
    }

    /// Writes a checkpoint of everything in the log, and gives back where it is and how long.
    pub fn write_checkpoint(&self, records: &Records) -> Checkpoint {
        let end_offset = self.log.durable_end();
        must(self.log.update_high_watermark(end_offset), &self.path);
        let id = SnapshotId { end_offset, epoch: EPOCH };
        let mut writer = must(self.log.create_snapshot_blocking(id), &self.path);
        let mut list = Vec::with_capacity(RECORDS_AT_ONCE);
        for record in records.iter() {
            list.push(record);
            if list.len() == RECORDS_AT_ONCE {
                must(writer.append_blocking(&list), &self.path);
                list.clear();
            }
        }
        must(writer.append_blocking(&list), &self.path);
        let frozen = must(writer.freeze_blocking(), &self.path);
        let part_dir = self.path.join(kraftlog_codecs::names::METADATA_PARTITION_DIR);
        Checkpoint { id, path: kraftlog::snapshot::checkpoint_path(&part_dir, id), bytes: frozen.bytes }
    }

    /// Reads a checkpoint as a stream that a lane reads ahead, decoding every record; gives back their
    /// number.
    pub fn load_ahead(&self, checkpoint: &Checkpoint) -> u64 {
        let mut reader = must(self.log.open_snapshot_blocking(checkpoint.id), &checkpoint.path);
        let mut fold = Fold::default();
        while let Some(batch) = must(reader.next_batch_blocking(), &checkpoint.path) {
            if !batch.is_control() {
                fold.batch(&must(Batch::parse(batch.bytes()), &checkpoint.path), &checkpoint.path);
            }
        }
        fold.records
    }

    /// Where the log ends.
    pub fn end_offset(&self) -> Offset {
        self.log.end_offset()
    }

    /// Closes the log.
    pub fn close(self) {
        must(self.log.close_blocking(), &self.path);
    }
}

/// A checkpoint that was published.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Its id.
    pub id: SnapshotId,
    /// Its file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// Checks CRCs, header and footer of a checkpoint; gives back its length.
pub fn verify(path: &Path) -> u64 {
    must(kraftlog::snapshot::verify_file(path), path).bytes
}

/// Reads a checkpoint on this thread alone, decoding every record; gives back their number.
pub fn load(path: &Path) -> u64 {
    let mut file = must(SnapshotFile::open(path), path);
    let mut fold = Fold::default();
    while let Some(batch) = must(file.next_batch(), path) {
        if !batch.header().is_control() {
            fold.batch(&batch, path);
        }
    }
    fold.records
}

/// A consumer of typed records that looks at fields of each, so that none is decoded in vain.
#[derive(Debug, Default)]
struct Fold {
    records: u64,
    sum: u64,
}

impl Fold {
    fn batch(&mut self, batch: &Batch<'_>, path: &Path) {
        for record in must(batch.records(), path) {
            let record = must(record, path);
            self.sum += match must(MetadataRecord::decode(record.payload()), path).record {
                MetadataRecord::Partition(partition) => {
                    u64::from(partition.leader.cast_unsigned()) + partition.replicas.len() as u64
                }
                MetadataRecord::Topic(topic) => topic.name.len() as u64,
                _ => 1,
            };
            self.records += 1;
        }
        std::hint::black_box(self.sum);
    }
}

/// Replaces one small file again and again on a lane.
pub struct Swapper {
    ask: Option<SyncSender<usize>>,
    done: Receiver<()>,
}

impl Swapper {
    /// Starts the lane; it replaces `path` by `bytes`.
    pub fn start(path: &Path, bytes: &'static [u8], choice: BackendChoice) -> Swapper {
        let dir = path.parent().unwrap_or(Path::new(".")).to_path_buf();
        let (rt, _report) = must(ThreadRt::open(&dir, choice), path);
        let (ask, asked) = sync_channel::<usize>(1);
        let (tell_done, done) = sync_channel(1);
        let path = path.to_path_buf();
        let lane_path = path.clone();
        let lane = rt.spawn_lane(
            "bench-swap",
            &dir,
            Box::new(move |disk| {
                Box::pin(async move {
                    while let Ok(times) = asked.recv() {
                        for _ in 0..times {
                            must(atomic::replace(&*disk, &lane_path, bytes, 0o644).await, &lane_path);
                        }
                        let _ = tell_done.send(());
                    }
                })
            }),
        );
        must(lane, &path);
        Swapper { ask: Some(ask), done }
    }

    /// Replaces the file `times` times and waits.
    pub fn replace(&self, times: usize) {
        let asked = self.ask.as_ref().is_some_and(|ask| ask.send(times).is_ok());
        assert!(asked && self.done.recv().is_ok(), "the lane is gone");
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.ask = None;
        // The lane ends when it finds nobody to ask it.
        let _ = self.done.recv();
    }
}
