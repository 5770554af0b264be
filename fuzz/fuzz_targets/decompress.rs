//! Compressed streams: never more than the bound comes out.
#![no_main]

use kraftlog_codecs::compress::{Compression, decompress};
use libfuzzer_sys::fuzz_target;

const BYTES_MAX: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((codec, stream)) = bytes.split_first() else { return };
    let Some(codec) = Compression::from_id(u16::from(codec % 5)) else { return };
    let mut out = Vec::new();
    let result = decompress(codec, stream, BYTES_MAX, &mut out);
    assert!(out.len() <= BYTES_MAX, "{} bytes came out", out.len());
    assert!(result.is_ok() || out.is_empty(), "a damaged stream leaves nothing behind");
});
