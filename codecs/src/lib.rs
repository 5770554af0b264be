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

pub mod batch;
pub mod compress;
pub mod control;
pub mod crc;
pub mod cursor;
pub mod epochs;
pub mod error;
pub mod features;
pub mod index;
pub mod json;
pub mod meta_properties;
pub mod metadata;
pub mod names;
pub mod partition_metadata;
pub mod properties;
pub mod quorum;
pub mod quoted;
pub mod tagged;
mod text_lines;
pub mod uuid;
pub mod varint;
