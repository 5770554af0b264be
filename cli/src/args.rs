//! The grammar of the command line.
//!
//! The five commands of `kafka-storage` take its options with its rules: `--opt value`,
//! `--opt=value` or `-o value`, a repeated single-value option counts last, and `@file` stands for
//! the lines of that file. A usage error there has Kafka's sentence in clap's layout and Kafka's exit
//! code 1; in the other commands it has clap's sentence and 2.

use crate::commands::dump::DumpArgs;
use crate::exit::Exit;
use crate::output::OutputFormat;
use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Formats, inspects and exercises the metadata directory of a Kafka controller, without a JVM.
#[derive(Parser)]
#[command(name = "kraftlog", version, args_override_self = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How the result is printed.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Human, value_name = "FORMAT")]
    pub(crate) output: OutputFormat,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Get information about the log directories of a node.
    Info(InfoArgs),
    /// Format the log directories of a node.
    Format(Box<FormatArgs>),
    /// Show which feature levels go with a release.
    VersionMapping(VersionMappingArgs),
    /// Show which other features a feature level needs.
    FeatureDependencies(FeatureDependenciesArgs),
    /// Print a random id.
    RandomUuid,
    /// Show what stands in segments, checkpoints and indexes.
    Dump(DumpArgs),
    /// Live a node's whole life in a temporary directory, with a kill in the middle, and check it.
    Demo(DemoArgs),
    /// The part of `demo` that gets killed.
    #[command(hide = true)]
    DemoChild(DemoChildArgs),
}

#[derive(Args)]
pub(crate) struct InfoArgs {
    /// The node's server.properties.
    #[arg(long, short, value_name = "FILE", value_parser = ValueParser::path_buf())]
    pub(crate) config: PathBuf,
}

#[derive(Args)]
pub(crate) struct FormatArgs {
    /// The node's server.properties.
    #[arg(long, short, value_name = "FILE", value_parser = ValueParser::path_buf())]
    pub(crate) config: PathBuf,
    /// Id of the cluster, the same on all nodes; random-uuid makes one.
    #[arg(long, short = 't', value_name = "ID")]
    pub(crate) cluster_id: String,
    /// A SCRAM user, such as 'SCRAM-SHA-256=[name=alice,password=alice-secret]'; repeatable.
    #[arg(long, short = 'S', value_name = "USER")]
    pub(crate) add_scram: Vec<String>,
    /// Leave formatted directories alone instead of refusing.
    #[arg(long, short = 'g')]
    pub(crate) ignore_formatted: bool,
    /// Release whose metadata.version the cluster starts with, such as 4.0 or 3.9-IV0.
    #[arg(long, short, value_name = "RELEASE")]
    pub(crate) release_version: Option<String>,
    /// Level of a feature, such as group.version=1; repeatable.
    #[arg(long, short, value_name = "FEATURE=LEVEL")]
    pub(crate) feature: Vec<String>,
    /// This controller starts as the only voter.
    #[arg(long, short, conflicts_with_all = ["no_initial_controllers", "initial_controllers"])]
    pub(crate) standalone: bool,
    /// Other controllers are the first voters; this one joins them later.
    #[arg(long, short = 'N', conflicts_with = "initial_controllers")]
    pub(crate) no_initial_controllers: bool,
    /// The first voters, id@host:port:directory-id separated by commas.
    #[arg(long, short = 'I', value_name = "VOTERS")]
    pub(crate) initial_controllers: Option<String>,
    /// Check everything and say what would be written, but write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Which release's files are written: those of 4.4, or those that 4.0 to 4.3 can start on.
    #[arg(long, value_enum, default_value_t = LayoutArg::V4_4, value_name = "RELEASE")]
    pub(crate) layout: LayoutArg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutArg {
    #[value(name = "4.3")]
    V4_3,
    #[value(name = "4.4")]
    V4_4,
}

#[derive(Args)]
pub(crate) struct VersionMappingArgs {
    /// The release, such as 4.0 or 3.9-IV0; the latest if left out.
    #[arg(long, short, value_name = "RELEASE")]
    pub(crate) release_version: Option<String>,
}

#[derive(Args)]
pub(crate) struct FeatureDependenciesArgs {
    /// Level of a feature, such as group.version=1; repeatable.
    #[arg(long, short, required = true, value_name = "FEATURE=LEVEL")]
    pub(crate) feature: Vec<String>,
}

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Work here instead of in a temporary directory, and leave the files; empty or not there yet.
    #[arg(long, value_name = "DIR", value_parser = ValueParser::path_buf())]
    pub(crate) dir: Option<PathBuf>,
    /// How many metadata records are appended.
    #[arg(long, default_value_t = 100_000, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) records: u64,
    /// How many tasks append at once.
    #[arg(long, default_value_t = 64, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) tasks: u64,
}

#[derive(Args)]
pub(crate) struct DemoChildArgs {
    #[arg(long, value_parser = ValueParser::path_buf())]
    pub(crate) dir: PathBuf,
    #[arg(long)]
    pub(crate) epoch: i32,
    #[arg(long)]
    pub(crate) tasks: u64,
    #[arg(long)]
    pub(crate) directory_id: String,
}

/// Commands that are `kafka-storage`'s, with its rules for usage errors.
const KAFKA_COMMANDS: [&str; 5] =
    ["info", "format", "version-mapping", "feature-dependencies", "random-uuid"];

/// Parses the command line; prints help, version and usage errors itself.
///
/// # Errors
/// The exit status to end with.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, Exit> {
    let args: Vec<OsString> = args.collect();
    let of_kafka = match args.iter().skip(1).find(|arg| !arg.as_encoded_bytes().starts_with(b"-")) {
        Some(command) => KAFKA_COMMANDS.iter().any(|known| OsStr::new(known) == command),
        None => false,
    };
    let args = match of_kafka {
        true => expand_files(args)?,
        false => args,
    };
    let mut command = Cli::command();
    let parsed = command.try_get_matches_from_mut(&args).and_then(|m| Cli::from_arg_matches(&m));
    parsed.map_err(|error| {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            let _ = error.print();
            return Exit::SOUND;
        }
        let name = args.iter().find_map(|arg| KAFKA_COMMANDS.iter().find(|known| OsStr::new(known) == arg));
        let status = match (of_kafka, error.kind()) {
            (true, _) | (_, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) => Exit::FINDINGS,
            (_, ErrorKind::MissingSubcommand | ErrorKind::InvalidSubcommand) => Exit::FINDINGS,
            _ => Exit::USAGE,
        };
        let sentence = match status == Exit::FINDINGS {
            true => kafka_sentence(&command, name.copied(), &args, &error),
            false => None,
        };
        let _ = match sentence {
            Some(sentence) => match name.and_then(|name| command.find_subcommand_mut(name)) {
                Some(about) => about.error(error.kind(), sentence).print(),
                None => Cli::command().error(error.kind(), sentence).print(),
            },
            None => error.print(),
        };
        status
    })
}

/// Replaces `@file` by the lines of the file, as argparse4j does.
fn expand_files(args: Vec<OsString>) -> Result<Vec<OsString>, Exit> {
    let mut expanded = Vec::with_capacity(args.len());
    for arg in args {
        let Some(path) = arg.to_str().and_then(|arg| arg.strip_prefix('@')) else {
            expanded.push(arg);
            continue;
        };
        let text = crate::input::read_small(path.as_ref()).and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
        });
        match text {
            Ok(text) => expanded.extend(text.lines().map(OsString::from)),
            Err(error) => {
                anstream::eprintln!("could not open the argument file {path}: {error}");
                return Err(Exit::FINDINGS);
            }
        }
    }
    Ok(expanded)
}

/// What `kafka-storage` says to the same mistake; `None` where it has no sentence for it.
fn kafka_sentence(
    command: &clap::Command,
    name: Option<&str>,
    args: &[OsString],
    error: &clap::Error,
) -> Option<String> {
    // clap names an argument as its usage does: `--cluster-id <ID>`.
    let argument = |kind: ContextKind| -> Option<String> {
        let text = match error.get(kind)? {
            ContextValue::String(text) => text.clone(),
            ContextValue::Strings(texts) => {
                // Kafka names the last of its required options first.
                texts.iter().find(|t| t.starts_with("--cluster-id")).or(texts.first())?.clone()
            }
            _ => return None,
        };
        let long = text.split([' ', '=']).next()?.trim_start_matches("--").to_owned();
        let short = command
            .find_subcommand(name?)?
            .get_arguments()
            .find(|arg| arg.get_long() == Some(long.as_str()))
            .and_then(clap::Arg::get_short);
        Some(match short {
            Some(short) => format!("--{long}/-{short}"),
            None => format!("--{long}"),
        })
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Some("too few arguments".to_owned())
        }
        ErrorKind::InvalidSubcommand => Some(format!(
            "invalid choice: '{}' (choose from {})",
            text(ContextKind::InvalidSubcommand)?.escape_debug(),
            choices(command)
        )),
        ErrorKind::MissingRequiredArgument => {
            let name = argument(ContextKind::InvalidArg)?;
            let tip = match name.starts_with("--cluster-id") {
                true => {
                    "\n\n  tip: all nodes of a cluster have the same id; `kraftlog random-uuid` makes one"
                }
                false => "",
            };
            Some(format!("argument {name} is required{tip}"))
        }
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_none_or(|value| value.is_empty()) => {
            Some(format!("argument {}: expected one argument", argument(ContextKind::InvalidArg)?))
        }
        ErrorKind::UnknownArgument => {
            Some(format!("unrecognized arguments: '{}'", text(ContextKind::InvalidArg)?.escape_debug()))
        }
        ErrorKind::ArgumentConflict => {
            let (mut late, mut early) =
                (argument(ContextKind::InvalidArg)?, argument(ContextKind::PriorArg)?);
            // Kafka names first the one that comes later on the command line.
            if last_place(args, &late) < last_place(args, &early) {
                std::mem::swap(&mut late, &mut early);
            }
            Some(format!("argument {late}: not allowed with argument {early}"))
        }
        _ => None,
    }
}

/// Where an option, shown as `--long/-s`, stands last among the arguments.
fn last_place(args: &[OsString], option: &str) -> Option<usize> {
    let names: Vec<&str> = option.split('/').collect();
    args.iter().rposition(|arg| {
        let name = arg.to_str().and_then(|arg| arg.split('=').next()).unwrap_or_default();
        names.contains(&name)
    })
}

fn choices(command: &clap::Command) -> String {
    let names = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
        .map(|c| format!("'{}'", c.get_name()));
    names.collect::<Vec<_>>().join(", ")
}
