//! What must hold in every order that threads can come in, tried by loom: two or three threads and one rule
//! each, over the very types that the lanes use.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p kraftlog --no-default-features --lib loom_models
//! ```
//!
//! At most three times in one run a thread is interrupted where it could have gone on, unless
//! `LOOM_MAX_PREEMPTIONS` says otherwise; where two threads meet, no known fault needs more.
//! A wake-up that gets lost shows as loom's `deadlock`: the future is polled again only when it was woken.
//! The registry of locked directories has its model beside it, in `kraftlog-io`.

use crate::fence::Fence;
use crate::lane::budget::Budget;
use crate::lane::oneshot::oneshot;
use crate::lane::queue::{Queue, QueueClosed};
use crate::sync::{AtomicBool, Ordering};
use crate::types::Offset;
use crate::watermark::{Watch, Watermark};
use kraftlog_io::{IoError, Op};
use loom::future::block_on;
use loom::thread;
use std::sync::Arc;

const PREEMPTIONS_MAX: usize = 3;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS_MAX);
    builder.check(run);
}

/// Takes from a queue until it is closed and drained, as a lane does.
async fn drain<S>(queue: &Queue<u32, S>) -> Vec<u32> {
    let (mut taken, mut all) = (Vec::new(), Vec::new());
    while queue.take(&mut taken).await {
        all.append(&mut taken);
    }
    all
}

#[test]
fn what_two_threads_push_comes_out_once_and_in_the_order_of_the_pushes() {
    model(|| {
        // The state counts the pushes, so each operation carries its place in the order.
        let queue = Arc::new(Queue::new(0));
        let push = |queue: &Queue<u32, u32>| {
            queue.push_with(|count| {
                *count += 1;
                Ok::<_, QueueClosed>((*count, *count))
            })
        };
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || push(&queue).expect("open"))
        };
        let lane = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || block_on(drain(&queue)))
        };
        let ours = push(&queue).expect("open");
        let theirs = other.join().expect("no panic");
        assert_ne!(ours, theirs, "two pushes at one place");
        queue.close();
        assert_eq!(lane.join().expect("no panic"), [1, 2]);
    });
}

#[test]
fn a_push_that_meets_the_close_is_taken_or_refused_never_lost() {
    model(|| {
        let queue = Arc::new(Queue::new(()));
        let pusher = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(7))
        };
        let closer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push_last(8))
        };
        let taken = block_on(drain(&queue));
        assert_eq!(closer.join().expect("no panic"), Ok(()));
        match pusher.join().expect("no panic") {
            Ok(()) => assert_eq!(taken, [7, 8], "the last operation is the last"),
            Err(QueueClosed) => assert_eq!(taken, [8]),
        }
        assert_eq!(queue.push(9), Err(QueueClosed));
    });
}

#[test]
fn a_ticket_that_is_awaited_while_it_resolves_is_answered() {
    model(|| {
        let (sender, receiver) = oneshot();
        let lane = thread::spawn(move || sender.send(5));
        assert_eq!(block_on(receiver.get()), Some(5));
        // It resolved once and for all.
        assert!(receiver.is_settled());
        assert_eq!(block_on(receiver.get()), Some(5));
        lane.join().expect("no panic");
    });
}

#[test]
fn two_who_await_one_ticket_are_both_answered() {
    model(|| {
        let (sender, receiver) = oneshot();
        let receiver = Arc::new(receiver);
        let other = {
            let receiver = Arc::clone(&receiver);
            thread::spawn(move || block_on(receiver.get()))
        };
        let lane = thread::spawn(move || sender.send(5));
        assert_eq!(block_on(receiver.get()), Some(5));
        assert_eq!(other.join().expect("no panic"), Some(5));
        lane.join().expect("no panic");
    });
}

#[test]
fn a_lane_that_goes_without_an_answer_leaves_nobody_waiting() {
    model(|| {
        let (sender, receiver) = oneshot::<u32>();
        let lane = thread::spawn(move || drop(sender));
        assert_eq!(block_on(receiver.into_answer()), None);
        lane.join().expect("no panic");
    });
}

fn failed_sync(file: &'static str) -> IoError {
    IoError::new(Op::Sync, file, std::io::ErrorKind::Other)
}

#[test]
fn the_first_cause_of_a_fence_wins_for_everybody() {
    model(|| {
        let fence = Arc::new(Fence::new());
        let watermark = Arc::new(Watermark::new(Offset(0), Offset(0)));
        let raise = |fence: &Fence, watermark: &Watermark, file| {
            let told = fence.raise(failed_sync(file), watermark).cause.path;
            // Whoever raised it never sees the log without it again.
            assert_eq!(fence.get().map(|fenced| fenced.cause.path.clone()), Some(told.clone()));
            told
        };
        let other = {
            let (fence, watermark) = (Arc::clone(&fence), Arc::clone(&watermark));
            thread::spawn(move || raise(&fence, &watermark, "theirs"))
        };
        let ours = raise(&fence, &watermark, "ours");
        assert_eq!(ours, other.join().expect("no panic"));
    });
}

#[test]
fn once_the_lane_has_failed_what_waited_at_a_fence_nothing_more_is_queued() {
    model(|| {
        let fence = Arc::new(Fence::new());
        let queue = Arc::new(Queue::<u32>::new(()));
        let watermark = Arc::new(Watermark::new(Offset(0), Offset(0)));
        let appender = {
            let (fence, queue) = (Arc::clone(&fence), Arc::clone(&queue));
            thread::spawn(move || {
                // As `MetadataLog::append_*`: the fence is looked at in one step with the queueing.
                let append = |op| {
                    queue.push_with(|()| match fence.get() {
                        Some(_) => Err(QueueClosed),
                        None => Ok((op, ())),
                    })
                };
                let (first, second) = (append(1), append(2));
                assert!(first.is_ok() || second.is_err(), "an append behind a refused one was queued");
                u32::from(first.is_ok()) + u32::from(second.is_ok())
            })
        };
        // As the lane after a failed sync: the fence goes up, then all that waits is failed.
        fence.raise(failed_sync("ours"), &watermark);
        let failed = queue.with(|(), waiting| std::mem::take(waiting));
        let queued = appender.join().expect("no panic");
        assert_eq!(failed.len(), queued as usize, "an append was queued behind the fence");
        assert_eq!(queue.with(|(), waiting| waiting.len()), 0);
    });
}

#[test]
fn who_waits_for_durability_learns_of_a_fence() {
    model(|| {
        let fence = Arc::new(Fence::new());
        let watermark = Arc::new(Watermark::new(Offset(0), Offset(3)));
        let lane = {
            let (fence, watermark) = (Arc::clone(&fence), Arc::clone(&watermark));
            thread::spawn(move || drop(fence.raise(failed_sync("ours"), &watermark)))
        };
        // As `create_snapshot` waits for an end that is not durable and never will be.
        let waited = block_on(watermark.wait(|ends| match fence.get() {
            Some(_) => Some("fenced"),
            None => (ends.durable_end >= Offset(9)).then_some("durable"),
        }));
        assert_eq!(waited, Some("fenced"));
        lane.join().expect("no panic");
    });
}

#[test]
fn a_watch_that_registers_while_the_border_moves_is_woken() {
    model(|| {
        let watermark = Arc::new(Watermark::new(Offset(0), Offset(3)));
        let lane = {
            let watermark = Arc::clone(&watermark);
            thread::spawn(move || {
                watermark.set_end(Offset(5));
                watermark.set_durable_end(Offset(5));
            })
        };
        let durable = block_on(watermark.wait(|ends| {
            assert!(
                ends.durable_end <= ends.end,
                "durable up to {}, written up to {}",
                ends.durable_end,
                ends.end
            );
            (ends.durable_end >= Offset(5)).then_some(ends.end)
        }));
        assert_eq!(durable, Some(Offset(5)));
        lane.join().expect("no panic");
    });
}

#[test]
fn a_watch_ends_when_the_log_is_closed() {
    model(|| {
        let watermark = Arc::new(Watermark::new(Offset(0), Offset(3)));
        let mut watch = Watch::new(Arc::clone(&watermark));
        let lane = thread::spawn(move || watermark.close());
        assert_eq!(block_on(watch.changed()), None);
        lane.join().expect("no panic");
    });
}

#[test]
fn a_wait_that_is_given_up_takes_no_wake_up_with_it() {
    model(|| {
        let watermark = Arc::new(Watermark::new(Offset(0), Offset(3)));
        let waiter = {
            let watermark = Arc::clone(&watermark);
            thread::spawn(move || block_on(watermark.wait(|ends| (ends.end >= Offset(4)).then_some(()))))
        };
        // Polled once and dropped, while the other registers.
        block_on(async {
            let mut given_up = std::pin::pin!(watermark.wait(|_| None::<()>));
            std::future::poll_fn(|context| {
                assert!(given_up.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        });
        watermark.set_end(Offset(4));
        assert_eq!(waiter.join().expect("no panic"), Some(()));
    });
}

#[test]
fn bytes_given_back_reach_the_one_who_waits_for_them() {
    model(|| {
        let budget = Arc::new(Budget::new(10));
        let held = budget.try_take(8).expect("it is all there");
        let out = Arc::new(AtomicBool::new(true));
        let holder = {
            let out = Arc::clone(&out);
            thread::spawn(move || {
                out.store(false, Ordering::SeqCst);
                drop(held);
            })
        };
        let share = block_on(budget.take(5));
        assert!(!out.load(Ordering::SeqCst), "13 of 10 bytes are out");
        drop(share);
        holder.join().expect("no panic");
        assert_eq!(budget.used(), 0);
    });
}
