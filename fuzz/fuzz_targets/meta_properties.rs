//! meta.properties: what is read is written and read again as the same.
#![no_main]

use kraftlog_codecs::meta_properties::MetaProperties;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = MetaProperties::parse(bytes) else { return };
    // Kafka writes UTF-8 and reads Latin-1, so only ASCII survives.
    if read.cluster_id.as_deref().is_none_or(str::is_ascii) {
        let written = read.encode("Mon Nov 30 20:47:25 UTC 2026");
        assert_eq!(MetaProperties::parse(&written).expect("what was written can be read"), read);
    }
});
