//! Writing, verifying and loading a checkpoint, beside bare writes and reads of as many bytes.
#![expect(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kraftlog_benches::bare::{self, Layout};
use kraftlog_benches::input::{self, Records};
use kraftlog_benches::place;
use kraftlog_benches::subject::{self, BACKENDS, Subject, refusal};
use std::time::Duration;

/// A quarter of what `KRAFTLOG_BENCH_CHECKPOINT_MIB` says: criterion repeats more often than `summary`.
const PART: u64 = 4;

fn checkpoint(criterion: &mut Criterion) {
    let dir = place::fresh(env!("CARGO_TARGET_TMPDIR"));
    let base = dir.path();
    let records = Records::topics(input::checkpoint_bytes().div_ceil(PART));
    let batch = input::batch_of(512);
    let mut group = criterion.benchmark_group("checkpoint");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for (name, choice) in BACKENDS {
        if let Some(reason) = refusal(base, choice) {
            println!("{name}: skipped, {reason}");
            continue;
        }
        let log = Subject::create(base, name, choice, Layout::Extended);
        log.append_durably(batch.clone());
        let mut last = log.write_checkpoint(&records);
        group.throughput(Throughput::Bytes(last.bytes));
        group.bench_function(format!("write and verify/{name}"), |bencher| {
            bencher.iter(|| {
                log.append_durably(batch.clone());
                let next = log.write_checkpoint(&records);
                place::must(std::fs::remove_file(&last.path), &last.path);
                last = next;
            });
        });
        group.bench_function(format!("load, read ahead by a lane/{name}"), |bencher| {
            bencher.iter(|| log.load_ahead(&last));
        });
        if choice == BACKENDS[0].1 {
            let content = place::must(std::fs::read(&last.path), &last.path);
            let bare_path = base.join("bare.checkpoint");
            group.bench_function("write/bare", |bencher| {
                bencher.iter(|| bare::write_and_publish(&bare_path, content.chunks(8 << 20)));
            });
            let mut buf = Vec::new();
            group.bench_function("read/bare", |bencher| bencher.iter(|| bare::read(&last.path, &mut buf)));
            group.bench_function("verify", |bencher| bencher.iter(|| subject::verify(&last.path)));
            group.bench_function("load on one thread", |bencher| {
                bencher.iter(|| subject::load(&last.path));
            });
        }
        log.close();
    }
    group.finish();
}

criterion_group!(benches, checkpoint);
criterion_main!(benches);
