//! kraftlog.state: what is read is written and read again as the same.
#![no_main]

use kraftlog_fuzz::mend;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kraftlog::fuzzing::state(bytes);
    kraftlog::fuzzing::state(&mend::state(bytes));
});
