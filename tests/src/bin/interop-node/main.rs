//! What a node does with a metadata directory, for the round trips with a real Kafka (`tests/interop/run`).
//!
//! - `open DIR`: opens the log as a node would, reads all of it and prints what is there as one line of JSON;
//! - `hold DIR`: opens it, says so and keeps it open until standard input ends;
//! - `write DIR --node ID --directory UUID --topic NAME [--abort]`: leads the next epoch, appends a topic, freezes a
//!   snapshot of everything so far, appends another topic, and closes; or ends as if killed.
//!
//! Exit status: 0, 2 usage, 4 if the directory is locked, 1 for every other refusal.

mod args;
mod fold;
mod picture;
mod topic;
mod write;

use args::Command;
use kraftlog::{DirError, ErrorKind, LogConfig, MetadataDir, MetadataLog, NodeId};
use kraftlog_io::BackendChoice;
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match Command::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", with_causes(&*error));
            let locked =
                error.downcast_ref::<DirError>().is_some_and(|error| error.kind() == ErrorKind::Locked);
            ExitCode::from(if locked { 4 } else { 1 })
        }
    }
}

fn run(command: &Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Open { dir } => {
            let log = open(dir, None)?;
            let picture = picture::of(&log)?;
            log.close_blocking()?;
            print(&picture)
        }
        Command::Hold { dir } => {
            let log = open(dir, None)?;
            print(&serde_json::json!({ "held": true }))?;
            std::io::stdin().read_to_end(&mut Vec::new())?;
            log.close_blocking()?;
            Ok(())
        }
        Command::Write(command) => {
            let log = open(&command.dir, Some(NodeId(command.node)))?;
            print(&write::write(&log, command)?)?;
            if command.abort {
                // Nothing is closed, trimmed or marked clean: the process is gone as after a kill.
                std::process::abort();
            }
            log.close_blocking()?;
            Ok(())
        }
    }
}

fn open(dir: &Path, node_id: Option<NodeId>) -> Result<MetadataLog, Box<dyn Error>> {
    let dir = MetadataDir::open_blocking(dir, BackendChoice::from_env_or(BackendChoice::Auto)?)?;
    let mut config = LogConfig::default();
    config.node_id = node_id;
    let (log, _report) = MetadataLog::open_blocking(dir, config)?;
    Ok(log)
}

fn print(value: &serde_json::Value) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(())
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
