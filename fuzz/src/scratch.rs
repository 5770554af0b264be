//! A nameless file in memory for decoders that read files.

use std::fs::File;
use std::io::{Seek, Write};

/// A file that holds `bytes`, at its beginning. One file serves a whole run.
pub fn file(bytes: &[u8]) -> File {
    thread_local! {
        static FILE: File = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile()).expect("a file");
    }
    FILE.with(|file| {
        let mut file = file.try_clone().expect("a descriptor");
        file.set_len(0).and_then(|()| file.rewind()).expect("an empty file");
        file.write_all(bytes).and_then(|()| file.rewind()).expect("a written file");
        file
    })
}
