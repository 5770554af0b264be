//! leader-epoch-checkpoint: what is read is written and read again as the same.
#![no_main]

use kraftlog_codecs::epochs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = epochs::parse(bytes) else { return };
    assert_eq!(epochs::parse(epochs::format(&read).as_bytes()).expect("what was written can be read"), read);
});
