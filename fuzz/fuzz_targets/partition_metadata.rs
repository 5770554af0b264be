//! partition.metadata: what is read is written and read again as the same.
#![no_main]

use kraftlog_codecs::partition_metadata::PartitionMetadata;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = PartitionMetadata::parse(bytes) else { return };
    assert_eq!(
        PartitionMetadata::parse(read.format().as_bytes()).expect("what was written can be read"),
        read
    );
});
