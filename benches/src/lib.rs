//! Figures of kraftlog beside the bare system calls that do the same work, on the same file system and
//! in the same run.
//!
//! - [`bare`]: the system calls, with nothing around them;
//! - [`subject`]: the log and the snapshots as a user calls them;
//! - [`pairs`], [`guard`]: how two sides are compared on a machine that is not quiet;
//! - [`clients`]: many clients at once;
//! - [`input`]: records, batches and checkpoints to work on, all made by our own writers;
//! - [`place`]: where the files are; [`clock`]: the one place that asks for the time.
//!
//! `benches/README.md` says how to read what comes out.
#![forbid(unsafe_code)]

pub mod bare;
pub mod clients;
pub mod clock;
pub mod guard;
pub mod input;
pub mod pairs;
pub mod place;
pub mod subject;
