//! Makes candidates for the seeds of all targets from the fixtures: `cargo run --example seed -- DIR`. `fuzz/seed`
//! calls it and keeps what is not redundant.

use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};
use kraftlog::io::sim::Machine;
use kraftlog::{Epoch, LogConfig, MetadataDir, MetadataLog, Offset, SnapshotId};
use kraftlog_codecs::batch::{Batch, Batches, HEADER_BYTES};
use kraftlog_codecs::metadata::MetadataRecord;
use kraftlog_codecs::quorum::{QuorumState, VersionData};
use kraftlog_fuzz::crash::program;
use kraftlog_fuzz::dir::{Choices, Dir};
use kraftlog_tests::fixtures::{self, PART_DIR};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Larger ones make a fuzzer slow and the tree heavy.
const SEED_BYTES_MAX: usize = 4096;
/// Logs are cut to so many bytes: there are many of them, and much alike.
const LOG_BYTES_MAX: usize = 1536;

struct Seeds {
    to: PathBuf,
    number: usize,
}

impl Seeds {
    fn add(&mut self, target: &str, bytes: &[u8]) {
        if bytes.is_empty() || bytes.len() > SEED_BYTES_MAX {
            return;
        }
        let dir = self.to.join(target);
        fs::create_dir_all(&dir).expect("a directory for seeds");
        self.number += 1;
        fs::write(dir.join(format!("{:05}", self.number)), bytes).expect("a seed");
    }

    /// Small files of whole batches: segments are cut behind a batch.
    fn log_or_checkpoint(&mut self, bytes: &[u8], records: &mut BTreeSet<(u32, i16)>) {
        let mut cut = 0;
        for (position, batch) in Batches::new(bytes) {
            let Ok(batch) = batch else { break };
            if position + batch.bytes().len() <= LOG_BYTES_MAX {
                cut = position + batch.bytes().len();
            }
            self.batch(&batch, records);
        }
        self.add("batches", &bytes[..cut]);
        self.add("dump", &bytes[..cut]);
    }

    fn batch(&mut self, batch: &Batch<'_>, records: &mut BTreeSet<(u32, i16)>) {
        let mut is_new = false;
        for record in batch.records().into_iter().flatten().flatten() {
            let value = record.value.unwrap_or_default();
            if let Some(key) = record.key {
                // Control records count as a kind by their key.
                let kind = key.iter().fold(1 << 20, |kind, &byte| kind * 2 + u32::from(byte));
                is_new |= records.insert((kind, i16::from(value.get(1).copied().unwrap_or(0))));
                self.add("control_record", &[key, value].concat());
            } else if let Ok(framed) = MetadataRecord::decode(value)
                && records.insert((framed.record.api_key(), framed.version))
            {
                is_new = true;
                self.add("metadata_record", value);
            }
        }
        if is_new {
            self.add("batch", batch.bytes());
        }
    }
}

fn main() {
    let to = PathBuf::from(std::env::args().nth(1).expect("usage: seed DIR"));
    let mut seeds = Seeds { to, number: 0 };
    control_files(&mut seeds);
    captures(&mut seeds);
    compressed(&mut seeds);
    names(&mut seeds);
    our_own(&mut seeds);
    for program in program::examples() {
        seeds.add("operations", &program);
    }
}

fn each_file(dir: &Path, visit: &mut impl FnMut(&Path, Vec<u8>)) {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a directory of fixtures")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            each_file(&path, visit);
        } else {
            visit(&path, fs::read(&path).expect("a fixture"));
        }
    }
}

/// Small files that lie open in the fixtures.
fn control_files(seeds: &mut Seeds) {
    each_file(&fixtures::root(), &mut |path, bytes| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let kind = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
        let target = match (kind, name) {
            ("quorum-state", _) | (_, "quorum-state") => "quorum_state",
            ("meta.properties", _) | (_, "meta.properties") => "meta_properties",
            ("leader-epoch-checkpoint", _) | (_, "leader-epoch-checkpoint") => "epochs",
            (_, "partition.metadata") => "partition_metadata",
            (_, "config.properties") => "properties",
            _ if name.ends_with(".checkpoint") => "checkpoint",
            _ => return,
        };
        seeds.add(target, &bytes);
        if target == "meta_properties" {
            seeds.add("properties", &bytes);
        }
    });
}

/// Directories of nodes that lived: segments, indexes, checkpoints, and small directories made of them.
fn captures(seeds: &mut Seeds) {
    let mut records = BTreeSet::new();
    for capture in fixtures::captures() {
        let unpacked = capture.unpack();
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        each_file(unpacked.dir(), &mut |path, bytes| files.push((path.to_path_buf(), bytes)));
        for (path, bytes) in &files {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // An active segment's index is zeros behind its entries.
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            let suffix = name.trim_end_matches(".deleted").rsplit('.').next().unwrap_or_default();
            match suffix {
                "log" => seeds.log_or_checkpoint(bytes, &mut records),
                "checkpoint" => {
                    seeds.log_or_checkpoint(bytes, &mut records);
                    seeds.add("checkpoint", bytes);
                }
                "index" => seeds.add("offset_index", &bytes[..used.next_multiple_of(8).min(bytes.len())]),
                "timeindex" => seeds.add("time_index", &bytes[..used.next_multiple_of(12).min(bytes.len())]),
                _ => {}
            }
        }
        directory(seeds, &files);
    }
}

/// The beginning of a directory, if its log begins at 0: what is small, and as many batches as fit.
fn directory(seeds: &mut Seeds, files: &[(PathBuf, Vec<u8>)]) {
    let mut small: Vec<(&str, &[u8])> = Vec::new();
    for (path, bytes) in files {
        let Some(&name) = kraftlog_fuzz::dir::NAMES.iter().find(|name| path.ends_with(name)) else {
            continue;
        };
        let mut bytes = &bytes[..];
        if name.ends_with(".log") {
            let whole = Batches::new(bytes).map_while(|(at, batch)| Some(at + batch.ok()?.bytes().len()));
            bytes = &bytes[..whole.take_while(|&end| end <= 2048).last().unwrap_or(0)];
        }
        if bytes.len() <= 2048 {
            small.push((name, bytes));
        }
    }
    for choices in [0, 1, 2 | 4, 8 | 16] {
        seeds.add("open_dir", &Dir::encode(Choices(choices), &small));
    }
}

/// Streams of each codec; KRaft compresses nothing, so the fixtures have none.
fn compressed(seeds: &mut Seeds) {
    let codecs =
        [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for (id, compression) in codecs.into_iter().enumerate() {
        for value in [vec![7; 3000], (0..200).map(|n: u32| (n * n) as u8).collect(), Vec::new()] {
            let record = Record {
                transactional: false,
                control: false,
                delete_horizon: false,
                partition_leader_epoch: 1,
                producer_id: -1,
                producer_epoch: -1,
                timestamp_type: TimestampType::Creation,
                offset: 3,
                sequence: -1,
                timestamp: 1_700_000_000_000,
                key: Some(vec![1, 2, 3].into()),
                value: Some(value.into()),
                headers: Default::default(),
            };
            let mut bytes = bytes::BytesMut::new();
            let options = RecordEncodeOptions { version: 2, compression };
            RecordBatchEncoder::encode(&mut bytes, [&record], &options).expect("a valid batch");
            let stream = [&[u8::try_from(id).expect("few codecs")], &bytes[HEADER_BYTES..]].concat();
            seeds.add("decompress", &stream);
            seeds.add("batch", &bytes);
            seeds.add("dump", &bytes);
            seeds.add("differential", &bytes);
        }
    }
}

fn names(seeds: &mut Seeds) {
    let mut names: BTreeSet<String> = kraftlog_fuzz::dir::NAMES
        .iter()
        .map(|name| name.rsplit('/').next().unwrap_or(name).to_string())
        .collect();
    names.extend(
        ["__cluster_metadata-0", "orders-17", "orders-17.d41d8cd98f00b204e9800998ecf8427e-delete"]
            .map(str::to_string),
    );
    for name in names {
        seeds.add("names", name.as_bytes());
    }
}

/// A directory that we wrote ourselves, clean and not: `kraftlog.state` is nobody else's file.
fn our_own(seeds: &mut Seeds) {
    let machine = Machine::new(1);
    let node = Path::new("/node");
    machine.disk().make_dir(node).expect("an empty disk");
    machine.block_on(async {
        let dir = MetadataDir::with_rt(node, machine.rt(), machine.backend()).await.expect("it is free");
        let (log, _) = MetadataLog::open(dir, LogConfig::default()).await.expect("an empty directory");
        for epoch in [1, 2] {
            log.initialize_leader_epoch(Epoch(epoch)).await.expect("a new epoch");
            for _ in 0..5 {
                let ticket = log.append_records(Epoch(epoch), [[1_u8, 20, 0, 0]]).expect("room");
                ticket.durable().await.expect("a sound disk");
            }
        }
        log.quorum_state()
            .write(&QuorumState {
                leader_id: Some(1),
                leader_epoch: 2,
                voted: None,
                version_data: VersionData::V1,
            })
            .await
            .expect("a sound disk");
        log.update_high_watermark(Offset(5)).expect("it is in the log");
        let id = SnapshotId::new(5, 1);
        let mut snapshot = log.create_snapshot(id).await.expect("it is committed");
        snapshot.append(&[[1_u8, 20, 0, 0]]).await.expect("a sound disk");
        snapshot.freeze().await.expect("a sound disk");
        keep(seeds, &machine);
        log.close().await.expect("a sound disk");
    });
    keep(seeds, &machine);
}

fn keep(seeds: &mut Seeds, machine: &Machine) {
    let files = machine.disk().files();
    let mut small: Vec<(&str, &[u8])> = Vec::new();
    for (path, bytes) in &files {
        let Some(&name) = kraftlog_fuzz::dir::NAMES.iter().find(|name| path.ends_with(name)) else {
            continue;
        };
        if name == &*format!("{PART_DIR}/kraftlog.state") {
            seeds.add("state", bytes);
        }
        // The reserve behind the data is zeros, of which a few stand for all.
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        small.push((name, &bytes[..bytes.len().min(used + 100)]));
    }
    for choices in [0, 1, 8 | 16] {
        seeds.add("open_dir", &Dir::encode(Choices(choices), &small));
    }
}
