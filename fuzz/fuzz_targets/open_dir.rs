//! A directory of files that nobody wrote: the open of its log answers, and what it answers holds.
#![no_main]

use kraftlog_fuzz::dir::Dir;
use kraftlog_fuzz::open;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| open::check(&Dir::decode(bytes)));
