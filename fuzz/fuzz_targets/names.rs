//! File names of the partition directory: any text is a name of ours or foreign.
#![no_main]

use kraftlog_codecs::names::{Name, PartitionDir};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Name::parse(text);
    let _ = PartitionDir::parse(text);
});
