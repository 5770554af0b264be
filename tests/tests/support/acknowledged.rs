//! The oracle: what a node acknowledged over all its lives, and the search for it in a directory.
//!
//! It lives in the parent and is told in lines, one an acknowledgement:
//! `appended OFFSET NAME`, `frozen END_OFFSET EPOCH`, `vote EPOCH`, `refused NAME`. Other lines are
//! not for it.

use super::{chain, open};
use kraftlog::codecs::batch::Batches;
use kraftlog::codecs::metadata::{MetadataRecord, TopicRecord};
use kraftlog::io::BackendChoice;
use kraftlog::{Isolation, MetadataLog, Offset, OpenReport, SnapshotId, snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A record that no other append has, if no other has the name.
pub(crate) fn record(name: &str) -> Vec<u8> {
    let mut value = Vec::new();
    let topic = TopicRecord { name, ..TopicRecord::default() };
    MetadataRecord::Topic(topic).encode(0, &mut value).expect("a topic can be encoded");
    value
}

/// What a node acknowledged, over all its lives.
#[derive(Default)]
pub(crate) struct Acknowledged {
    appends: BTreeMap<i64, String>,
    frozen: BTreeSet<SnapshotId>,
    vote: i32,
    /// Appends that failed and may not be found.
    refused: BTreeSet<String>,
}

impl Acknowledged {
    /// Takes one line of the node's.
    pub(crate) fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        // The test harness has words of its own on the same pipe.
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("vote"), Some(epoch), None, None) => self.voted(epoch.parse().expect("an epoch")),
            (Some("appended"), Some(offset), Some(name), None) => {
                self.appended(offset.parse().expect("an offset"), name);
            }
            (Some("frozen"), Some(offset), Some(epoch), None) => {
                let (offset, epoch) = (offset.parse().expect("an offset"), epoch.parse().expect("an epoch"));
                self.froze(SnapshotId::new(offset, epoch));
            }
            (Some("refused"), Some(name), None, None) => self.refused(name),
            _ => {}
        }
    }

    pub(crate) fn appended(&mut self, offset: i64, name: &str) {
        let before = self.appends.insert(offset, name.to_owned());
        assert_eq!(before, None, "offset {offset} was acknowledged twice");
    }

    pub(crate) fn froze(&mut self, id: SnapshotId) {
        self.frozen.insert(id);
    }

    pub(crate) fn voted(&mut self, epoch: i32) {
        self.vote = self.vote.max(epoch);
    }

    pub(crate) fn refused(&mut self, name: &str) {
        self.refused.insert(name.to_owned());
    }

    pub(crate) fn appends(&self) -> usize {
        self.appends.len()
    }

    pub(crate) fn refusals(&self) -> usize {
        self.refused.len()
    }

    pub(crate) fn checkpoints(&self) -> usize {
        self.frozen.len()
    }

    pub(crate) fn vote(&self) -> i32 {
        self.vote
    }

    /// Opens the directory, looks for all of it and closes the log again.
    pub(crate) fn check(&self, dir: &Path, choice: BackendChoice, context: &str) -> OpenReport {
        let (log, report) = open(dir, choice, context);
        assert!(
            report.set_aside.is_empty(),
            "a checkpoint had its name and was not whole: {report}; {context}"
        );
        self.check_open(&log, &format!("{context}, open said: {report}"));
        log.close_blocking()
            .unwrap_or_else(|error| panic!("it does not close: {}; {context}", chain(&error)));
        report
    }

    /// Looks for all of it in an open log. `context` says how the log came to be as it is.
    pub(crate) fn check_open(&self, log: &MetadataLog, context: &str) {
        let found = names(log, context);
        for (offset, name) in &self.appends {
            assert_eq!(found.get(offset), Some(name), "append at {offset} was acknowledged; {context}");
        }
        for (offset, name) in &found {
            assert!(!self.refused.contains(name), "{name} was refused and is at {offset}; {context}");
        }
        let part = log.dir().path().join("__cluster_metadata-0");
        for id in &self.frozen {
            let known = log.snapshots().iter().any(|(known, _)| known == id);
            assert!(known, "checkpoint {id} was acknowledged and is not known; {context}");
        }
        // Whole or not there, acknowledged or not.
        for entry in std::fs::read_dir(&part).expect("the part directory").flatten() {
            let file = entry.path();
            if file.extension().is_some_and(|extension| extension == "checkpoint") {
                snapshot::verify_file(&file)
                    .unwrap_or_else(|error| panic!("{}: {}; {context}", file.display(), chain(&error)));
            }
        }
        let vote = log.quorum_state().read_blocking().expect("the vote can be read");
        let vote = vote.map_or(0, |vote| vote.leader_epoch);
        assert!(vote >= self.vote, "vote {} was acknowledged, {vote} is there; {context}", self.vote);
    }
}

/// The name at each offset. A log with a hole fails the test.
fn names(log: &MetadataLog, context: &str) -> BTreeMap<i64, String> {
    let mut found = BTreeMap::new();
    let mut next = log.start_offset();
    while next < log.end_offset() {
        let fetched = log
            .read_blocking(next, Isolation::Uncommitted, 1 << 20)
            .unwrap_or_else(|error| panic!("offset {next} cannot be read: {}; {context}", chain(&error)));
        for (_, batch) in Batches::new(&fetched.bytes) {
            let batch = batch.expect("a whole batch");
            assert_eq!(batch.header().base_offset, next.0, "there is a hole; {context}");
            next = Offset(batch.header().next_offset());
            for record in batch.records().expect("records") {
                let record = record.expect("a record");
                let framed = MetadataRecord::decode(record.value.unwrap_or_default());
                if let Ok(MetadataRecord::Topic(topic)) = framed.map(|framed| framed.record) {
                    found.insert(record.offset, topic.name.to_owned());
                }
            }
        }
    }
    found
}
