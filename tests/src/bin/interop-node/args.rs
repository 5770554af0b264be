//! The command line: few words, read by hand.

use kraftlog_codecs::uuid::Uuid;
use std::path::PathBuf;

pub(crate) enum Command {
    Open { dir: PathBuf },
    Hold { dir: PathBuf },
    Write(WriteCommand),
}

pub(crate) struct WriteCommand {
    pub(crate) dir: PathBuf,
    pub(crate) node: i32,
    /// Id of the directory, which is the broker's log directory too.
    pub(crate) directory: Uuid,
    /// Name of the first topic; the second one has `-after` behind it.
    pub(crate) topic: String,
    pub(crate) abort: bool,
}

const USAGE: &str =
    "usage: interop-node open DIR | hold DIR | write DIR --node ID --directory UUID --topic NAME [--abort]";

impl Command {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Command, String> {
        let usage = || USAGE.to_string();
        let mut args = args;
        let (command, dir) = (args.next().ok_or_else(usage)?, PathBuf::from(args.next().ok_or_else(usage)?));
        match command.as_str() {
            "open" => Ok(Command::Open { dir }),
            "hold" => Ok(Command::Hold { dir }),
            "write" => {
                let (mut node, mut directory, mut topic, mut abort) = (None, None, None, false);
                while let Some(option) = args.next() {
                    match option.as_str() {
                        "--node" => node = args.next().and_then(|text| text.parse().ok()),
                        "--directory" => directory = args.next().and_then(|text| text.parse().ok()),
                        "--topic" => topic = args.next(),
                        "--abort" => abort = true,
                        _ => return Err(usage()),
                    }
                }
                let (Some(node), Some(directory), Some(topic)) = (node, directory, topic) else {
                    return Err(usage());
                };
                Ok(Command::Write(WriteCommand { dir, node, directory, topic, abort }))
            }
            _ => Err(usage()),
        }
    }
}
