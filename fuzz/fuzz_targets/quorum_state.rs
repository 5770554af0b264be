//! quorum-state: what is read is written and read again as the same.
#![no_main]

use kraftlog_codecs::quorum::QuorumState;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = QuorumState::parse(bytes) else { return };
    let again = QuorumState::parse(read.format().as_bytes()).expect("what was written can be read");
    assert_eq!(again, read);
});
