//! `random-uuid`: an id for a cluster, never one that begins with a dash or is reserved.

use super::machine;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kraftlog_codecs::uuid::Uuid;
use serde_json::json;

pub(crate) fn run(out: &mut Output) -> Result<Exit, Failure> {
    let machine = machine()?;
    let id = Uuid::random(|| machine.random()).to_string();
    out.line(&id)?;
    out.object(&json!({ "id": id }))?;
    Ok(Exit::SOUND)
}
