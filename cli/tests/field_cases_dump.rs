//! What operators met when they looked into files, as far as `dump` is concerned. Each test is named
//! after what the operator saw; the inputs are those of the field cases.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that runs the binary over its own files"
)]

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes of a case's hex file.
fn case(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(name).with_extension("hex");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

struct Place {
    dir: tempfile::TempDir,
}

struct Dumped {
    code: i32,
    out: String,
    err: String,
}

impl Dumped {
    /// The JSON lines of one kind.
    fn lines(&self, kind: &str) -> Vec<Value> {
        let lines = self.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["kind"] == kind).collect()
    }

    fn base_offsets(&self) -> Vec<i64> {
        self.lines("batch").iter().map(|batch| batch["baseOffset"].as_i64().unwrap()).collect()
    }
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn log(&self, bytes: &[u8]) -> PathBuf {
        self.write("00000000000000000000.log", bytes)
    }
}

/// Dumps and makes sure that it changes nothing.
fn dump(args: &[&str], path: &Path) -> Dumped {
    let before = fs::read(path).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kraftlog"))
        .arg("dump")
        .args(args)
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).unwrap();
        text
    });
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(fs::read(path).unwrap(), before, "a dump writes nothing");
    let siblings = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(siblings, 1, "a dump makes no file, not even a lock");
    Dumped { code: status.code().unwrap(), out: text, err: errors.join().unwrap() }
}

fn json(path: &Path) -> Dumped {
    dump(&["--output", "json"], path)
}

#[test]
fn c25_after_an_unexpected_restart_the_last_batch_is_cut_off() {
    let whole = case("fx-log");
    assert_eq!(whole.len(), 378);
    for (cut, good, batches) in [
        (377, 284, 3),
        (300, 284, 3),
        (296, 284, 3),
        (295, 284, 3),
        (292, 284, 3),
        (285, 284, 3),
        (284, 284, 3),
        (91, 91, 1),
        (90, 0, 0),
        (11, 0, 0),
        (1, 0, 0),
        (0, 0, 0),
    ] {
        let place = Place::new();
        let path = place.log(&whole[..cut]);
        let dumped = json(&path);
        let end = &dumped.lines("end")[0];
        assert_eq!(dumped.lines("batch").len(), batches, "{cut} bytes");
        assert_eq!((&end["validBytes"], &end["trailingBytes"]), (&good.into(), &(cut - good).into()));
        if cut == good {
            assert_eq!((dumped.code, dumped.err.as_str()), (0, ""), "{cut} bytes");
            assert!(end.get("error").is_none(), "{end}");
        } else {
            assert_eq!((dumped.code, end["error"].as_str()), (1, Some("TornTail")), "{cut} bytes");
            assert!(dumped.err.contains("TornTail") && dumped.err.contains(&format!("end is {good};")));
            let text = dump(&[], &path);
            assert_eq!(text.code, 1);
            assert!(text.out.contains(&format!("Found {} invalid bytes at the end", cut - good)));
        }
    }
}

#[test]
fn c26_a_batch_in_the_middle_has_a_wrong_checksum_and_the_rest_is_still_shown() {
    let mut bytes = case("fx-log");
    bytes[160] = 0xff;
    let place = Place::new();
    let path = place.log(&bytes);
    let dumped = json(&path);
    assert_eq!(dumped.code, 1);
    assert_eq!(dumped.base_offsets(), [0, 1, 3, 4]);
    let valid: Vec<_> = dumped.lines("batch").iter().map(|batch| batch["valid"].as_bool().unwrap()).collect();
    assert_eq!(valid, [true, false, true, true]);
    let offsets: Vec<_> = dumped.lines("record").iter().map(|r| r["offset"].as_i64().unwrap()).collect();
    assert_eq!(offsets, [0, 3, 4, 5, 6], "records of the invalid batch are not decoded");
    for fact in ["CorruptBatch", "position 91", "base offset 1", "stored checksum", "computed"] {
        assert!(dumped.err.contains(fact), "{fact}: {}", dumped.err);
    }
    assert!(dump(&[], &path).out.contains("position: 193"));
}

#[test]
fn c27_a_reader_spins_on_a_batch_that_has_no_end() {
    // Random bytes from a seed, and zeros.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for len in 1..=60usize {
        for zero in [true, false] {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    if zero { 0 } else { random.to_be_bytes()[0] }
                })
                .collect();
            let place = Place::new();
            let dumped = json(&place.log(&bytes));
            assert_eq!((dumped.code, dumped.lines("batch").len()), (1, 0), "{bytes:?}");
            assert!(dumped.err.contains("TornTail: "), "{}", dumped.err);
        }
    }
}

#[test]
fn c27_a_broken_length_does_not_hide_the_batch_behind_it() {
    for length in [0i32, -12, i32::MAX, 60, 83, 170] {
        let mut bytes = case("fx-log");
        bytes[201..205].copy_from_slice(&length.to_be_bytes());
        let place = Place::new();
        let dumped = json(&place.log(&bytes));
        assert_eq!(dumped.code, 1, "length {length}");
        let good: Vec<i64> = dumped
            .lines("batch")
            .iter()
            .filter(|batch| batch["valid"] == true)
            .map(|batch| batch["baseOffset"].as_i64().unwrap())
            .collect();
        assert_eq!(good, [0, 1, 4], "length {length}: {}", dumped.err);
        assert!(dumped.err.contains("CorruptBatch") && dumped.err.contains("position 193"), "{}", dumped.err);
        let end = &dumped.lines("end")[0];
        assert_eq!((end["validBytes"].as_u64(), end["trailingBytes"].as_u64()), (Some(378), Some(0)));
    }
}

#[test]
fn c28_a_client_reads_the_control_type_from_the_wrong_place() {
    let mut bytes = case("fx-log");
    bytes.extend(case("log-control-99"));
    let place = Place::new();
    let path = place.log(&bytes);
    let dumped = json(&path);
    assert_eq!(dumped.code, 0, "{}", dumped.err);
    let controls: Vec<Value> =
        dumped.lines("record").into_iter().filter(|record| record["control"] == true).collect();
    let seen: Vec<_> = controls.iter().map(|r| (r["offset"].as_i64(), r["typeId"].as_i64())).collect();
    assert_eq!(seen, [(Some(0), Some(2)), (Some(3), Some(2)), (Some(7), Some(99))]);
    assert_eq!(controls[0]["type"], "LEADER_CHANGE");
    assert_eq!(controls[0]["data"]["leaderId"], 1);
    assert_eq!(controls[0]["data"]["voters"][0]["voterId"], 1);
    assert_eq!(controls[0]["data"]["grantingVoters"][0]["voterId"], 1);
    let text = dump(&[], &path);
    assert_eq!(text.code, 0);
    assert!(text.out.contains("| offset: 7") && text.out.contains("control type 99"), "{}", text.out);
    assert_eq!(text.out.matches("LeaderChange: ").count(), 2);
}

#[test]
fn c31_after_going_back_one_release_a_record_needs_a_newer_build() {
    for (name, kind, id, version, hex) in [
        ("log-unknown-type", "UNKNOWN", 120, 0, true),
        ("log-unknown-version", "FEATURE_LEVEL_RECORD", 12, 9, true),
        ("log-mv99", "FEATURE_LEVEL_RECORD", 12, 0, false),
    ] {
        let mut bytes = case("fx-log");
        bytes.extend(case(name));
        let place = Place::new();
        let path = place.log(&bytes);
        let dumped = json(&path);
        assert_eq!(dumped.code, 0, "{name}: {}", dumped.err);
        let record = dumped.lines("record").into_iter().find(|record| record["offset"] == 7).unwrap();
        assert_eq!(
            (&record["type"], &record["typeId"], &record["version"]),
            (&kind.into(), &id.into(), &version.into())
        );
        assert_eq!(record["value"].is_string(), hex, "{record}");
        let text = dump(&[], &path);
        assert_eq!(text.code, 0);
        let line = text.out.lines().find(|line| line.starts_with("| offset: 7 ")).unwrap();
        match name {
            "log-unknown-type" => assert!(line.contains("\"type\":120,\"version\":0,\"hex\":\""), "{line}"),
            "log-unknown-version" => {
                assert!(
                    line.contains("\"type\":\"FEATURE_LEVEL_RECORD\",\"version\":9,\"hex\":\""),
                    "{line}"
                );
            }
            _ => assert!(line.contains("\"featureLevel\":99"), "{line}"),
        }
    }
}

#[test]
fn c19_an_older_build_meets_a_checkpoint_with_an_unknown_level() {
    let place = Place::new();
    let dumped = json(&place.write("00000000000000000000-0000000000.checkpoint", &case("zero-mv99")));
    assert_eq!((dumped.code, dumped.err.as_str()), (0, ""));
    assert!(dumped.lines("record").iter().any(|record| record["data"]["featureLevel"] == 99));
}

#[test]
fn c32_the_tool_prints_errors_for_healthy_checkpoints_or_cannot_read_their_names() {
    let checkpoint = case("fx-snapshot-4-2");
    let texts: Vec<(String, String)> = [
        ("00000000000000000004-0000000002.checkpoint", &checkpoint),
        ("00000000000000000000-0000000000.checkpoint", &case("fx-zero-checkpoint")),
        ("bootstrap.checkpoint", &case("fx-bootstrap")),
        ("x.bin", &checkpoint),
    ]
    .into_iter()
    .map(|(name, bytes)| {
        let place = Place::new();
        let path = place.write(name, bytes);
        let dumped = dump(&[], &path);
        assert_eq!((dumped.code, dumped.err.as_str()), (0, ""), "{name}");
        assert!(!dumped.out.to_lowercase().contains("error"), "{}", dumped.out);
        let records: Vec<&str> = dumped.out.lines().filter(|line| line.contains("ffset: ")).collect();
        let head = records.iter().find(|line| line.starts_with("Snapshot")).copied().unwrap_or_default();
        let rest = records.into_iter().filter(|line| !line.starts_with("Snapshot")).collect::<Vec<_>>();
        (head.to_owned(), rest.join("\n"))
    })
    .collect();
    assert_eq!(texts[0].0, "Snapshot end offset: 4, epoch: 2");
    assert!(texts[0].1.contains("SnapshotHeader") && texts[0].1.contains("SnapshotFooter"));
    assert_eq!(texts[3].0, "", "a foreign name says nothing");
    assert_eq!(texts[3].1, texts[0].1, "and the content is decoded the same");
}

#[test]
fn c32_an_empty_file_makes_the_tool_hang() {
    let place = Place::new();
    let log = dump(&[], &place.log(b""));
    assert_eq!((log.code, log.err.as_str()), (0, ""));
    assert!(log.out.contains("0 batches"), "{}", log.out);
    let place = Place::new();
    let checkpoint = dump(&[], &place.write("00000000000000000004-0000000002.checkpoint", b""));
    assert_eq!(checkpoint.code, 1);
    assert!(checkpoint.err.contains("SnapshotInvalid"), "{}", checkpoint.err);
}

#[test]
fn c32_a_closed_pipe_ends_quietly() {
    let place = Place::new();
    // More than a pipe holds, so that the writer meets the closed end.
    let many = case("fx-log").repeat(3000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_kraftlog"))
        .arg("dump")
        .arg(place.log(&many))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"Dumping ");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn c48_an_unfinished_migration_shows_its_number_with_its_name() {
    for (name, state) in
        [("log-zkmig-1", "MIGRATION"), ("log-zkmig-2", "PRE_MIGRATION"), ("log-zkmig-3", "POST_MIGRATION")]
    {
        let mut bytes = case("fx-log");
        bytes.extend(case(name));
        let place = Place::new();
        let text = dump(&[], &place.log(&bytes));
        assert_eq!(text.code, 0, "{}", text.err);
        let line = text.out.lines().find(|line| line.starts_with("| offset: 7 ")).unwrap();
        assert!(line.ends_with(&format!(" ({state})")), "{line}");
    }
}

#[test]
fn a_header_that_claims_200_million_records_in_90_bytes_is_an_error() {
    // The last batch of the log with another count and the checksum that goes with it.
    let mut bytes = case("fx-log");
    let at = bytes.len() - 94;
    bytes[at + 57..at + 61].copy_from_slice(&200_000_000i32.to_be_bytes());
    let crc = kraftlog_codecs::crc::crc32c(&bytes[at + 21..]);
    bytes[at + 17..at + 21].copy_from_slice(&crc.to_be_bytes());
    let place = Place::new();
    let dumped = json(&place.log(&bytes));
    assert_eq!(dumped.code, 1);
    assert!(dumped.err.contains("CorruptBatch") && dumped.err.contains("position 284"), "{}", dumped.err);
    assert_eq!(dumped.lines("batch")[3]["count"], 200_000_000);
}

#[test]
fn a_file_that_is_not_there_is_an_io_error_with_its_path() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_kraftlog")).args(["dump", "/no/such/file"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/no/such/file"));
    let output = Command::new(env!("CARGO_BIN_EXE_kraftlog")).arg("dump").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a usage error");
}

#[test]
fn an_index_that_points_elsewhere_than_its_log_is_told() {
    let place = Place::new();
    place.log(&case("fx-log"));
    // Offset 2 is the last of the batch at 91; offset 5 is not the last of the batch at 193.
    let entries: Vec<u8> = [(2i32, 91i32), (5, 193)]
        .iter()
        .flat_map(|(offset, position)| [offset.to_be_bytes(), position.to_be_bytes()].concat())
        .chain([0; 16])
        .collect();
    let index = place.write("00000000000000000000.index", &entries);
    let output = Command::new(env!("CARGO_BIN_EXE_kraftlog")).arg("dump").arg(&index).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(
        out.lines().skip(1).collect::<Vec<_>>(),
        ["offset: 2 position: 91", "offset: 5 position: 193"]
    );
    assert!(err.contains("Mismatches in :") && err.contains("  Index offset: 5, log offset: 3"), "{err}");
    assert!(!err.contains("Index offset: 2"), "{err}");
    assert_eq!(output.status.code(), Some(1));
}
