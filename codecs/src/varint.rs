//! Variable-length integers: base-128, least significant group first; signed ones zigzag.
//!
//! Writers use the shortest form. Readers accept longer forms but neither bits beyond the width
//! nor a missing end (`Utils` / `ByteUtils` of Kafka drop the surplus bits silently).

/// Most bytes of a 32-bit varint.
pub const VARINT_BYTES_MAX: usize = 5;
/// Most bytes of a 64-bit varint.
pub const VARLONG_BYTES_MAX: usize = 10;

/// Maps a signed value to an unsigned one with small magnitudes first.
#[inline]
pub const fn zigzag32(v: i32) -> u32 {
    ((v << 1) ^ (v >> 31)).cast_unsigned()
}

/// The inverse of [`zigzag32`].
#[inline]
pub const fn unzigzag32(v: u32) -> i32 {
    (v >> 1).cast_signed() ^ -((v & 1).cast_signed())
}

/// Maps a signed value to an unsigned one with small magnitudes first.
#[inline]
pub const fn zigzag64(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag64`].
#[inline]
pub const fn unzigzag64(v: u64) -> i64 {
    (v >> 1).cast_signed() ^ -((v & 1).cast_signed())
}

/// Bytes that `v` takes as an unsigned varint.
#[inline]
pub const fn size_u32(v: u32) -> usize {
    // 7 bits a byte, at least one byte.
    (38 - (v | 1).leading_zeros() as usize) / 7
}

/// Bytes that `v` takes as an unsigned 64-bit varint.
#[inline]
pub const fn size_u64(v: u64) -> usize {
    (70 - (v | 1).leading_zeros() as usize) / 7
}

/// Bytes that `v` takes as a zigzag varint.
#[inline]
pub const fn size_i32(v: i32) -> usize {
    size_u32(zigzag32(v))
}

/// Bytes that `v` takes as a zigzag 64-bit varint.
#[inline]
pub const fn size_i64(v: i64) -> usize {
    size_u64(zigzag64(v))
}
