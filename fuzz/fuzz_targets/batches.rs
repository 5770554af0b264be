//! Batches back to back, and the search for a valid one behind damage.
#![no_main]

use kraftlog_codecs::batch::{Batches, find_valid_batch};
use kraftlog_fuzz::mend;
use libfuzzer_sys::fuzz_target;

fn check(bytes: &[u8]) {
    let mut batches = Batches::new(bytes);
    let mut end = 0;
    for (position, batch) in batches.by_ref() {
        assert!(position >= end, "the walk went back from {end} to {position}");
        end = position + batch.map_or(0, |batch| batch.bytes().len());
    }
    assert!(batches.valid_bytes() <= bytes.len());
    find_valid_batch(bytes, 0, 0, 0, 2 * bytes.len() as u64);
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&mend::batches(bytes));
});
