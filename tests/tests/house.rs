//! The arrows of the house: data flows bytes, codecs, io, engine, cli. Read from `cargo metadata`, so
//! that a dependency added in passing turns this red.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What each crate of ours may depend on among our own crates, dev-dependencies left out.
const ARROWS: [(&str, &[&str]); 6] = [
    ("kraftlog-codecs", &[]),
    ("kraftlog-io", &[]),
    ("kraftlog", &["kraftlog-codecs", "kraftlog-io"]),
    ("kraftlog-cli", &["kraftlog", "kraftlog-codecs", "kraftlog-io"]),
    ("kraftlog-tests", &["kraftlog", "kraftlog-codecs", "kraftlog-io"]),
    ("kraftlog-benches", &["kraftlog", "kraftlog-codecs", "kraftlog-io"]),
];

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

/// Names of the dependencies of each package of the workspace, without dev-dependencies.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let depends = package["dependencies"].as_array().expect("dependencies").iter();
            let depends =
                depends.filter(|d| d["kind"] != "dev").map(|d| d["name"].as_str().expect("name").to_owned());
            (package["name"].as_str().expect("name").to_owned(), depends.collect())
        })
        .collect()
}

#[test]
fn crates_depend_on_each_other_only_along_the_arrows() {
    let found = dependencies();
    let ours: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, listed, "every crate of the workspace has its row in ARROWS");
    for (name, allowed) in ARROWS {
        let inner = found[name].iter().map(String::as_str).filter(|d| ours.contains(d));
        for depends_on in inner {
            assert!(allowed.contains(&depends_on), "{name} depends on {depends_on}, against the arrows");
        }
    }
}

#[test]
fn each_outside_crate_is_named_where_the_house_says_why() {
    let map = include_str!("../../ARCHITECTURE.md");
    let found = dependencies();
    let ours: BTreeSet<&String> = found.keys().collect();
    let outside: BTreeSet<&String> = found.values().flatten().filter(|d| !ours.contains(d)).collect();
    let silent: Vec<_> = outside.iter().filter(|name| !map.contains(&format!("`{name}`"))).collect();
    assert!(silent.is_empty(), "ARCHITECTURE.md gives no reason for {silent:?}");
}

#[test]
fn codecs_do_no_io_and_io_knows_no_kafka() {
    let found = dependencies();
    for banned in ["tokio", "tokio-uring", "rustix", "tempfile", "parking_lot"] {
        assert!(
            !found["kraftlog-codecs"].contains(banned),
            "codecs must stay without I/O, threads and async: {banned}"
        );
    }
    for banned in ["kafka-protocol", "crc32c", "crc-fast"] {
        assert!(!found["kraftlog-io"].contains(banned), "io has never heard of batches: {banned}");
    }
}
