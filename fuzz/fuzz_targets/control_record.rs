//! Every control record: what decodes is written again to bytes that decode to the same.
#![no_main]

use kraftlog_codecs::control::ControlRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((key, value)) = bytes.split_at_checked(4) else { return };
    let Ok(record) = ControlRecord::decode(key, value) else { return };
    let (mut key_again, mut value_again) = (Vec::new(), Vec::new());
    record.encode_key(&mut key_again);
    record.encode_value(&mut value_again).expect("what was read can be written");
    let again = ControlRecord::decode(&key_again, &value_again).expect("what was written can be read");
    assert_eq!(record.kind(), again.kind());
    let mut json = Vec::new();
    record.write_json(&mut json);
    std::str::from_utf8(&json).expect("JSON is UTF-8");
});
