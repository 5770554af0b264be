//! `dump`: the batches, records and index entries of files of a metadata directory.

use crate::dump::{Dump, Options};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct DumpArgs {
    /// Segments, checkpoints, indexes, or directories: a log directory or its __cluster_metadata-0.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Leave out what lies before this offset.
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    pub(crate) offset_from: i64,
    /// Leave out what lies behind this offset.
    #[arg(long, value_name = "OFFSET", default_value_t = i64::MAX, hide_default_value = true)]
    pub(crate) offset_to: i64,
    /// In directories, show the indexes too and hold them against their segments.
    #[arg(long)]
    pub(crate) index: bool,
}

pub(crate) fn run(args: &DumpArgs, out: &mut Output) -> Result<Exit, Failure> {
    let options = Options {
        json: out.is_json(),
        offset_from: args.offset_from,
        offset_to: args.offset_to,
        index: args.index,
    };
    let mut dump = Dump::new(&options)?;
    for path in &args.paths {
        dump.path(path)?;
    }
    dump.finish()
}
