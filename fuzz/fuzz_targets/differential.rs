//! Valid batches of any kind, written by the crate `kafka-protocol`: both codecs read the same in them.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

#[path = "../../tests/tests/differential/batch.rs"]
#[allow(dead_code)]
mod batch;

use batch::{Input, InputRecord, kraft_input, read_by_them, read_by_us, written_by_us};

#[derive(Debug)]
struct Valid(Input);

impl<'a> Arbitrary<'a> for Valid {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Valid> {
        let mut records = Vec::new();
        for _ in 0..u.int_in_range(1..=6)? {
            let headers: BTreeMap<String, Option<Vec<u8>>> = u.arbitrary()?;
            records.push(InputRecord {
                gap: u.arbitrary()?,
                // So that a difference of two fits.
                timestamp: u.arbitrary::<i64>()? >> 2,
                key: u.arbitrary()?,
                value: u.arbitrary()?,
                headers: headers.into_iter().collect(),
            });
        }
        Ok(Valid(Input {
            compression: u.int_in_range(0..=4)?,
            base_offset: u.int_in_range(0..=i64::MAX - (1 << 32))?,
            epoch: u.int_in_range(-1..=i32::MAX)?,
            producer_id: u.arbitrary()?,
            producer_epoch: u.arbitrary()?,
            base_sequence: u.int_in_range(-1..=i32::MAX)?,
            transactional: u.arbitrary()?,
            control: u.arbitrary()?,
            records,
        }))
    }
}

fuzz_target!(|input: Valid| {
    let Valid(input) = input;
    let (bytes, flat) = (input.written_by_them(), input.flat());
    assert_eq!(read_by_us(&bytes), flat);
    assert_eq!(read_by_them(&bytes), flat);

    // The same values in a batch such as KRaft writes: ours is theirs, byte for byte.
    let values: Vec<Vec<u8>> = input
        .records
        .into_iter()
        .filter_map(|record| record.value)
        .filter(|value| !value.is_empty())
        .collect();
    if values.is_empty() {
        return;
    }
    let (base_offset, epoch, timestamp) = (input.base_offset, input.epoch.max(0), flat[0].timestamp);
    let ours = written_by_us(base_offset, epoch, timestamp, &values);
    assert_eq!(ours, kraft_input(base_offset, epoch, timestamp, &values).written_by_them());
});
