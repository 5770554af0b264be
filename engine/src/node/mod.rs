//! Start-up: whose directories these are.
mod config;
mod ensemble;

pub use config::{ConfigError, Listener, NodeConfig, ProcessRole, StaticVoter, VoterIds};
pub use ensemble::{DirState, Ensemble, IdentityError, LogDir, LogDirError};
