//! What the tests across the crates share.

pub mod crash;
pub mod fixtures;
pub mod without_uring;
