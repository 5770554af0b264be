//! `kraftlog format`: what operators met, case by case (field cases C-2 to C-24, C-29, C-47).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests prepare files and fail loudly")]

mod support;

use kraftlog_codecs::batch::Batches;
use kraftlog_codecs::metadata::MetadataRecord;
use support::{DIR_A, DIR_B, DYNAMIC, ID, OTHER_ID, Place, STATIC, TWO_DIRS, case_bytes};

const CHECKPOINT: &str = "d1/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";
const LOG: &str = "d1/__cluster_metadata-0/00000000000000000000.log";

fn meta(cluster: &str, node: i32, dir: &str) -> String {
    format!("version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={dir}\n")
}

#[test]
fn an_odd_cluster_id_is_stored_as_given_with_a_warning() {
    for (id, warning) in [("MkU3OEVBNTcwNTJENDM2Qk", "not in canonical form"), ("my-cluster", "is no UUID")] {
        let place = Place::new(STATIC);
        let ran = place.run(&["format", "-t", id, "-c", "F"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains("warning:") && ran.err.contains(warning), "{}", ran.err);
        assert_eq!(place.meta("d1", "cluster.id").as_deref(), Some(id));
        assert_eq!(place.run(&["info", "-c", "F"]).code, 0);
    }
}

#[test]
fn an_id_that_differs_in_its_last_character_only_is_pointed_out() {
    let place = Place::new(STATIC);
    place.write("d1/meta.properties", meta("MkU3OEVBNTcwNTJENDM2Qg", 1, DIR_A));
    let err = place.refused(&["format", "-g", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", "F"]).err;
    assert!(
        err.contains("\"MkU3OEVBNTcwNTJENDM2Qg\"") && err.contains("\"MkU3OEVBNTcwNTJENDM2Qk\""),
        "{err}"
    );
    assert!(err.contains("same 16 bytes, different last character"), "{err}");
}

#[test]
fn blanks_and_line_ends_around_the_id_are_refused_and_shown() {
    for (id, shown) in [
        (format!(" {ID}"), format!("\" {ID}\"")),
        (format!("{ID}\r"), format!("\"{ID}\\r\"")),
        (format!("{ID}\n"), format!("\"{ID}\\n\"")),
        (format!("\t{ID}"), format!("\"\\t{ID}\"")),
        (String::new(), "\"\"".to_owned()),
        ("clé".to_owned(), "\"clé\"".to_owned()),
    ] {
        let place = Place::new(STATIC);
        let err = place.refused(&["format", "-c", "F", "-t", &id]).err;
        assert!(err.starts_with("Invalid cluster.id") && err.contains(&shown), "{err}");
    }
}

#[test]
fn volumes_of_an_old_cluster_are_not_mixed_into_a_new_one() {
    let place = Place::new(TWO_DIRS);
    place.write("d1/meta.properties", meta(ID, 1, DIR_A));
    let err = place.refused(&["format", "--ignore-formatted", "-t", OTHER_ID, "-c", "F"]).err;
    assert!(err.contains("d1/meta.properties") && err.contains(ID) && err.contains(OTHER_ID), "{err}");
    assert!(!place.path("d2").exists());
}

#[test]
fn a_missing_cluster_id_names_the_option_and_the_command_that_makes_one() {
    let err = Place::new(STATIC).refused(&["format", "-c", "F"]).err;
    assert!(err.contains("--cluster-id") && err.contains("random-uuid"), "{err}");
}

#[test]
fn an_empty_meta_properties_after_a_power_loss_is_not_formatted_over() {
    for content in ["", "#\n#Mon Nov 30 20:47:25 UTC 2026\n"] {
        let place = Place::new(TWO_DIRS);
        place.write("d1/meta.properties", content);
        place.write(LOG, case_bytes("fx-log.hex"));
        place.write("d2/meta.properties", meta(ID, 1, DIR_A));
        let err = place.refused(&["format", "--ignore-formatted", "-t", ID, "-c", "F"]).err;
        assert!(err.starts_with("d1/meta.properties is empty"), "{err}");
    }
}

#[test]
fn a_denied_write_is_named_and_no_directory_is_left_half_formatted() {
    use std::os::unix::process::CommandExt;
    let place = Place::new(&TWO_DIRS.replace("log.dirs=d1,d2", "log.dirs=d1,d0"));
    let chmod = |name: &str, mode| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir(place.path("d0")).unwrap();
    std::fs::create_dir(place.path("d1")).unwrap();
    chmod("", 0o755);
    chmod("d0", 0o777);
    chmod("d1", 0o555);
    let before = place.tree();
    let mut command = place.command(&["format", "-c", "F", "-t", ID]);
    if rustix::process::geteuid().is_root() {
        // A file mode means nothing to root. The binary may lie where others cannot reach it.
        let copy = place.root.path().parent().unwrap().join(format!("kraftlog-{}", std::process::id()));
        std::fs::copy(env!("CARGO_BIN_EXE_kraftlog"), &copy).unwrap();
        command = std::process::Command::new(&copy);
        command.args(["format", "-c", "F", "-t", ID]).current_dir(place.root.path());
        command.uid(65534).gid(65534);
        let output = command.output().unwrap();
        std::fs::remove_file(copy).unwrap();
        check(output.into());
    } else {
        check(command.output().unwrap().into());
    }
    fn check(ran: support::Ran) {
        assert_eq!(ran.code, 1, "{}", ran.out);
        assert!(ran.err.contains("d1/.lock") && ran.err.contains("Permission denied"), "{}", ran.err);
        assert!(ran.err.contains("tried as user "), "{}", ran.err);
        assert!(ran.err.contains("formatted: none; not formatted: d0, d1"), "{}", ran.err);
    }
    assert_eq!(place.tree(), before);
}

#[test]
fn one_unusable_directory_is_skipped_unless_it_is_the_metadata_directory() {
    let place = Place::new(&TWO_DIRS.replace("log.dirs=d1,d2", "log.dirs=d1,d2,d3"));
    place.write("d2", "a file");
    let ran = place.format(&[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("I/O error trying to read log directory d2. Ignoring...\n"), "{}", ran.out);
    assert!(ran.err.contains("warning: d2 is skipped: d2 is not a directory"), "{}", ran.err);
    assert!(place.meta("d1", "cluster.id").is_some() && place.meta("d3", "cluster.id").is_some());

    let place = Place::new(&TWO_DIRS.replace("log.dirs=d1,d2", "log.dirs=d1,d2,d3"));
    place.write("d1", "a file");
    let err = place.refused(&["format", "-c", "F", "-t", ID]).err;
    assert!(err.contains("the metadata directory d1 cannot be used"), "{err}");
}

#[test]
fn only_the_replaced_metadata_disk_is_formatted() {
    let config =
        format!("{}metadata.log.dir=m\n", DYNAMIC.replace("controller\nnode", "broker,controller\nnode"))
            .replace("listeners=CONT", "listeners=PLAINTEXT://h:9092,CONT")
            .replace("log.dirs=d1", "log.dirs=d1,d2");
    let place = Place::new(&config);
    place.write("d1/meta.properties", meta(ID, 1, DIR_A));
    place.write("d2/meta.properties", meta(ID, 1, DIR_B));
    let refused = place.refused(&["format", "-c", "F", "-t", ID, "-N"]).err;
    assert!(
        refused.starts_with("Log directory d1 is already formatted. Use --ignore-formatted"),
        "{refused}"
    );
    assert!(refused.contains("formatted: d1, d2") && refused.contains("not formatted: m"), "{refused}");
    let (d1, d2) = (place.read("d1/meta.properties"), place.read("d2/meta.properties"));
    let ran = place.format(&["-N", "--ignore-formatted"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!((place.read("d1/meta.properties"), place.read("d2/meta.properties")), (d1, d2));
    let id = place.meta("m", "directory.id").unwrap();
    assert!(ran.err.contains(&id) && ran.err.contains("voter set still lists the old one"), "{}", ran.err);
}

#[test]
fn no_initial_controllers_says_only_that_this_node_brings_no_voters() {
    let place = Place::new(STATIC);
    assert_eq!(place.format(&["-N", "-r", "3.7"]).code, 0);
    assert_eq!(kinds(&place.read(CHECKPOINT)).0, ["SnapshotHeader", "SnapshotFooter"]);
    let place = Place::new(DYNAMIC);
    assert_eq!(place.format(&["-N"]).code, 0);
    assert_eq!(kinds(&place.read(CHECKPOINT)).0, ["SnapshotHeader", "KRaftVersion", "SnapshotFooter"]);
    let err = Place::new(DYNAMIC).refused(&["format", "-c", "F", "-t", ID]).err;
    for flag in ["--standalone", "--initial-controllers", "--no-initial-controllers"] {
        assert!(err.contains(flag), "{err}");
    }
}

/// Kinds of the control records, and values of the data records, of a checkpoint.
fn kinds(bytes: &[u8]) -> (Vec<String>, Vec<Vec<u8>>) {
    let (mut control, mut data) = (Vec::new(), Vec::new());
    for (_, batch) in Batches::new(bytes) {
        let batch = batch.unwrap();
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            match record.key {
                Some(key) => control
                    .push(format!("{:?}", kraftlog_codecs::control::ControlKey::decode(key).unwrap().kind)),
                None => data.push(record.value.unwrap().to_vec()),
            }
        }
    }
    (control, data)
}

#[test]
fn release_versions_are_taken_with_a_patch_level_and_refused_with_the_choices() {
    for version in ["3.9", "3.9-IV0", "3.9.1"] {
        let place = Place::new(STATIC);
        let ran = place.format(&["-r", version]);
        assert!(
            ran.out.contains("featureLevel=21") && ran.out.contains("metadata.version 3.9-IV0."),
            "{}",
            ran.out
        );
        assert_eq!(ran.err.contains("uses metadata.version 3.9-IV0"), version == "3.9.1", "{}", ran.err);
    }
    for version in ["3.99", "4", "latest", "", "3.9-IV7"] {
        let err = Place::new(STATIC).refused(&["format", "-c", "F", "-t", ID, "-r", version]).err;
        assert!(err.contains("3.3-IV3") && err.contains("4.4-IV2"), "{err}");
    }
}

#[test]
fn arguments_without_effect_are_called_out() {
    let place = Place::new(STATIC);
    place.write("d1/meta.properties", meta(ID, 1, DIR_A));
    let before = place.tree();
    let ran = place.format(&[
        "--ignore-formatted",
        "--add-scram",
        "SCRAM-SHA-256=[name=alice,password=s3cret]",
        "-r",
        "3.9",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All of the log directories are already formatted.\n"));
    assert!(
        ran.err.contains("not applied") && ran.err.contains("--add-scram, --release-version"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("s3cret"));
    assert_eq!(place.tree(), before);
}

#[test]
fn scram_users_with_special_characters_are_stored_and_never_printed() {
    for (user, name, password) in [
        (r#"SCRAM-SHA-256=[name=alice,password="a,b=c;d"]"#, "alice", "a,b=c;d"),
        ("SCRAM-SHA-512=[name=alice, password=p w, iterations=8192]", "alice", "p w"),
        (r#"SCRAM-SHA-256=[name="al ice",password="q\"q"]"#, "al ice", r#"q"q"#),
    ] {
        let place = Place::new(STATIC);
        let ran = place.format(&["-S", user]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!ran.out.contains(password) && ran.out.contains("storedKey=(redacted)"), "{}", ran.out);
        let (_, records) = kinds(&place.read(CHECKPOINT));
        let MetadataRecord::UserScramCredential(stored) =
            MetadataRecord::decode(records.last().unwrap()).unwrap().record
        else {
            panic!("the last record is no SCRAM user")
        };
        let stored = kraftlog::scram::ScramCredential {
            name: stored.name.to_owned(),
            mechanism: match stored.mechanism {
                1 => kraftlog::scram::ScramMechanism::Sha256,
                _ => kraftlog::scram::ScramMechanism::Sha512,
            },
            salt: stored.salt.to_vec(),
            stored_key: stored.stored_key.to_vec(),
            server_key: stored.server_key.to_vec(),
            iterations: stored.iterations.cast_unsigned(),
        };
        assert_eq!(stored.name, name);
        assert!(stored.verify(password), "{user}");
    }
    for user in [
        "SCRAM-SHA-256=[name=alice]",
        "SCRAM-SHA-256=[password=s3cret]",
        "SCRAM-SHA-256=name=alice,password=s3cret",
        "SCRAM-SHA-1=[name=alice,password=s3cret]",
        "SCRAM-SHA-512=[name=alice,saltedpassword=\"s3cret\"]",
    ] {
        let ran = Place::new(STATIC).refused(&["format", "-c", "F", "-t", ID, "-S", user]);
        assert!(!ran.err.contains("s3cret") && !ran.out.contains("s3cret"), "{}", ran.err);
        assert!(ran.err.contains("--add-scram argument 1"), "{}", ran.err);
    }
}

#[test]
fn the_directory_id_of_a_listed_controller_is_that_of_the_list() {
    for list in [
        "1@ctrl-1.example:9093:$a",
        "1@[2001:db8::1]:9093:$a",
        "1@10.0.0.1:9093:$a,2@ctrl_2.ns.svc:9093:$b",
        " 1@ctrl-1.example:9093:$a , 2@ctrl-2.example:9093:$b ,",
    ] {
        let place = Place::new(DYNAMIC);
        let ran = place.format(&["-I", &list.replace("$a", DIR_A).replace("$b", DIR_B)]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("Formatting dynamic metadata voter directory d1"), "{}", ran.out);
        assert_eq!(place.meta("d1", "directory.id").as_deref(), Some(DIR_A));
    }
    let place = Place::new(DYNAMIC);
    let ran = place.format(&["-I", &format!("2@ctrl-2.example:9093:{DIR_B}")]);
    assert!(ran.out.contains("Formatting dynamic metadata directory d1"), "{}", ran.out);
    assert!(ran.err.contains("node 1 is not in the list"), "{}", ran.err);
    assert_ne!(place.meta("d1", "directory.id").as_deref(), Some(DIR_B));
    for (list, entry) in [("1@:9093:$a", 1), ("1@h:9093:$a,2@h:0:$b", 2), ("1@h:9093:$a,2@h:9093:$a", 2)] {
        let list = list.replace("$a", DIR_A).replace("$b", DIR_B);
        let err = Place::new(DYNAMIC).refused(&["format", "-c", "F", "-t", ID, "-I", &list]).err;
        assert!(err.contains(&format!("entry {entry} of --initial-controllers")), "{err}");
    }
}

#[test]
fn a_metadata_log_without_identity_is_not_formatted_over() {
    for meta in [Some("version=0\nbroker.id=7\n"), None] {
        let place = Place::new(STATIC);
        place.write(LOG, case_bytes("fx-log.hex"));
        if let Some(meta) = meta {
            place.write("d1/meta.properties", meta);
        }
        for flag in [&[][..], &["-g"]] {
            let err = place.refused(&[&["format", "-c", "F", "-t", ID], flag].concat()).err;
            assert!(err.starts_with(LOG) && err.contains("a metadata log"), "{err}");
        }
    }
}

#[test]
fn foreign_directories_are_left_alone_and_told_once() {
    let place = Place::new(STATIC);
    for name in ["lost+found", ".snapshot", "data"] {
        place.write(&format!("d1/{name}/x"), "x");
    }
    let ran = place.format(&[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err, "note: d1 also holds data, which is left alone\n");
    assert_eq!(place.read("d1/lost+found/x"), b"x");
    assert_eq!(place.run(&["info", "-c", "F"]).code, 0);
}

#[test]
fn more_users_than_a_batch_holds_are_refused_before_the_first_write() {
    let place = Place::new(STATIC);
    let salt = "A".repeat(120_000);
    let mut args = String::new();
    for user in 0..100 {
        args.push_str(&format!("-S\nSCRAM-SHA-256=[name=u{user},saltedpassword=cHc=,salt={salt}]\n"));
    }
    place.write("args", args);
    let err = place.refused(&["format", "-c", "F", "-t", ID, "@args"]).err;
    assert!(err.starts_with("The total record(s) size of 90") && err.contains("8388608"), "{err}");
}

#[test]
fn a_bootstrap_checkpoint_left_by_a_failed_format_is_removed() {
    let place = Place::new(STATIC);
    place.write("d1/bootstrap.checkpoint", case_bytes("bootstrap-mv20.hex"));
    let ran = place.format(&[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("removed the left-over d1/bootstrap.checkpoint"), "{}", ran.err);
    assert!(!place.path("d1/bootstrap.checkpoint").exists());
    assert!(place.path(CHECKPOINT).exists());
}

#[test]
fn a_format_that_was_cut_short_can_be_run_again() {
    let place = Place::new(DYNAMIC);
    place.write("d1/meta.properties.tmp", "half");
    place.write("d1/__cluster_metadata-0/00000000000000000000-0000000000-5.checkpoint.part", "half");
    place.write(CHECKPOINT, "old");
    let ran = place.format(&["-s"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (control, data) = kinds(&place.read(CHECKPOINT));
    assert_eq!(control, ["SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"]);
    assert_eq!(data.len(), 6);
    assert!(!place.path("d1/meta.properties.tmp").exists());
}

#[test]
fn a_dry_run_writes_nothing_and_tells_what_it_would() {
    let place = Place::new(TWO_DIRS);
    let before = place.tree();
    let ran = place.format(&["--dry-run", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(place.tree(), before);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["dryRun"], true);
    assert_eq!(report["directories"][0]["path"], "d2", "the metadata directory is last");
    assert_eq!(report["directories"][1]["zeroCheckpoint"], true);
    assert_eq!(report["features"]["metadata.version"], 33);
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let place = Place::new(STATIC);
    std::fs::create_dir(place.path("d1")).unwrap();
    let lock = kraftlog_io::DirLock::acquire(&place.path("d1")).unwrap();
    let err = place.refused(&["format", "-c", "F", "-t", ID]).err;
    assert!(err.starts_with("d1 is in use by"), "{err}");
    drop(lock);
    assert_eq!(place.format(&[]).code, 0);
}

/// A limit of the shell on file sizes stands in for a full disk: the same step fails.
#[test]
fn a_full_disk_is_told_with_the_file_and_nothing_is_left() {
    let place = Place::new(&TWO_DIRS.replace("log.dirs=d1,d2", "log.dirs=new/d1,d2"));
    std::fs::create_dir(place.path("d2")).unwrap();
    let before = place.tree();
    let ran: support::Ran = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" format -c F -t \"$1\""])
        .args([env!("CARGO_BIN_EXE_kraftlog"), ID])
        .current_dir(place.root.path())
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("could not write d2/meta.properties.tmp"), "{}", ran.err);
    assert!(ran.err.contains("free some space there"), "{}", ran.err);
    assert!(ran.err.contains("formatted: none; not formatted: d2, new/d1"), "{}", ran.err);
    assert_eq!(place.tree(), before, "something is left");
}
