//! Bytes and values of Kafka's KRaft metadata directory, without I/O.
//!
//! Everything here is `&[u8]` in, values out, and back: no files, clocks, threads or async.
//! Bytes are data: no input makes a decoder panic, loop or allocate more than a constant times
//! the bytes that are really there, and walking or decoding records allocates nothing.
#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::host_endian_bytes,
    clippy::little_endian_bytes
)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::unwrap_used))]

pub mod crc;
pub mod cursor;
pub mod error;
pub mod json;
pub mod tagged;
pub mod metadata;
pub mod uuid;
pub mod varint;
