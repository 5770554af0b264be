//! The offset index: entries ascend, and a lookup finds the largest at or below.
#![no_main]

use kraftlog_codecs::index::OffsetIndex;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(index) = OffsetIndex::check(bytes) else { return };
    assert!(index.len() <= bytes.len() / 8);
    for entry in index.entries() {
        assert_eq!(index.lookup(i64::from(entry.relative_offset)), Some(entry));
    }
});
