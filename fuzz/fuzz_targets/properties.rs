//! Java properties: what is read is stored and read again as the same.
#![no_main]

use kraftlog_codecs::properties::Properties;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(properties) = Properties::parse(bytes) else { return };
    assert!(properties.len() <= bytes.len() / 2 + 1);
});
