//! Bounded big-endian reading of slices and writing of buffers: the only raw access to bytes.
//!
//! A [`Reader`] is a slice that shrinks from the front. It is `Copy`, its reads return the value
//! and never look beyond the slice, and a failed read leaves it where it was or at its end, so
//! callers stop at the first error. Every error path is out of line.

use crate::error::{DecodeError, EncodeError};
use crate::uuid::Uuid;
use crate::varint;

/// Longest string that Kafka writes or reads, in bytes of UTF-8.
pub const STRING_BYTES_MAX: usize = 0x7fff;

/// Reads values off the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident -> $ty:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Result<$ty, DecodeError> {
            Ok(<$ty>::from_be_bytes(self.array()?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// A reader over all of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Bytes not read yet.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes not read yet.
    #[inline]
    pub const fn len(&self) -> usize {
        self.rest.len()
    }

    /// True when everything is read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(DecodeError::Truncated),
        }
    }

    /// The next `len` bytes, borrowed.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(DecodeError::Truncated),
        }
    }

    fixed! {
        /// One unsigned byte.
        u8 -> u8;
        /// One signed byte.
        i8 -> i8;
        /// Two bytes, big-endian.
        i16 -> i16;
        /// Two bytes, big-endian, unsigned.
        u16 -> u16;
        /// Four bytes, big-endian.
        i32 -> i32;
        /// Four bytes, big-endian, unsigned.
        u32 -> u32;
        /// Eight bytes, big-endian.
        i64 -> i64;
    }

    /// Eight bytes, IEEE 754 big-endian; any bit pattern.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        Ok(f64::from_bits(u64::from_be_bytes(self.array()?)))
    }

    /// One byte; anything but zero is true, as in Kafka.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.u8()? != 0)
    }

    /// Sixteen bytes.
    #[inline]
    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        Ok(Uuid(self.array()?))
    }

    /// An unsigned 32-bit varint.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        // Up to three bytes in place. The rest goes by value, so that the reader itself never has
        // its address taken and stays in registers.
        let (value, rest) = match *self.rest {
            [a @ ..0x80, ref rest @ ..] => (u32::from(a), rest),
            [a, b @ ..0x80, ref rest @ ..] => (u32::from(a & 0x7f) | u32::from(b) << 7, rest),
            [a, b, c @ ..0x80, ref rest @ ..] => {
                (u32::from(a & 0x7f) | u32::from(b & 0x7f) << 7 | u32::from(c) << 14, rest)
            }
            _ => uvarint_long(self.rest)?,
        };
        self.rest = rest;
        Ok(value)
    }

    /// A zigzag 32-bit varint.
    #[inline]
    pub fn varint(&mut self) -> Result<i32, DecodeError> {
        Ok(varint::unzigzag32(self.uvarint()?))
    }

    /// A zigzag 64-bit varint.
    #[inline]
    pub fn varlong(&mut self) -> Result<i64, DecodeError> {
        let (value, rest) = match *self.rest {
            [a @ ..0x80, ref rest @ ..] => (u64::from(a), rest),
            _ => uvarlong_long(self.rest)?,
        };
        self.rest = rest;
        Ok(varint::unzigzag64(value))
    }

    /// Length of a compact string, bytes or array: `None` is null.
    #[inline]
    pub fn compact_len(&mut self) -> Result<Option<usize>, DecodeError> {
        // On every target with at least 32-bit pointers the cast keeps the value.
        Ok(self.uvarint()?.checked_sub(1).map(|len| len as usize))
    }

    /// A compact string that may be null.
    #[inline]
    pub fn nullable_string(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let Some(len) = self.compact_len()? else { return Ok(None) };
        if len > STRING_BYTES_MAX {
            return Err(DecodeError::StringTooLong);
        }
        let bytes = self.take(len)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(DecodeError::BadUtf8),
        }
    }

    /// A compact string.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, DecodeError> {
        self.nullable_string()?.ok_or(DecodeError::UnexpectedNull)
    }

    /// Compact bytes that may be null.
    #[inline]
    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.compact_len()? {
            Some(len) => Ok(Some(self.take(len)?)),
            None => Ok(None),
        }
    }

    /// Compact bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        self.nullable_bytes()?.ok_or(DecodeError::UnexpectedNull)
    }
}

/// Reads an unsigned 32-bit varint of any length off the front of `bytes`.
#[cold]
#[inline(never)]
fn uvarint_long(mut bytes: &[u8]) -> Result<(u32, &[u8]), DecodeError> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        if shift == 28 && byte > 0x0f {
            break;
        }
        bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value, bytes));
        }
    }
    Err(DecodeError::BadVarint)
}

/// Reads an unsigned 64-bit varint of any length off the front of `bytes`.
#[cold]
#[inline(never)]
fn uvarlong_long(mut bytes: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    let mut value = 0u64;
    for shift in [0, 7, 14, 21, 28, 35, 42, 49, 56, 63] {
        let Some((&byte, rest)) = bytes.split_first() else { break };
        if shift == 63 && byte > 1 {
            break;
        }
        bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value, bytes));
        }
    }
    Err(DecodeError::BadVarint)
}

/// Appends values to a byte vector. The counterpart of [`Reader`].
pub trait Put {
    /// Appends raw bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Appends one byte.
    #[inline]
    fn put_u8(&mut self, v: u8) {
        self.put(&[v]);
    }
    /// Appends one byte.
    #[inline]
    fn put_i8(&mut self, v: i8) {
        self.put(&v.to_be_bytes());
    }
    /// Appends two bytes, big-endian.
    #[inline]
    fn put_i16(&mut self, v: i16) {
        self.put(&v.to_be_bytes());
    }
    /// Appends two bytes, big-endian.
    #[inline]
    fn put_u16(&mut self, v: u16) {
        self.put(&v.to_be_bytes());
    }
    /// Appends four bytes, big-endian.
    #[inline]
    fn put_i32(&mut self, v: i32) {
        self.put(&v.to_be_bytes());
    }
    /// Appends four bytes, big-endian.
    #[inline]
    fn put_u32(&mut self, v: u32) {
        self.put(&v.to_be_bytes());
    }
    /// Appends eight bytes, big-endian.
    #[inline]
    fn put_i64(&mut self, v: i64) {
        self.put(&v.to_be_bytes());
    }
    /// Appends eight bytes, the bits as they are.
    #[inline]
    fn put_f64(&mut self, v: f64) {
        self.put(&v.to_bits().to_be_bytes());
    }
    /// Appends one byte, 0 or 1.
    #[inline]
    fn put_bool(&mut self, v: bool) {
        self.put_u8(u8::from(v));
    }
    /// Appends sixteen bytes.
    #[inline]
    fn put_uuid(&mut self, v: Uuid) {
        self.put(&v.0);
    }
    /// Appends an unsigned varint in its shortest form.
    #[inline]
    fn put_uvarint(&mut self, v: u32) {
        self.put_uvarlong(u64::from(v));
    }
    /// Appends an unsigned 64-bit varint in its shortest form.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low seven bits are meant")]
    fn put_uvarlong(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.put_u8(v as u8 | 0x80);
            v >>= 7;
        }
        self.put_u8(v as u8);
    }
    /// Appends a zigzag varint.
    #[inline]
    fn put_varint(&mut self, v: i32) {
        self.put_uvarint(varint::zigzag32(v));
    }
    /// Appends a zigzag 64-bit varint.
    #[inline]
    fn put_varlong(&mut self, v: i64) {
        self.put_uvarlong(varint::zigzag64(v));
    }
    /// Appends the length of a compact value; `None` is null.
    #[inline]
    fn put_compact_len(&mut self, len: Option<usize>) -> Result<(), EncodeError> {
        let plus_one = match len {
            None => 0,
            Some(len) => {
                u32::try_from(len)
                    .ok()
                    .filter(|&len| len < i32::MAX.cast_unsigned())
                    .ok_or(EncodeError::TooLong { len })?
                    + 1
            }
        };
        self.put_uvarint(plus_one);
        Ok(())
    }
    /// Appends a compact string; `None` is null.
    #[inline]
    fn put_nullable_string(&mut self, v: Option<&str>) -> Result<(), EncodeError> {
        if let Some(text) = v
            && text.len() > STRING_BYTES_MAX
        {
            return Err(EncodeError::StringTooLong { len: text.len() });
        }
        self.put_nullable_bytes(v.map(str::as_bytes))
    }
    /// Appends a compact string.
    #[inline]
    fn put_string(&mut self, v: &str) -> Result<(), EncodeError> {
        self.put_nullable_string(Some(v))
    }
    /// Appends compact bytes; `None` is null.
    #[inline]
    fn put_nullable_bytes(&mut self, v: Option<&[u8]>) -> Result<(), EncodeError> {
        self.put_compact_len(v.map(<[u8]>::len))?;
        self.put(v.unwrap_or_default());
        Ok(())
    }
    /// Appends compact bytes.
    #[inline]
    fn put_bytes(&mut self, v: &[u8]) -> Result<(), EncodeError> {
        self.put_nullable_bytes(Some(v))
    }
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts the bytes that would be written, for lengths that stand before their content.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sizer(pub usize);

impl Put for Sizer {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_beyond_their_width_or_without_end_are_refused() {
        for bytes in [&[0x80][..], &[0xff, 0xff, 0xff, 0xff, 0x10], &[0xff; 6], &[]] {
            assert_eq!(Reader::new(bytes).uvarint(), Err(DecodeError::BadVarint), "{bytes:?}");
        }
        assert_eq!(Reader::new(&[0x80, 0x00]).uvarint(), Ok(0), "longer forms are harmless");
        assert_eq!(Reader::new(&[0xff; 10]).varlong(), Err(DecodeError::BadVarint));
    }

    #[test]
    fn varint_table_of_the_format_reference() {
        let cases: [(i64, &[u8]); 8] = [
            (0, &[0]),
            (-1, &[1]),
            (64, &[0x80, 1]),
            (8192, &[0x80, 0x80, 1]),
            (1_700_000_000_000, &[0x80, 0xa0, 0xab, 0xfe, 0xf9, 0x62]),
            (4_294_967_296, &[0x80, 0x80, 0x80, 0x80, 0x20]),
            (i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            out.put_varlong(value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(Reader::new(bytes).varlong(), Ok(value));
            assert_eq!(varint::size_i64(value), bytes.len(), "{value}");
        }
    }
}
