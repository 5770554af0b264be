//! Every checkpoint that a real Kafka wrote: whole, and record for record what Kafka's own classes
//! read from it.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use flate2::read::GzDecoder;
use kraftlog::snapshot::{SnapshotFile, verify_file};
use kraftlog_codecs::control::ControlRecord;
use kraftlog_codecs::metadata::MetadataRecord;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

/// Lines of an `expected.jsonl.gz`, by the file they are about.
fn expected(path: &Path) -> HashMap<String, Vec<Value>> {
    let mut files: HashMap<String, Vec<Value>> = HashMap::new();
    let mut name = String::new();
    for line in BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines() {
        let value: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if value["kind"] == "file" {
            name = value["name"].as_str().unwrap().to_string();
        }
        files.entry(name.clone()).or_default().push(value);
    }
    files
}

fn type_name_and_data(control: bool, key: Option<&[u8]>, value: &[u8]) -> (String, Value) {
    let mut json = Vec::new();
    let name = if control {
        let record = ControlRecord::decode(key.unwrap(), value).unwrap();
        record.write_json(&mut json);
        record.kind().name().to_string()
    } else {
        let framed = MetadataRecord::decode(value).unwrap();
        framed.record.write_json(framed.version, &mut json);
        framed.record.type_name().unwrap().to_string()
    };
    (name, serde_json::from_slice(&json).unwrap())
}

fn check(path: &Path, expected: &[Value]) {
    let name = path.display();
    let mut lines = expected.iter().filter(|line| line["kind"] != "file");
    let mut file = SnapshotFile::open(path).unwrap();
    while let Some(batch) = file.next_batch().unwrap() {
        let (header, line) = (*batch.header(), lines.next().unwrap());
        assert_eq!(line["kind"], "batch", "{name}");
        for (field, ours) in [
            ("baseOffset", header.base_offset),
            ("lastOffset", header.last_offset()),
            ("count", header.records_count.into()),
            ("epoch", header.leader_epoch.into()),
            ("size", header.size() as i64),
            ("crc", header.crc.into()),
            ("baseTimestamp", header.base_timestamp),
        ] {
            assert_eq!(line[field].as_i64(), Some(ours), "{name}: {field} of {line}");
        }
        for record in batch.records().unwrap() {
            let (record, line) = (record.unwrap(), lines.next().unwrap());
            let value = record.value.unwrap();
            assert_eq!(line["offset"].as_i64(), Some(record.offset), "{name}");
            assert_eq!(line["valueSize"].as_u64(), Some(value.len() as u64), "{name}");
            let (type_name, data) = type_name_and_data(header.is_control(), record.key, value);
            assert_eq!((&line["type"], &line["data"]), (&Value::String(type_name), &data), "{name}");
        }
    }
    let (summary, line) = (file.summary().unwrap(), lines.next().unwrap());
    assert_eq!((&line["kind"], line["trailingBytes"].as_u64()), (&Value::from("end"), Some(0)), "{name}");
    assert_eq!(line["batches"].as_u64(), Some(summary.batches), "{name}");
    assert_eq!(line["records"].as_u64(), Some(summary.records), "{name}");
    assert_eq!(verify_file(path).unwrap(), summary, "{name}");
}

/// Checks all finished checkpoints below `dir`.
fn check_tree(dir: &Path, expected: &HashMap<String, Vec<Value>>) -> usize {
    let mut checked = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            checked += check_tree(&path, expected);
        } else if path.extension().is_some_and(|ext| ext == "checkpoint") {
            let name = path.file_name().unwrap().to_str().unwrap();
            check(&path, &expected[name]);
            checked += 1;
        }
    }
    checked
}

fn stem(path: &Path, suffix: &str) -> Option<String> {
    path.to_str().unwrap().strip_suffix(suffix).map(str::to_string)
}

#[test]
fn every_checkpoint_of_a_real_kafka_yields_exactly_kafkas_records() {
    let (mut checked, temporary) = (0, tempfile::tempdir().unwrap());
    let mut pending = vec![fixtures()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let Some(stem) = stem(&path, ".expected.jsonl.gz") else { continue };
            let expected = expected(&path);
            let place = tempfile::tempdir_in(temporary.path()).unwrap();
            if Path::new(&format!("{stem}.tar.gz")).exists() {
                let packed = File::open(format!("{stem}.tar.gz")).unwrap();
                tar::Archive::new(GzDecoder::new(packed)).unpack(place.path()).unwrap();
                checked += check_tree(place.path(), &expected);
            } else if Path::new(&stem).is_dir() {
                checked += check_tree(Path::new(&stem), &expected);
            } else if stem.ends_with(".checkpoint") {
                let mut bytes = Vec::new();
                let packed = File::open(format!("{stem}.gz")).unwrap();
                GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
                let path = place.path().join(Path::new(&stem).file_name().unwrap());
                write(&path, &bytes);
                checked += check_tree(place.path(), &expected);
            }
        }
    }
    assert!(checked > 60, "only {checked} checkpoints found");
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = File::options().create_new(true).write(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
}
