//! Where the files of a bench are: on a disk, never on a file system in memory.

use std::path::Path;
use tempfile::TempDir;

/// Sets the directory that the benches work in.
pub const DIR_ENV: &str = "KRAFTLOG_BENCH_DIR";

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of Linux.
const IN_MEMORY: [i128; 2] = [0x0102_1994, 0x8584_58f6];

/// A fresh directory below `KRAFTLOG_BENCH_DIR`, or else below `default` (the build's own temporary
/// directory, `env!("CARGO_TARGET_TMPDIR")` in a bench). It is removed when dropped.
///
/// # Panics
/// If it cannot be made, or lies in memory, where a sync costs nothing and every ratio is wrong.
pub fn fresh(default: &str) -> TempDir {
    let base = std::env::var_os(DIR_ENV).map_or_else(|| default.into(), std::path::PathBuf::from);
    must(std::fs::create_dir_all(&base), &base);
    let kind = must(rustix::fs::statfs(&base), &base).f_type;
    assert!(
        !IN_MEMORY.contains(&i128::from(kind)),
        "{} is a file system in memory; set {DIR_ENV} to a directory on a disk",
        base.display()
    );
    must(tempfile::Builder::new().prefix("kraftlog-bench-").tempdir_in(&base), &base)
}

/// A bench cannot go on without its files.
///
/// # Panics
/// On any error, naming the path.
pub fn must<T, E: std::fmt::Display>(result: Result<T, E>, path: &Path) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}
