//! What the targets share: checksums made right so that a fuzzer gets behind them, directories made of
//! bytes, and what must hold of a log that opened.

/// The model that a node's lives are held against, and lives written down in bytes: `crash::program`.
#[path = "../../tests/src/crash/mod.rs"]
#[allow(dead_code, unexpected_cfgs)]
pub mod crash;
pub mod dir;
pub mod mend;
pub mod open;
pub mod scratch;
