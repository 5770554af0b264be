//! The time index: entries ascend, and a lookup finds the largest at or below.
#![no_main]

use kraftlog_codecs::index::TimeIndex;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(index) = TimeIndex::check(bytes) else { return };
    assert!(index.len() <= bytes.len() / 12);
    for entry in index.entries() {
        assert!(index.lookup(entry.timestamp).is_some());
    }
});
