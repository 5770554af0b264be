//! The parts of `kraftlog demo`; the story is in `commands/demo.rs`.

pub(crate) mod kill;
pub(crate) mod node;
pub(crate) mod state;
pub(crate) mod workload;
