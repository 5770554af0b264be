//! `info`: what the directories of a node say about themselves (B-49), and whether they agree.
//!
//! Beyond Kafka it also tells a configured node id that is not the stored one, ids of directories
//! that are reserved or stand twice, and a running node. It writes nothing, not even a lock file.

use super::read_config;
use crate::args::InfoArgs;
use crate::exit::{Exit, Failure, chain};
use crate::output::{Output, say};
use kraftlog::node::{DirState, Ensemble, IdentityError, LogDir, LogDirError};
use kraftlog_codecs::meta_properties::{MetaProperties, MetaVersion};
use kraftlog_io::{BackendChoice, BackendError, BackendReport, DirLock, PortableDisk, rt};
use serde_json::{Map, Value, json};
use std::path::Path;

pub(crate) fn run(args: &InfoArgs, out: &mut Output) -> Result<Exit, Failure> {
    let config = read_config(&args.config)?;
    let disk = PortableDisk::new();
    let dirs = config.all_dirs();
    let ensemble = rt::block_on(Ensemble::load(&*disk, &dirs, config.metadata_dir()));
    let mut problems = Vec::new();

    let found: Vec<&Path> = ensemble.dirs().iter().filter(|d| exists(d)).map(|d| d.path.as_path()).collect();
    for dir in ensemble.dirs() {
        match &dir.state {
            DirState::Missing => problems.push(format!("{} does not exist", dir.path.display())),
            DirState::Blank => problems.push(format!("{} is not formatted.", dir.path.display())),
            DirState::Error(error) => problems.push(problem(dir, error)),
            DirState::Props(_) => {}
        }
        if exists(dir) {
            tell_if_running(&dir.path);
        }
    }
    let first = ensemble.formatted().next().map(|(_, props)| props);
    problems.extend(disagreements(&ensemble, config.node_id()));
    if first.is_some_and(|props| props.version == MetaVersion::V0) {
        problems.push(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are \
             formatted for legacy mode."
                .to_owned(),
        );
    }
    if first.is_some_and(|props| props.cluster_id.is_none() && props.version == MetaVersion::V2) {
        say("note: cluster id not yet known; the node learns it from its cluster");
    }

    section(
        out,
        "Found log director",
        "y",
        "ies",
        &found.iter().map(|d| d.display().to_string()).collect::<Vec<_>>(),
    )?;
    if let Some(props) = first {
        let pairs: Vec<String> = metadata(props).into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        out.line(format_args!("Found metadata: {{{}}}", pairs.join(", ")))?;
        out.line("")?;
    }
    section(out, "Found problem", "", "s", &problems)?;
    let metadata: Option<Map<String, Value>> =
        first.map(|props| metadata(props).into_iter().map(|(k, v)| (k.to_owned(), Value::from(v))).collect());
    let all: Vec<Value> = ensemble.dirs().iter().map(describe).collect();
    let backend = backend(config.metadata_dir());
    if let Some(text) = backend.get("text").and_then(Value::as_str) {
        say(format_args!("note: back end of the metadata log: {text}"));
    }
    out.object(&json!({
        "logDirectories": found,
        "metadata": metadata,
        "directories": all,
        "problems": problems,
        "backend": backend,
    }))?;
    Ok(if problems.is_empty() { Exit::SOUND } else { Exit::FINDINGS })
}

/// The back end that a node would take for its metadata log, and why; nothing is written to find out.
fn backend(dir: &Path) -> Value {
    let expected = BackendChoice::from_env_or(BackendChoice::Auto)
        .and_then(|choice| BackendReport::expected(dir, choice));
    match expected {
        Ok(report) => {
            json!({ "backend": report.backend, "reason": report.reason, "text": report.to_string() })
        }
        // The directory's own trouble is told above.
        Err(BackendError::Io(_)) => Value::Null,
        Err(error) => {
            let text = chain(&error);
            json!({ "backend": null, "reason": text, "text": format!("none: {text}") })
        }
    }
}

fn exists(dir: &LogDir) -> bool {
    !matches!(dir.state, DirState::Missing | DirState::Error(LogDirError::NotADirectory { .. }))
}

/// A list under its heading, and an empty line; nothing for an empty list.
fn section(out: &mut Output, head: &str, one: &str, many: &str, lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    out.line(format_args!("{head}{}:", if lines.len() == 1 { one } else { many }))?;
    for line in lines {
        out.line(format_args!("  {line}"))?;
    }
    out.line("")
}

fn problem(dir: &LogDir, error: &LogDirError) -> String {
    match error {
        LogDirError::NotADirectory { path } if *path == dir.path => {
            format!("{} is not a directory", dir.path.display())
        }
        LogDirError::Malformed { path, cause } => format!("Error loading {}: {cause}", path.display()),
        other => format!("Error loading {}: {other}", dir.meta_path().display()),
    }
}

/// Kafka compares each file with the first; the configured node id comes on top.
fn disagreements(ensemble: &Ensemble, node_id: i32) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !problems.contains(&text) {
            problems.push(text);
        }
    };
    let mut ids: Vec<(kraftlog_codecs::uuid::Uuid, &Path)> = Vec::new();
    let first = ensemble.formatted().next().map(|(_, props)| props);
    for (dir, props) in ensemble.formatted() {
        if let Some(first) = first {
            if first.cluster_id != props.cluster_id
                && first.cluster_id.is_some()
                && props.cluster_id.is_some()
            {
                add("Mismatched cluster IDs between storage directories.".to_owned());
            }
            if first.node_id != props.node_id {
                add("Mismatched node IDs between storage directories.".to_owned());
            }
        }
        if let Some(found) = props.node_id
            && found != node_id
        {
            let error = IdentityError::NodeIdMismatch { path: dir.meta_path(), expected: node_id, found };
            add(error.to_string());
        }
        let Some(id) = props.directory_id else { continue };
        if id.is_reserved_directory() {
            add(IdentityError::ReservedDirectoryId { dir: dir.path.clone(), id }.to_string());
        }
        if let Some((_, other)) = ids.iter().find(|(other, _)| *other == id) {
            let error = IdentityError::DuplicateDirectoryId {
                id,
                first: other.to_path_buf(),
                second: dir.path.clone(),
            };
            add(error.to_string());
        }
        ids.push((id, &dir.path));
    }
    problems
}

/// The keys that are there, sorted, as Kafka prints its map.
fn metadata(props: &MetaProperties) -> Vec<(&'static str, String)> {
    let node_key = if props.version == MetaVersion::V0 { "broker.id" } else { "node.id" };
    let mut pairs = vec![("version", props.version.number().to_string())];
    pairs.extend(props.cluster_id.as_ref().map(|id| ("cluster.id", id.clone())));
    pairs.extend(props.node_id.map(|id| (node_key, id.to_string())));
    pairs.extend(props.directory_id.map(|id| ("directory.id", id.to_string())));
    pairs.sort();
    pairs
}

fn describe(dir: &LogDir) -> Value {
    let (state, error) = match &dir.state {
        DirState::Props(_) => ("formatted", None),
        DirState::Blank => ("blank", None),
        DirState::Missing => ("missing", None),
        DirState::Error(error) => ("error", Some(json!({ "name": error.name(), "text": error.to_string() }))),
    };
    let props = dir.props().map(|props| {
        metadata(props).into_iter().map(|(k, v)| (k.to_owned(), Value::from(v))).collect::<Map<_, _>>()
    });
    json!({ "path": dir.path, "state": state, "properties": props, "error": error })
}

/// A warning that the picture may move.
fn tell_if_running(dir: &Path) {
    if let Ok(Some(holder)) = DirLock::probe(dir) {
        let who = holder.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
        say(format_args!(
            "note: {} is in use by a running node{who}; what is shown may change",
            dir.display()
        ));
    }
}
