//! Decoding, without I/O: records to typed values, the walk over a batch, CRC-32C.
#![expect(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kraftlog_benches::input::Records;
use kraftlog_codecs::batch::{Batch, Batches};
use kraftlog_codecs::metadata::MetadataRecord;
use std::hint::black_box;
use std::time::Duration;

/// Bytes of records: well above the CPU's caches.
const BYTES: u64 = 32 << 20;

fn decode(criterion: &mut Criterion) {
    let records = Records::topics(BYTES);
    let bytes = records.batches();
    let mut group = criterion.benchmark_group("decode");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));

    group.throughput(Throughput::Elements(records.len() as u64));
    group.bench_function("typed records of checked batches", |bencher| {
        bencher.iter(|| {
            let mut partitions = 0u64;
            walk(&bytes, |value| match MetadataRecord::decode(value) {
                Ok(framed) => partitions += u64::from(is_partition(&framed.record)),
                Err(error) => panic!("{error}"),
            });
            black_box(partitions)
        });
    });
    group.bench_function("walk of checked batches", |bencher| {
        bencher.iter(|| {
            let mut sum = 0;
            walk(&bytes, |value| sum += value.len());
            black_box(sum)
        });
    });

    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("CRC-32C of batches", |bencher| {
        bencher.iter(|| {
            let mut rest = &bytes[..];
            while let Ok(batch) = Batch::check(rest) {
                rest = &rest[batch.header().size()..];
            }
            assert!(rest.is_empty());
        });
    });
    group.finish();
}

fn is_partition(record: &MetadataRecord<'_>) -> bool {
    matches!(record, MetadataRecord::Partition(record) if record.leader >= 0)
}

fn walk(bytes: &[u8], mut visit: impl FnMut(&[u8])) {
    for item in Batches::new(bytes) {
        let Ok(records) = item.1.and_then(|batch| batch.records()) else { panic!("batch at {}", item.0) };
        for record in records {
            match record {
                Ok(record) => visit(record.payload()),
                Err(error) => panic!("record in the batch at {}: {error}", item.0),
            }
        }
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
