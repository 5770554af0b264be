//! Every metadata record: what decodes is written again to bytes that decode to the same.
#![no_main]

use kraftlog_codecs::metadata::MetadataRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(framed) = MetadataRecord::decode(bytes) else { return };
    let mut once = Vec::new();
    framed.record.encode(framed.version, &mut once).expect("what was read can be written");
    let again = MetadataRecord::decode(&once).expect("what was written can be read");
    let mut twice = Vec::new();
    again.record.encode(again.version, &mut twice).expect("what was read can be written");
    assert_eq!(once, twice);
    let mut json = Vec::new();
    framed.record.write_json(framed.version, &mut json);
    std::str::from_utf8(&json).expect("JSON is UTF-8");
});
