//! `kraftlog dump --output json` of every capture of a real Kafka gives the lines that Kafka's own
//! classes gave, and the text names every batch and record.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that runs the binary over its own files"
)]

use kraftlog_tests::fixtures::{self, Capture, ExpectedFile, PART_DIR};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What only Kafka can say: how its strict reader ended, and whether it would write the same bytes.
const KAFKAS_OWN: [&str; 2] = ["kraftReader", "canonical"];

fn dump(args: &[&str], path: &Path) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_kraftlog")).arg("dump").args(args).arg(path).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn expected_lines(file: &ExpectedFile) -> Vec<Value> {
    let mut lines = vec![file.file.clone()];
    for batch in &file.batches {
        lines.push(batch.batch.clone());
        lines.extend(batch.records.iter().cloned());
    }
    lines.push(file.end.clone());
    for line in &mut lines {
        for key in KAFKAS_OWN {
            line.as_object_mut().unwrap().remove(key);
        }
    }
    lines
}

/// A line of ours without what Kafka's do not have.
fn ours(line: &str) -> Value {
    let mut line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    if line["type"] == "ZK_MIGRATION_STATE_RECORD" {
        assert!(line.as_object_mut().unwrap().remove("zkMigrationState").is_some());
    }
    line
}

fn check(capture: &Capture) -> usize {
    let unpacked = capture.unpack();
    let root = unpacked.dir();
    let mut lines = 0;
    let files = capture.expected();
    for file in &files {
        let path = unpacked.find(&file.name);
        let (code, out, err) = dump(&["--output", "json"], &path);
        assert_eq!(code, 0, "{}: {}: {err}", capture.name, file.name);
        let expected = expected_lines(file);
        assert_eq!(out.lines().count(), expected.len(), "{}: {}", capture.name, file.name);
        for (line, expected) in out.lines().zip(&expected) {
            assert_eq!(&ours(line), expected, "{}: {}", capture.name, file.name);
        }
        lines += expected.len();
    }
    // The directory as a whole has the same lines, files in order of their names.
    if root.join(PART_DIR).is_dir() {
        let (code, out, err) = dump(&["--output", "json"], root);
        assert_eq!(code, 0, "{}: {err}", capture.name);
        // Kafka's dump left out segments that were still empty: two lines of ours each.
        let empty =
            out.lines().filter(|line| ours(line)["kind"] == "file" && ours(line)["size"] == 0).count();
        let all: usize = files.iter().map(|file| expected_lines(file).len()).sum();
        assert_eq!(out.lines().count(), all + 2 * empty, "{}", capture.name);
        let (code, text, err) = dump(&["--index"], root);
        assert_eq!(code, 0, "{}: {err}", capture.name);
        let records: usize =
            files.iter().flat_map(|file| &file.batches).map(|batch| batch.records.len()).sum();
        assert_eq!(text.lines().filter(|line| line.starts_with("| offset: ")).count(), records);
        assert_eq!(text.lines().filter(|line| line.starts_with("baseOffset: ")).count() > 0, records > 0);
    }
    lines
}

#[test]
fn every_capture_of_a_real_kafka_dumps_to_the_lines_of_kafkas_own_classes() {
    let captures = fixtures::captures();
    // Two at a time, the long ones first come as they are.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let lines: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut lines = 0;
                    while let Some(capture) =
                        captures.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                    {
                        lines += check(capture);
                    }
                    lines
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert!(lines > 100_000, "only {lines} lines were compared");
}

#[test]
fn an_offset_range_shows_only_what_lies_in_it() {
    let capture = fixtures::capture("lived-4.4.0/n1-stopped");
    let unpacked = capture.unpack();
    let file = &capture.expected()[0];
    assert!(file.name.ends_with(".log"), "{}", file.name);
    let path = unpacked.find(&file.name);
    let base = file.file["baseOffset"].as_i64().unwrap();
    let (from, to) = (base + 5, base + 20);
    let (code, out, err) = dump(
        &["--output", "json", "--offset-from", &from.to_string(), "--offset-to", &to.to_string()],
        &path,
    );
    assert_eq!(code, 0, "{err}");
    let offsets: Vec<i64> = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "record")
        .map(|line| line["offset"].as_i64().unwrap())
        .collect();
    assert_eq!(offsets, (from..=to).collect::<Vec<_>>());
}
