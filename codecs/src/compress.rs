//! Decompression of record batches, for reading data that KRaft itself never writes.
//!
//! The framings are those of Kafka's producers: a gzip stream, snappy in xerial blocks or raw, an
//! LZ4 frame, a zstd frame. Each codec is a feature of this crate.
//!
//! Input is hostile: output ends at the caller's bound, and memory grows with what was really
//! decompressed, never with what a header claims. (A zstd frame is decompressed straight into the
//! output, so that its declared window costs nothing.)

use crate::error::DecodeError;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all; the only way in KRaft.
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy blocks, in xerial's framing or bare.
    Snappy,
    /// An LZ4 frame.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// The codec with this id in a batch's attributes.
    #[inline]
    pub const fn from_id(id: u16) -> Option<Compression> {
        match id {
            0 => Some(Compression::None),
            1 => Some(Compression::Gzip),
            2 => Some(Compression::Snappy),
            3 => Some(Compression::Lz4),
            4 => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Kafka's name of the codec.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Decompresses all of `input` to the end of `out`, at most `bytes_max` bytes.
///
/// # Errors
/// [`DecodeError::DecompressedTooLong`] if there is more, [`DecodeError::BadCompressedData`] if the
/// stream is damaged, cut, or followed by other bytes, [`DecodeError::CompressionNotBuiltIn`] if the
/// codec's feature is off. `out` then holds what it held before.
pub fn decompress(
    compression: Compression,
    input: &[u8],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut sink = Sink { start: out.len(), bytes_max, out };
    let result = match compression {
        Compression::None => sink.extend(input),
        Compression::Gzip => gzip(input, &mut sink),
        Compression::Snappy => snappy(input, &mut sink),
        Compression::Lz4 => lz4(input, &mut sink),
        Compression::Zstd => zstd(input, &mut sink),
    };
    if result.is_err() {
        sink.out.truncate(sink.start);
    }
    result
}

/// The caller's vector with its bound.
struct Sink<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    bytes_max: usize,
}

impl Sink<'_> {
    /// Bytes that may still be added.
    fn room(&self) -> usize {
        self.bytes_max - (self.out.len() - self.start)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if bytes.len() > self.room() {
            return Err(DecodeError::DecompressedTooLong);
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Lets `fill` write into up to `len` zeroed bytes at the end and keeps as many as it says.
    #[cfg(any(feature = "snappy", feature = "lz4", feature = "zstd"))]
    fn fill<E>(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<(), E> {
        let before = self.out.len();
        self.out.resize(before + len.min(self.room()), 0);
        let written = fill(self.out.get_mut(before..).unwrap_or_default());
        self.out.truncate(before + written.as_ref().map_or(0, |written| *written));
        written.map(|_| ())
    }
}

#[cfg(feature = "gzip")]
fn gzip(input: &[u8], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    use std::io::Read as _;
    let mut decoder = flate2::bufread::MultiGzDecoder::new(input);
    let mut chunk = [0u8; 8192];
    loop {
        match decoder.read(&mut chunk).map_err(|_| DecodeError::BadCompressedData)? {
            0 => return Ok(()),
            read => sink.extend(chunk.get(..read).unwrap_or_default())?,
        }
    }
}

#[cfg(feature = "snappy")]
fn snappy(input: &[u8], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    use crate::cursor::Reader;
    /// Magic, then two versions of four bytes each, which readers ignore.
    const XERIAL: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
    const XERIAL_HEADER_BYTES: usize = 16;
    if !input.starts_with(&XERIAL) {
        return snappy_block(input, sink);
    }
    let mut reader = Reader::new(input);
    while !reader.is_empty() {
        // Streams may stand back to back, each with its header.
        if reader.rest().starts_with(&XERIAL) {
            reader.take(XERIAL_HEADER_BYTES).map_err(|_| DecodeError::BadCompressedData)?;
            continue;
        }
        let length = reader.i32().ok().and_then(|length| usize::try_from(length).ok());
        let block = length.and_then(|length| reader.take(length).ok());
        snappy_block(block.ok_or(DecodeError::BadCompressedData)?, sink)?;
    }
    Ok(())
}

#[cfg(feature = "snappy")]
fn snappy_block(block: &[u8], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    /// An element of three bytes copies at most 64, so no block grows by more than this.
    const GROWTH_MAX: usize = 64;
    let claimed = snap::raw::decompress_len(block).map_err(|_| DecodeError::BadCompressedData)?;
    if claimed > block.len().saturating_mul(GROWTH_MAX) {
        return Err(DecodeError::BadCompressedData);
    }
    if claimed > sink.room() {
        return Err(DecodeError::DecompressedTooLong);
    }
    sink.fill(claimed, |room| snap::raw::Decoder::new().decompress(block, room))
        .map_err(|_| DecodeError::BadCompressedData)
}

/// Reads frames by the rules of Kafka's `Lz4BlockInputStream`: version 1, independent blocks, no
/// dictionary, header checksum right, block checksums verified, content checksum skipped.
#[cfg(feature = "lz4")]
fn lz4(input: &[u8], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    let mut frame = Lz4Frame { rest: input };
    lz4_frame(&mut frame, sink)?;
    if frame.rest.is_empty() { Ok(()) } else { Err(DecodeError::BadCompressedData) }
}

#[cfg(feature = "lz4")]
struct Lz4Frame<'a> {
    rest: &'a [u8],
}

#[cfg(feature = "lz4")]
impl<'a> Lz4Frame<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::BadCompressedData)?;
        self.rest = rest;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.take(1)?.first().copied().ok_or(DecodeError::BadCompressedData)
    }

    #[expect(clippy::little_endian_bytes, reason = "LZ4 frames are little-endian, unlike all of Kafka")]
    fn u32(&mut self) -> Result<u32, DecodeError> {
        let bytes = self.take(4)?.first_chunk::<4>().ok_or(DecodeError::BadCompressedData)?;
        Ok(u32::from_le_bytes(*bytes))
    }
}

#[cfg(feature = "lz4")]
fn lz4_frame(frame: &mut Lz4Frame<'_>, sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    const MAGIC: u32 = 0x184d_2204;
    const VERSION_1: u8 = 0x40;
    const STORED: u32 = 1 << 31;
    /// No LZ4 block grows by more than this: a length byte stands for at most 255 bytes.
    const GROWTH_MAX: usize = 255;
    const BAD: DecodeError = DecodeError::BadCompressedData;

    if frame.u32()? != MAGIC {
        return Err(BAD);
    }
    let descriptor_from = frame.rest;
    let flags = frame.u8()?;
    let block_size = frame.u8()?;
    let independent = flags & 0x20 != 0;
    let block_checksum = flags & 0x10 != 0;
    let content_size = flags & 0x08 != 0;
    let content_checksum = flags & 0x04 != 0;
    let block_bytes_max = match block_size {
        0x40 => 64 << 10,
        0x50 => 256 << 10,
        0x60 => 1 << 20,
        0x70 => 4 << 20,
        _ => return Err(BAD),
    };
    if flags & 0xc0 != VERSION_1 || flags & 0x03 != 0 || !independent {
        return Err(BAD);
    }
    if content_size {
        frame.take(8)?;
    }
    let descriptor = descriptor_from.get(..descriptor_from.len() - frame.rest.len()).unwrap_or_default();
    if frame.u8()? != (xxh32(descriptor) >> 8 & 0xff) as u8 {
        return Err(BAD);
    }
    loop {
        let head = frame.u32()?;
        if head == 0 {
            break;
        }
        let stored = head & STORED != 0;
        // On every target with at least 32-bit pointers the cast keeps the value.
        let size = (head & !STORED) as usize;
        if size > block_bytes_max {
            return Err(BAD);
        }
        let block = frame.take(size)?;
        if block_checksum && frame.u32()? != xxh32(block) {
            return Err(BAD);
        }
        if stored {
            sink.extend(block)?;
            continue;
        }
        let limit = block_bytes_max.min(size.saturating_mul(GROWTH_MAX));
        let bounded = limit > sink.room();
        sink.fill(limit, |room| lz4_flex::block::decompress_into(block, room)).map_err(
            |error| match error {
                lz4_flex::block::DecompressError::OutputTooSmall { .. } if bounded => {
                    DecodeError::DecompressedTooLong
                }
                _ => BAD,
            },
        )?;
    }
    if content_checksum {
        frame.take(4)?;
    }
    Ok(())
}

#[cfg(feature = "lz4")]
fn xxh32(bytes: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, bytes)
}

#[cfg(feature = "zstd")]
fn zstd(input: &[u8], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    use ::zstd::zstd_safe;
    /// `ZSTD_error_dstSize_tooSmall`, one of the codes that zstd_errors.h pins down; as a result it
    /// is returned negated.
    const TOO_SMALL: usize = 0usize.wrapping_sub(70);
    const ROOM_BYTES_MIN: usize = 4096;

    // The context is some 100 KiB, whatever the input says. The content size in the header is not
    // to be trusted, and Kafka leaves it out, so the room doubles until the content fits. Each try
    // starts over, which is at most as much work again as the last one.
    let mut context = zstd_safe::DCtx::try_create().ok_or(DecodeError::BadCompressedData)?;
    let mut room = input.len().saturating_mul(4).max(ROOM_BYTES_MIN);
    loop {
        let last = room >= sink.room();
        match sink.fill(room, |room| context.decompress(room, input)) {
            Ok(()) => return Ok(()),
            Err(TOO_SMALL) if last => return Err(DecodeError::DecompressedTooLong),
            Err(TOO_SMALL) => room = room.saturating_mul(2),
            Err(_) => return Err(DecodeError::BadCompressedData),
        }
    }
}

/// Stands in for each codec that is not built in.
macro_rules! not_built_in {
    ($($feature:literal $name:ident)*) => {$(
        #[cfg(not(feature = $feature))]
        fn $name(_input: &[u8], _sink: &mut Sink<'_>) -> Result<(), DecodeError> {
            Err(DecodeError::CompressionNotBuiltIn)
        }
    )*};
}

not_built_in! { "gzip" gzip "snappy" snappy "lz4" lz4 "zstd" zstd }

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
