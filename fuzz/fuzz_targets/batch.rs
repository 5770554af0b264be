//! One batch: header, checksum, both walks over its records, and the control records in it.
#![no_main]

use kraftlog_codecs::batch::Batch;
use kraftlog_codecs::control::ControlRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A fuzzer hardly finds a checksum, so the walk is tried without one too.
    let Ok(batch) = Batch::parse(bytes) else { return };
    let _ = batch.check_crc();
    let _ = batch.check_strict();
    for record in batch.records_general(batch.records_bytes()) {
        let Ok(_) = record else { break };
    }
    let Ok(records) = batch.records() else { return };
    for record in records {
        let Ok(record) = record else { break };
        if let (Some(key), Some(value)) = (record.key, record.value) {
            let _ = ControlRecord::decode(key, value);
        }
    }
});
