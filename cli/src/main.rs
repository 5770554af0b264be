//! The `kraftlog` binary.
fn main() {}
