//! Lanes: futures on threads of their own, each with a queue in front (design: `kraftlog_io::rt`).
//!
//! The **log lane** owns all ordered changes of the directory. Further lanes (bulk work on
//! checkpoints, reads) are made the same way: a `Queue`, `Shared::spawn_lane` with a future that takes
//! from it until it is closed, and `oneshot` answers.

pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod log_lane;
pub(crate) mod oneshot;
pub(crate) mod queue;
pub(crate) mod read_lane;
pub(crate) mod running;
pub(crate) mod walk;
