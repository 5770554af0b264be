//! Files that a user names on the command line.

use std::io::{self, Read};
use std::path::Path;

/// No configuration and no list of arguments is as long.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a small file, or what comes out of a pipe (`<(...)` of a shell); never more than 16 MiB.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let text = format!("it is longer than {} MiB", BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}
