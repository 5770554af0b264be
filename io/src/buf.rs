//! Reading into the spare capacity of a buffer without zeroing it first.
//!
//! A checkpoint of 1 GiB goes through a buffer of some 100 KiB; filling that with zeros before each
//! read costs as much as a fifth of the read. This is the one place outside of the io_uring back end
//! that vouches for bytes being written.

use bytes::BytesMut;
use std::mem::MaybeUninit;

/// Appends to `buf` what `read` puts at the front of up to `len` bytes of its spare capacity.
/// `read` gives back the part that it filled.
pub(crate) fn append_with<E>(
    buf: &mut BytesMut,
    len: usize,
    read: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8], E>,
) -> Result<usize, E> {
    buf.reserve(len);
    let spare = &mut buf.spare_capacity_mut()[..len];
    let spare_start = spare.as_ptr().cast::<u8>();
    let filled = read(spare)?;
    let (filled_start, filled_len) = (filled.as_ptr(), filled.len());
    assert!(filled_start == spare_start, "a read filled another buffer than the one it was given");
    assert!(filled_len <= len, "a read of {len} bytes filled {filled_len}");
    let end = buf.len() + filled_len;
    #[expect(unsafe_code, reason = "BytesMut has no safe way to take over bytes that the kernel wrote")]
    // SAFETY: `filled` is an initialised slice that starts where the spare capacity starts and is no
    // longer than it (both asserted), so the first `end` bytes of `buf` are initialised and allocated.
    unsafe {
        buf.set_len(end);
    }
    Ok(filled_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_stands_behind_what_was_there() {
        let mut buf = BytesMut::from(&b"ab"[..]);
        let read = append_with::<()>(&mut buf, 4, |spare| {
            for (to, from) in spare.iter_mut().zip(b"cdef") {
                to.write(*from);
            }
            let filled = &mut spare[..3];
            // A short read: three of four bytes.
            #[expect(unsafe_code, reason = "the test stands in for the kernel")]
            // SAFETY: the loop above wrote all four bytes.
            Ok(unsafe { &mut *(std::ptr::from_mut(filled) as *mut [u8]) })
        });
        assert_eq!(read, Ok(3));
        assert_eq!(&buf[..], b"abcde");
    }

    #[test]
    fn a_failed_read_leaves_the_buffer_as_it_was() {
        let mut buf = BytesMut::from(&b"ab"[..]);
        assert_eq!(append_with(&mut buf, 10, |_| Err("no")), Err("no"));
        assert_eq!(&buf[..], b"ab");
    }

    #[test]
    #[should_panic(expected = "another buffer")]
    fn a_read_that_filled_another_buffer_is_a_bug() {
        let mut buf = BytesMut::new();
        let other: &'static mut [u8] = Box::leak(Box::new([0_u8; 4]));
        let mut other = Some(other);
        let _ = append_with::<()>(&mut buf, 4, |_| Ok(other.take().expect("called once")));
    }
}
