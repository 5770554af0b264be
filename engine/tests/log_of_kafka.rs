//! Directories that real Kafkas left, running, killed or stopped: our open finds what Kafka's own log
//! class finds, and leaves the bytes of the log as they are.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::disallowed_methods, reason = "the directory is prepared without the engine")]

mod support;

use kraftlog::{LogConfig, Offset, Role};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use support::{Place, chain};

/// Captures with what Kafka's `KafkaRaftLog` says of them.
fn captures() -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for folder in fs::read_dir(support::fixtures()).unwrap() {
        let folder = folder.unwrap().path();
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file.unwrap().path();
            let Some(stem) = path.to_str().and_then(|path| path.strip_suffix(".tar.gz")) else { continue };
            let Ok(load) = fs::read(format!("{stem}.load.json")) else { continue };
            found.push((path, serde_json::from_slice(&load).unwrap()));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn logs(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut logs = BTreeMap::new();
    for name in place.names(&place.part()) {
        if name.ends_with(".log") {
            let bytes = place.read(&place.part().join(&name));
            logs.insert(name, bytes);
        }
    }
    logs
}

on_every_backend! {
    fn open_finds_what_kafkas_own_class_finds(place: &Place) {
        let mut opened = 0;
        for (archive, load) in captures() {
            let name = archive.display();
            let Some(end) = load["endOffset"].as_i64() else { continue };
            let mut place = place.another();
            place.unpack(&archive);
            // Some archives hold the directory's content, some the directory.
            let names = place.names(place.path());
            if !names.iter().any(|name| name == "__cluster_metadata-0") {
                place = place.at(place.path().join(&names[0]));
            }
            let before = logs(&place);
            let mut config = LogConfig::default();
            if name.to_string().contains("broker") {
                config.role = Role::Observer;
            }
            let (log, report) = match place.try_open(config.clone()) {
                Ok(opened) => opened,
                Err(error) => panic!("{name}: {}", chain(&error)),
            };
            assert_eq!(log.end_offset(), Offset(end), "{name}: {report}");
            assert_eq!(i64::from(log.last_epoch().0), load["lastFetchedEpoch"].as_i64().unwrap(), "{name}");
            if load["startOffset"].as_i64() == Some(0) {
                assert_eq!(log.start_offset(), Offset(0), "{name}");
            }
            assert!(report.indexes_rebuilt.is_empty() && report.epochs_rebuilt.is_none(), "{name}: {report}");
            log.close_blocking().unwrap();
            if report.torn_tail.is_none() && report.truncated_to.is_none() {
                assert!(logs(&place) == before, "{name}: the log changed");
            }
            let (log, report) = place.open_with(config);
            assert!(report.torn_tail.is_none(), "{name}: {report}");
            assert_eq!(log.end_offset(), Offset(end), "{name}");
            opened += 1;
        }
        assert!(opened > 10, "{opened} captures opened");
    }
}
