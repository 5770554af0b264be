//! Lanes, wake-ups, timers and dropped futures, on each back end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::{Bytes, BytesMut};
use kraftlog_io::rt::block_on;
use kraftlog_io::{BackendChoice, BackendError, Disk, OpenHow, Rt, ThreadRt};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Runs a test on each back end that can be had.
fn on_each_back_end(test: impl Fn(&Arc<dyn Rt>, &Path)) {
    for choice in [BackendChoice::Portable, BackendChoice::Uring] {
        let dir = tempfile::tempdir().unwrap();
        match ThreadRt::open(dir.path(), choice) {
            Ok((rt, _)) => test(&rt, dir.path()),
            Err(BackendError::Unsupported { reason }) => println!("not run: {choice:?}: {reason}"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn portable(dir: &Path) -> Arc<dyn Rt> {
    ThreadRt::open(dir, BackendChoice::Portable).unwrap().0
}

/// A queue as an engine has one: a mutex and the waker of who waits.
struct Queue {
    inner: Mutex<(Vec<usize>, Option<Waker>)>,
}

impl Queue {
    fn new() -> Arc<Queue> {
        Arc::new(Queue { inner: Mutex::new((Vec::new(), None)) })
    }

    fn push(&self, item: usize) {
        let mut inner = self.inner.lock().unwrap();
        inner.0.push(item);
        let waker = inner.1.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn pop_all(&self) -> Vec<usize> {
        poll_fn(|cx| {
            let mut inner = self.inner.lock().unwrap();
            if inner.0.is_empty() {
                inner.1 = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(std::mem::take(&mut inner.0))
        })
        .await
    }
}

#[test]
fn no_wake_up_of_a_lane_is_lost() {
    const ITEMS: usize = 20_000;
    on_each_back_end(|rt, dir| {
        let (there, back) = (Queue::new(), Queue::new());
        let (lane_there, lane_back) = (Arc::clone(&there), Arc::clone(&back));
        rt.spawn_lane(
            "echo",
            dir,
            Box::new(move |_| {
                Box::pin(async move {
                    let mut seen = 0;
                    while seen < ITEMS {
                        for item in lane_there.pop_all().await {
                            seen += 1;
                            lane_back.push(item);
                        }
                    }
                })
            }),
        )
        .unwrap();
        // Ping-pong: each side sleeps at nearly each item, so a lost wake-up hangs the test.
        for item in 0..ITEMS {
            there.push(item);
            assert_eq!(block_on(back.pop_all()), [item]);
        }
    });
}

#[test]
fn a_future_that_is_woken_while_it_is_polled_is_polled_again() {
    let mut polls = 0;
    block_on(poll_fn(|cx| {
        polls += 1;
        // Before the park, twice, and with the park's token eaten.
        cx.waker().wake_by_ref();
        cx.waker().wake_by_ref();
        std::thread::park();
        if polls == 100 { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!(polls, 100);
}

#[test]
fn a_lane_that_waits_is_not_polled() {
    on_each_back_end(|rt, dir| {
        let (tell, told) = channel::<usize>();
        let clock = Arc::clone(rt);
        rt.spawn_lane(
            "sleeper",
            dir,
            Box::new(move |_| {
                Box::pin(async move {
                    let polls = Cell::new(0);
                    let mut sleep = clock.sleep(Duration::from_millis(100));
                    poll_fn(|cx| {
                        polls.set(polls.get() + 1);
                        sleep.as_mut().poll(cx)
                    })
                    .await;
                    tell.send(polls.get()).unwrap();
                })
            }),
        )
        .unwrap();
        let polls = told.recv().unwrap();
        assert!(polls <= 4, "polled {polls} times in one sleep");
    });
}

#[test]
fn every_sleep_ends_and_none_ends_early() {
    let dir = tempfile::tempdir().unwrap();
    let rt = portable(dir.path());
    let start = rt.monotonic();
    let ended = Cell::new(0);
    let mut sleeps: Vec<_> = [80, 20, 50].map(|ms| (ms, rt.sleep(Duration::from_millis(ms)))).into();
    let mut order = Vec::new();
    block_on(poll_fn(|cx| {
        sleeps.retain_mut(|(ms, sleep)| {
            let ready = sleep.as_mut().poll(cx).is_ready();
            if ready {
                order.push(*ms);
                ended.set(ended.get() + 1);
                let waited = rt.monotonic() - start;
                assert!(waited >= Duration::from_millis(*ms), "{ms} ms ended after {waited:?}");
            }
            !ready
        });
        if ended.get() == 3 { Poll::Ready(()) } else { Poll::Pending }
    }));
    order.sort_unstable();
    assert_eq!(order, [20, 50, 80]);
}

#[test]
fn a_dropped_sleep_wakes_nobody() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let rt = portable(dir.path());
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut dropped = rt.sleep(Duration::from_millis(20));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(dropped);
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1, "the timer keeps the waker of a dropped sleep");
    block_on(rt.sleep(Duration::from_millis(60)));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
}

#[test]
fn a_sleep_beyond_the_clock_never_ends_and_one_of_nothing_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let rt = portable(dir.path());
    let mut context = Context::from_waker(Waker::noop());
    assert!(rt.sleep(Duration::MAX).as_mut().poll(&mut context).is_pending());
    assert!(rt.sleep(Duration::ZERO).as_mut().poll(&mut context).is_ready());
}

#[test]
fn random_numbers_and_clocks_move() {
    let dir = tempfile::tempdir().unwrap();
    let rt = portable(dir.path());
    assert_ne!(rt.random(), rt.random());
    let (before, now) = (rt.monotonic(), rt.now());
    block_on(rt.sleep(Duration::from_millis(2)));
    assert!(rt.monotonic() > before);
    // After this was written, before the clock of a metadata record overflows.
    assert!(now > Duration::from_secs(1_700_000_000) && now.as_millis() < i64::MAX as u128);
}

#[test]
fn a_lane_that_panics_drops_what_it_owns_and_its_clients_hear_of_it() {
    on_each_back_end(|rt, dir| {
        for late in [false, true] {
            let (tell, told) = channel::<()>();
            let path = dir.join("file");
            rt.spawn_lane(
                "doomed",
                dir,
                Box::new(move |disk| {
                    assert!(late, "this panic is part of the test");
                    Box::pin(async move {
                        let file = disk.open(&path, OpenHow::CreateOrTruncate { mode: 0o644 }).await.unwrap();
                        file.write_at(0, vec![Bytes::from_static(b"x")]).await.unwrap();
                        // A write in flight while the lane unwinds.
                        let mut write = file.write_at(0, vec![Bytes::from(vec![7; 1 << 20])]);
                        let _ = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                        let _tell = tell;
                        panic!("this panic is part of the test");
                    })
                }),
            )
            .unwrap();
            assert!(told.recv().is_err(), "the lane said something");
        }
        // The runtime is as good as before.
        let (tell, told) = channel();
        rt.spawn_lane("next", dir, Box::new(move |_| Box::pin(async move { tell.send(1).unwrap() })))
            .unwrap();
        assert_eq!(told.recv(), Ok(1));
    });
}

#[test]
fn blocking_inside_a_lane_or_a_blocked_future_panics_instead_of_hanging() {
    on_each_back_end(|rt, dir| {
        let (tell, told) = channel();
        rt.spawn_lane(
            "blocking",
            dir,
            Box::new(move |_| {
                Box::pin(async move {
                    tell.send(catch_unwind(|| block_on(async {})).is_err()).unwrap();
                })
            }),
        )
        .unwrap();
        assert_eq!(told.recv(), Ok(true), "block_on inside a lane");
        let inner: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async {
            assert!(catch_unwind(AssertUnwindSafe(|| rt.block_on(Box::pin(async {})))).is_err());
        });
        rt.block_on(inner);
        // And then it may again.
        rt.block_on(Box::pin(async {}));
    });
}

/// Begins a write, drops it, and ends the lane at once.
async fn drop_a_write(disk: Rc<dyn Disk>, path: &Path, bytes: Bytes, polled: Sender<bool>) {
    let file = disk.open(path, OpenHow::CreateNew { mode: 0o644 }).await.unwrap();
    let mut write = file.write_at(0, vec![bytes]);
    let _ = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(write);
    drop(file);
    let _ = polled.send(true);
}

#[test]
fn a_write_that_began_ends_although_its_future_and_its_lane_are_gone() {
    on_each_back_end(|rt, dir| {
        let path = dir.join("file");
        let bytes = Bytes::from(vec![7_u8; 4 << 20]);
        // The buffer comes back when the kernel and the lane are done with it.
        let kept = bytes.clone();
        let (polled, was_polled) = channel();
        let lane_path = path.clone();
        rt.spawn_lane(
            "dropper",
            dir,
            Box::new(move |disk| {
                Box::pin(async move { drop_a_write(disk, &lane_path, bytes, polled).await })
            }),
        )
        .unwrap();
        assert_eq!(was_polled.recv(), Ok(true));
        while !kept.is_unique() {
            block_on(rt.sleep(Duration::from_millis(1)));
        }
        assert!(std::fs::read(&path).unwrap() == kept, "the write was cut off");
    });
}

#[test]
fn many_lanes_work_at_one_time_and_each_ends() {
    const LANES: usize = 12;
    on_each_back_end(|rt, dir| {
        let (tell, told) = channel();
        for lane in 0..LANES {
            let (tell, path) = (tell.clone(), dir.join(format!("file-{lane}")));
            rt.spawn_lane(
                &format!("lane-{lane}"),
                dir,
                Box::new(move |disk| {
                    Box::pin(async move {
                        let file = disk.open(&path, OpenHow::CreateNew { mode: 0o644 }).await.unwrap();
                        for i in 0..20 {
                            let bytes = vec![Bytes::from(vec![lane as u8; 100])];
                            file.append_and_sync(i * 100, bytes, Some(Box::new(|| {}))).await.unwrap();
                        }
                        let read = file.read_at(0, 4000, BytesMut::new()).await.unwrap();
                        tell.send((lane, read)).unwrap();
                    })
                }),
            )
            .unwrap();
        }
        drop(tell);
        let mut seen: Vec<_> = told.iter().collect();
        seen.sort_by_key(|(lane, _)| *lane);
        assert_eq!(seen.len(), LANES);
        for (lane, read) in seen {
            assert!(read == vec![lane as u8; 2000], "lane {lane} read {} bytes", read.len());
        }
    });
}
