//! One file a command.

pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod feature_dependencies;
pub(crate) mod format;
pub(crate) mod info;
pub(crate) mod random_uuid;
pub(crate) mod version_mapping;

use crate::exit::{Exit, Failure};
use kraftlog::node::NodeConfig;
use kraftlog_codecs::properties::Properties;
use kraftlog_io::{BackendChoice, Rt, ThreadRt};
use std::path::Path;
use std::sync::Arc;

/// Reads a server.properties for one of kafka-storage's commands.
fn read_config(path: &Path) -> Result<NodeConfig, Failure> {
    let fail = |name, text: String| Failure::new(Exit::FINDINGS, name, text);
    let bytes = crate::input::read_small(path).map_err(|error| {
        fail("IoError", format!("could not open the configuration file {}: {error}", path.display()))
    })?;
    let properties = Properties::parse(&bytes)
        .map_err(|error| fail("UsageError", format!("{}: {error}", path.display())))?;
    NodeConfig::from_properties(&properties)
        .map_err(|error| fail("UsageError", error.to_string()).with([format!("in {}", path.display())]))
}

/// Clock and dice of this machine, for commands that do their few writes themselves.
fn machine() -> Result<Arc<dyn Rt>, Failure> {
    match ThreadRt::open(Path::new("."), BackendChoice::Portable) {
        Ok((rt, _)) => Ok(rt),
        Err(error) => Err(Failure::of(Exit::FINDINGS, "IoError", &error)),
    }
}
