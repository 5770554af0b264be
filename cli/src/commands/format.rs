//! `format`: makes the directories of a node ready for its first start.
//!
//! Texts and exit status are those of `kafka-storage format` 4.4; the work is `kraftlog::format`.

use super::{machine, read_config};
use crate::args::{FormatArgs, LayoutArg};
use crate::exit::{Exit, Failure, chain, next_step};
use crate::output::{Output, kafka_text, say};
use kraftlog::format::{
    FormatError, FormatEvent, FormatFailure, FormatPlan, FormatRequest, Layout, QuorumArgument,
};
use kraftlog::node::LogDirError;
use kraftlog_io::{IoErrorKind, LockError, PortableDisk, rt};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &FormatArgs, out: &mut Output) -> Result<Exit, Failure> {
    let request = request(args)?;
    let machine = machine()?;
    let disk = PortableDisk::new();
    let plan = rt::block_on(FormatPlan::make(&*disk, &request, &mut || machine.random()));
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            if let FormatError::NoDirAvailable { skipped } = &error {
                tell_skipped(skipped, out)?;
                out.flush()?;
            }
            return Err(refused(&error));
        }
    };
    tell_skipped(plan.skipped(), out)?;
    for warning in plan.warnings() {
        say(format_args!("{}: {warning}", if warning.is_info() { "note" } else { "warning" }));
    }
    if plan.dirs().is_empty() {
        out.line("All of the log directories are already formatted.")?;
        out.object(&report(&plan, &[], args.dry_run))?;
        return Ok(Exit::SOUND);
    }
    out.line(kafka_text::bootstrap_metadata(&plan))?;
    if args.dry_run {
        for dir in plan.dirs() {
            out.line(format_args!(
                "Would format {} {} with metadata.version {}.",
                dir.kind,
                dir.path.display(),
                plan.metadata_version()
            ))?;
        }
        out.object(&report(&plan, &[], true))?;
        return Ok(Exit::SOUND);
    }

    // Printing can fail (a closed pipe), formatting goes on all the same: half a format helps nobody.
    let mut printed = Ok(());
    let mut done: Vec<PathBuf> = Vec::new();
    let result = rt::block_on(plan.execute(&*disk, &*machine, |event| match event {
        FormatEvent::Begin(dir) => {
            let line = format!(
                "Formatting {} {} with metadata.version {}.",
                dir.kind,
                dir.path.display(),
                plan.metadata_version()
            );
            printed = std::mem::replace(&mut printed, Ok(())).and_then(|()| out.line(line));
        }
        FormatEvent::Done(dir) => done.push(dir.path.clone()),
        FormatEvent::LegacyRemoved(path) => {
            say(format_args!("note: removed the left-over {}", path.display()));
        }
    }));
    if let Err(failure) = result {
        let failure = failed(&plan, &failure);
        // What was printed so far belongs before the error.
        let _ = out.flush();
        return Err(failure);
    }
    printed?;
    out.object(&report(&plan, &done, false))?;
    Ok(Exit::SOUND)
}

fn tell_skipped(skipped: &[(PathBuf, LogDirError)], out: &mut Output) -> Result<(), Failure> {
    for (dir, _) in skipped {
        out.line(format_args!("I/O error trying to read log directory {}. Ignoring...", dir.display()))?;
    }
    Ok(())
}

fn request(args: &FormatArgs) -> Result<FormatRequest, Failure> {
    let config = read_config(&args.config)?;
    let mut request = FormatRequest::new(config, &args.cluster_id);
    request.release_version = args.release_version.clone();
    request.features = args.feature.clone();
    request.scram = args.add_scram.clone();
    request.ignore_formatted = args.ignore_formatted;
    request.layout = match args.layout {
        LayoutArg::V4_3 => Layout::V4_3,
        LayoutArg::V4_4 => Layout::V4_4,
    };
    request.quorum = match (&args.initial_controllers, args.standalone, args.no_initial_controllers) {
        (Some(list), ..) => QuorumArgument::InitialControllers(list.clone()),
        (None, true, _) => QuorumArgument::Standalone,
        (None, false, true) => QuorumArgument::NoInitialControllers,
        (None, false, false) => QuorumArgument::None,
    };
    Ok(request)
}

/// A refusal before the first write.
fn refused(error: &FormatError) -> Failure {
    let text = match error {
        // Their sentence is Kafka's and stays alone.
        FormatError::Scram(_) | FormatError::InitialControllers(_) | FormatError::Identity(_) => {
            error.to_string()
        }
        _ => chain(error),
    };
    Failure::new(Exit::FINDINGS, error.name(), text).with(error.details())
}

/// A failure among the writes: says what was done, and removes directories that it left empty.
fn failed(plan: &FormatPlan, failure: &FormatFailure) -> Failure {
    for dir in failure.made.iter().rev() {
        // Only an empty directory goes; one with content is somebody's.
        let _ = std::fs::remove_dir(dir);
    }
    let mut report = refused(&failure.error);
    if let FormatError::Io(error) | FormatError::Locked(LockError::Io(error)) = &failure.error
        && error.kind() == IoErrorKind::PermissionDenied
    {
        report.details.push(format!("tried as user {}", rustix::process::geteuid().as_raw()));
    }
    report.details.extend(next_step(&failure.error));
    let list = |dirs: Vec<&Path>| match dirs.is_empty() {
        true => "none".to_owned(),
        false => dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    let is_done = |dir: &Path| failure.done.iter().any(|done| done == dir);
    let (done, open): (Vec<_>, Vec<_>) =
        plan.dirs().iter().map(|dir| dir.path.as_path()).partition(|dir| is_done(dir));
    report.details.push(format!("formatted: {}; not formatted: {}", list(done), list(open)));
    if !failure.done.is_empty() {
        report
            .details
            .push("when the cause is mended, run the same command again with --ignore-formatted".to_owned());
    }
    report
}

fn report(plan: &FormatPlan, done: &[PathBuf], dry_run: bool) -> Value {
    let dirs: Vec<Value> = plan
        .dirs()
        .iter()
        .map(|dir| {
            json!({
                "path": dir.path,
                "kind": dir.kind.to_string(),
                "directoryId": dir.directory_id.to_string(),
                "zeroCheckpoint": dir.zero_checkpoint,
                "formatted": done.contains(&dir.path),
            })
        })
        .collect();
    let features: serde_json::Map<String, Value> =
        plan.features().iter().map(|(name, level)| (name.clone(), Value::from(*level))).collect();
    let users: Vec<Value> = plan
        .scram()
        .iter()
        .map(|user| json!({ "name": user.name, "mechanism": user.mechanism.name(), "iterations": user.iterations }))
        .collect();
    let voters: Option<Vec<Value>> = plan.voters().map(|voters| {
        let voter = |v: &kraftlog_codecs::control::Voter| {
            let endpoints: Vec<Value> = v
                .endpoints
                .iter()
                .map(|e| json!({ "name": e.name, "host": e.host, "port": e.port }))
                .collect();
            json!({ "id": v.id, "directoryId": v.directory_id.to_string(), "endpoints": endpoints })
        };
        voters.voters.iter().map(voter).collect()
    });
    let warnings: Vec<Value> = plan
        .warnings()
        .iter()
        .map(|warning| json!({ "name": warning.name(), "text": warning.to_string() }))
        .collect();
    json!({
        "dryRun": dry_run,
        "clusterId": plan.cluster_id(),
        "nodeId": plan.node_id(),
        "metadataVersion": plan.metadata_version().0,
        "metadataVersionName": plan.metadata_version().name(),
        "kraftVersion": plan.kraft_version(),
        "features": features,
        "scramUsers": users,
        "voters": voters,
        "directories": dirs,
        "alreadyFormatted": plan.already_formatted(),
        "skipped": plan.skipped().iter().map(|(dir, _)| dir).collect::<Vec<_>>(),
        "warnings": warnings,
    })
}
