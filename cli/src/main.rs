//! The `kraftlog` binary: see `kraftlog --help`.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod demo;
mod dump;
mod exit;
mod input;
mod output;

use args::Command;
use exit::{Exit, Failure};
use output::{Output, OutputFormat};
use serde_json::json;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let mut out = Output::new(cli.output);
    let run = run(&cli.command, &mut out).and_then(|exit| out.flush().map(|()| exit));
    match run {
        Ok(exit) => exit.into(),
        Err(failure) => {
            report(&failure, cli.output);
            failure.exit.into()
        }
    }
}

fn run(command: &Command, out: &mut Output) -> Result<Exit, Failure> {
    match command {
        Command::Info(args) => commands::info::run(args, out),
        Command::Format(args) => commands::format::run(args, out),
        Command::VersionMapping(args) => commands::version_mapping::run(args, out),
        Command::FeatureDependencies(args) => commands::feature_dependencies::run(args, out),
        Command::RandomUuid => commands::random_uuid::run(out),
        Command::Dump(args) => commands::dump::run(args, out),
        Command::Demo(args) => commands::demo::run(args, out),
        Command::DemoChild(args) => commands::demo::run_child(args),
    }
}

/// The sentence alone on its line, so that it can be compared with Kafka's; then what else helps. For
/// programs one object.
fn report(failure: &Failure, format: OutputFormat) {
    if failure.exit == Exit::SOUND {
        return;
    }
    if format == OutputFormat::Json {
        let error = json!({ "name": failure.name, "text": failure.sentence, "details": failure.details });
        output::say(json!({ "error": error }));
        return;
    }
    output::say(&failure.sentence);
    for line in &failure.details {
        output::say(format_args!("  {line}"));
    }
}
