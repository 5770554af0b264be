//! `kraftlog info`: Kafka's texts, and what operators met (field cases C-6, C-9, C-10, C-12, C-13).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests prepare files and fail loudly")]

mod support;

use support::{DIR_A, ID, Place, STATIC, TWO_DIRS};

fn info(place: &Place) -> support::Ran {
    let before = place.tree();
    let ran = place.run(&["info", "-c", "F"]);
    assert_eq!(place.tree(), before, "info changed something");
    ran
}

#[test]
fn a_formatted_directory_is_shown_as_kafka_shows_it() {
    let place = Place::new(STATIC);
    place.write(
        "d1/meta.properties",
        format!("version=1\ncluster.id={ID}\nnode.id=1\ndirectory.id={DIR_A}\n"),
    );
    let ran = info(&place);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            0,
            format!(
                "Found log directory:\n  d1\n\nFound metadata: {{cluster.id={ID}, directory.id={DIR_A}, \
                 node.id=1, version=1}}\n\n"
            )
            .as_str()
        )
    );
}

#[test]
fn missing_and_blank_directories_are_problems() {
    let place = Place::new(TWO_DIRS);
    std::fs::create_dir(place.path("d2")).unwrap();
    let ran = info(&place);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.out,
        "Found log directory:\n  d2\n\nFound problems:\n  d1 does not exist\n  d2 is not formatted.\n\n"
    );
    place.write("d1", "a file");
    assert!(info(&place).out.contains("  d1 is not a directory\n"));
}

#[test]
fn equal_files_in_another_order_are_no_conflict() {
    let place = Place::new(TWO_DIRS);
    assert_eq!(place.format(&[]).code, 0);
    let text = String::from_utf8(place.read("d2/meta.properties")).unwrap();
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.sort_unstable();
    place.write("d2/meta.properties", lines.join("\n"));
    let ran = info(&place);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.starts_with("Found log directories:\n  d1\n  d2\n"), "{}", ran.out);
}

#[test]
fn a_changed_node_id_is_a_problem_with_both_ids() {
    let place = Place::new(STATIC);
    place.write(
        "d1/meta.properties",
        format!("version=1\ncluster.id={ID}\nnode.id=1389\ndirectory.id={DIR_A}\n"),
    );
    let ran = info(&place);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("Stored node id 1389 doesn't match previous node id 1 in d1/meta.properties"));
}

#[test]
fn a_cloned_disk_is_a_problem_with_both_paths() {
    let place = Place::new(TWO_DIRS);
    for dir in ["d1", "d2"] {
        place.write(
            &format!("{dir}/meta.properties"),
            format!("version=1\ncluster.id={ID}\nnode.id=1\ndirectory.id={DIR_A}\n"),
        );
    }
    let ran = info(&place);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains(DIR_A) && ran.out.contains("of d1, but also of d2"), "{}", ran.out);
}

#[test]
fn files_of_other_versions_are_told_apart() {
    for (text, code, told) in [
        ("version=1\nnode.id=1\n", 1, "cluster.id is missing, version 1 must have it"),
        ("version=2\nnode.id=1\n", 0, "cluster id not yet known"),
        ("version=3\nnode.id=1\ncluster.id=x\n", 1, "version 3 is not known, known are 0 to 2"),
        ("version=2\ncluster.id=x\n", 1, "node.id is missing"),
        ("version=one\nnode.id=1\ncluster.id=x\n", 1, "version is \"one\", expected a number"),
        ("version=1\nnode.id=1 \ncluster.id=x\n", 1, "node.id is \"1 \", expected a number"),
        ("", 1, "no entry in the file"),
        ("broker.id=1\ncluster.id=x\n", 1, "the directories are formatted for legacy mode."),
    ] {
        let place = Place::new(STATIC);
        place.write("d1/meta.properties", text);
        let ran = info(&place);
        assert_eq!(ran.code, code, "{text:?} {}", ran.out);
        assert!(ran.out.contains(told) || ran.err.contains(told), "{text:?} {} {}", ran.out, ran.err);
    }
}

#[test]
fn programs_get_one_object() {
    let place = Place::new(TWO_DIRS);
    place.write("d1/meta.properties", format!("version=1\ncluster.id={ID}\nnode.id=1\n"));
    let ran = place.run(&["info", "-c", "F", "--output", "json"]);
    assert_eq!(ran.code, 1);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["metadata"]["cluster.id"], ID);
    assert_eq!(report["directories"][1]["state"], "missing");
    assert_eq!(report["problems"][0], "d2 does not exist");
}

/// "`info` never came back", and once the machine ran out of memory: a pipe stood in the place of
/// `meta.properties`, and a device was given as configuration.
#[test]
fn pipes_and_devices_are_neither_waited_for_nor_read_without_end() {
    let place = Place::new(STATIC);
    std::fs::create_dir(place.path("d1")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(place.path("d1/meta.properties")).status();
    assert!(made.unwrap().success());
    let ran = place.run(&["info", "-c", "F"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("it is no regular file"), "{}{}", ran.out, ran.err);
    std::fs::remove_file(place.path("d1/meta.properties")).unwrap();
    for args in [vec!["info", "-c", "/dev/zero"], vec!["info", "@/dev/zero"]] {
        let ran = place.run(&args);
        assert_eq!(ran.code, 1, "{args:?}");
        assert!(ran.err.contains("it is longer than 16 MiB"), "{args:?}: {}", ran.err);
    }
}
