//! Durable appends of 512 B and 4 KiB by 1 and by 64 clients, on each back end and bare.
#![expect(missing_docs, reason = "criterion's macros make public functions")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kraftlog_benches::bare::{BareLog, Layout};
use kraftlog_benches::subject::{BACKENDS, Subject, refusal};
use kraftlog_benches::{clients, input, place};
use std::time::Duration;

const CLIENTS: usize = 64;
/// Appends of each of the 64 clients in one iteration.
const EACH: usize = 16;

fn append(criterion: &mut Criterion) {
    let dir = place::fresh(env!("CARGO_TARGET_TMPDIR"));
    let base = dir.path();
    for bytes in [512, 4096] {
        let batch = input::batch_of(bytes);
        let mut group = criterion.benchmark_group(format!("durable append of {bytes} B"));
        group
            .sample_size(20)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_secs(1));
        for (name, layout) in
            [("bare, extended file", Layout::Extended), ("bare, growing file", Layout::Growing)]
        {
            let mut bare = BareLog::create(&base.join(format!("{name}-{bytes}")), layout);
            group.bench_function(format!("1 client/{name}"), |bencher| bencher.iter(|| bare.append(&batch)));
        }
        for (name, choice) in BACKENDS {
            if let Some(reason) = refusal(base, choice) {
                println!("{name}: skipped, {reason}");
                continue;
            }
            let log = Subject::create(base, &format!("{name}-{bytes}"), choice, Layout::Extended);
            group.throughput(Throughput::Elements(1));
            group.bench_function(format!("1 client/{name}"), |bencher| {
                bencher.iter_batched(
                    || batch.clone(),
                    |batch| log.append_durably(batch),
                    BatchSize::SmallInput,
                );
            });
            group.throughput(Throughput::Elements((CLIENTS * EACH) as u64));
            group.bench_function(format!("{CLIENTS} clients/{name}"), |bencher| {
                bencher.iter_batched(
                    || vec![vec![batch.clone(); EACH]; CLIENTS].into_iter(),
                    |mut batches| together(&log, || batches.next().unwrap_or_default()),
                    BatchSize::LargeInput,
                );
            });
            log.close();
        }
        group.finish();
    }
}

/// Clients as tasks, each with its own batches to append one after the other.
fn together(log: &Subject, mut batches: impl FnMut() -> Vec<Vec<u8>>) {
    clients::tasks(CLIENTS, |_| {
        let batches = batches();
        async move {
            for batch in batches {
                log.append_durably_as_task(batch).await;
            }
        }
    });
}

criterion_group!(benches, append);
criterion_main!(benches);
