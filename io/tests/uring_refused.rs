//! A ring that cannot be had is an answer, never a panic. A binary of its own: the limit binds the process.

#![cfg(target_os = "linux")]

use kraftlog_io::{BackendChoice, BackendError, ThreadRt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_process_out_of_file_handles_gets_no_ring_an_error_and_its_handles_back() {
    let dir = tempfile::tempdir().unwrap();
    match ThreadRt::open(dir.path(), BackendChoice::Uring) {
        Ok(_) => {}
        Err(BackendError::Unsupported { reason }) => {
            println!("not run: {reason}");
            return;
        }
        Err(error) => panic!("{error:?}"),
    }
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let (before, limits) = (open(), getrlimit(Resource::Nofile));
    // From no handle at all to one less than enough: each step of making a ring meets the limit once.
    let mut refused = 0;
    for spare in 0..24 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(before + spare), ..limits }).unwrap();
        let opened = ThreadRt::open(dir.path(), BackendChoice::Uring);
        setrlimit(Resource::Nofile, limits).unwrap();
        match opened {
            Ok(_) => {}
            Err(BackendError::Unsupported { .. } | BackendError::Io(_)) => refused += 1,
            Err(error) => panic!("{spare} handles to spare: {error:?}"),
        }
    }
    assert!((1..24).contains(&refused), "{refused} of 24 were refused");
    assert!(open() <= before + 1, "{} handles leaked", open() - before);
}
