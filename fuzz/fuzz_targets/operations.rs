//! Lives of a node on a simulated machine, with power cuts, failed steps and many clients: whatever comes of
//! them, what was acknowledged is there, what was refused is not, and the next life can begin.
#![no_main]

use kraftlog_fuzz::crash::program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = program::run(bytes) {
        panic!("{wrong}");
    }
});
