//! Kafka's framings decompress, everything else is an error within the bound.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// What Kafka's producers make of the record `14 00 00 00 01 08 01 14 00 00 00`.
fn framings() -> Vec<(Compression, Vec<u8>)> {
    let mut all = Vec::new();
    if cfg!(feature = "gzip") {
        all.push((Compression::Gzip, hex("1f8b08000000000000ff1361606060e46014015200046697dd0b000000")));
    }
    if cfg!(feature = "snappy") {
        all.push((
            Compression::Snappy,
            hex("82534e4150505900 00000001 00000001 0000000d 0b281400000001080114000000"),
        ));
        all.push((Compression::Snappy, hex("0b281400000001080114000000")));
    }
    if cfg!(feature = "lz4") {
        all.push((Compression::Lz4, hex("04224d18 60 40 82 0b000080 1400000001080114000000 00000000")));
    }
    if cfg!(feature = "zstd") {
        all.push((Compression::Zstd, hex("28b52ffd 00 58 580000 1400000001080114000000 010000")));
    }
    all
}

const RECORD: [u8; 11] = [0x14, 0, 0, 0, 1, 8, 1, 0x14, 0, 0, 0];

#[test]
fn kafkas_framings_decompress() {
    for (codec, input) in framings() {
        let mut out = vec![0xee];
        assert_eq!(decompress(codec, &input, RECORD.len(), &mut out), Ok(()), "{codec:?}");
        assert_eq!(out[1..], RECORD, "{codec:?}");
    }
    let mut out = Vec::new();
    assert_eq!(decompress(Compression::None, &RECORD, 11, &mut out), Ok(()));
    assert_eq!(out, RECORD);
}

#[test]
fn the_bound_is_exact_and_the_output_is_left_as_it_was() {
    for (codec, input) in framings().into_iter().chain([(Compression::None, RECORD.to_vec())]) {
        for bound in 0..RECORD.len() {
            let mut out = vec![0xee];
            let result = decompress(codec, &input, bound, &mut out);
            assert_eq!(result, Err(DecodeError::DecompressedTooLong), "{codec:?} at {bound}");
            assert_eq!(out, [0xee], "{codec:?} at {bound}");
        }
    }
}

#[test]
fn a_stream_cut_anywhere_or_with_bytes_behind_it_is_damaged() {
    for (codec, input) in framings() {
        for cut in 1..input.len() {
            // The xerial header without blocks is an empty stream, and between blocks it may end.
            if codec == Compression::Snappy && cut == 16 {
                continue;
            }
            let mut out = Vec::new();
            let result = decompress(codec, &input[..cut], 1 << 20, &mut out);
            assert_eq!(result, Err(DecodeError::BadCompressedData), "{codec:?} cut at {cut}");
            assert!(out.is_empty());
        }
        let mut longer = input.clone();
        longer.push(0x77);
        let mut out = Vec::new();
        let result = decompress(codec, &longer, 1 << 20, &mut out);
        assert_eq!(result, Err(DecodeError::BadCompressedData), "{codec:?} with a byte behind");
    }
}

#[cfg(feature = "lz4")]
#[test]
fn lz4_frames_that_kafka_refuses_are_refused() {
    let good = framings().into_iter().find(|(codec, _)| *codec == Compression::Lz4).unwrap().1;
    // Flags, block descriptor, header checksum, block size.
    for (at, value) in [(4, 0x40), (4, 0xa0), (4, 0x61), (5, 0x30), (5, 0xc0), (6, 0x83), (10, 0xc0)] {
        let mut bad = good.clone();
        bad[at] = value;
        let mut out = Vec::new();
        let result = decompress(Compression::Lz4, &bad, 1 << 20, &mut out);
        assert_eq!(result, Err(DecodeError::BadCompressedData), "byte {at} = {value:#x}");
    }
}

/// A frame with every option that Kafka reads: content size, block and content checksum, a
/// compressed block.
#[cfg(feature = "lz4")]
#[expect(clippy::little_endian_bytes, reason = "LZ4 frames are little-endian")]
#[test]
fn lz4_block_checksums_are_verified_and_content_checksums_skipped() {
    let content = vec![b'a'; 70_000];
    let mut frame = hex("04224d18 7c 50");
    frame.extend_from_slice(&70_000u64.to_le_bytes());
    let checksum = (xxh32(&frame[4..]) >> 8) as u8;
    frame.push(checksum);
    let block = lz4_flex::block::compress(&content);
    frame.extend_from_slice(&(block.len() as u32).to_le_bytes());
    frame.extend_from_slice(&block);
    let checksum_at = frame.len();
    frame.extend_from_slice(&xxh32(&block).to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&[1, 2, 3, 4]);

    let mut out = Vec::new();
    assert_eq!(decompress(Compression::Lz4, &frame, 70_000, &mut out), Ok(()));
    assert!(out == content);
    assert_eq!(
        decompress(Compression::Lz4, &frame, 69_999, &mut Vec::new()),
        Err(DecodeError::DecompressedTooLong)
    );
    frame[checksum_at] ^= 1;
    assert_eq!(
        decompress(Compression::Lz4, &frame, 70_000, &mut Vec::new()),
        Err(DecodeError::BadCompressedData)
    );
}

#[cfg(feature = "snappy")]
#[test]
fn snappy_streams_may_have_many_blocks_and_stand_back_to_back() {
    let block = |bytes: &[u8]| {
        let block = snap::raw::Encoder::new().compress_vec(bytes).unwrap();
        [(block.len() as u32).to_be_bytes().to_vec(), block].concat()
    };
    let header = hex("82534e4150505900 00000001 00000001");
    let input = [header.clone(), block(&[b'a'; 40_000]), block(b"bc"), header, block(b"d")].concat();
    let mut out = Vec::new();
    assert_eq!(decompress(Compression::Snappy, &input, 40_003, &mut out), Ok(()));
    assert!(out == [vec![b'a'; 40_000], b"bcd".to_vec()].concat());
}

#[cfg(feature = "snappy")]
#[test]
fn a_snappy_block_that_claims_gigabytes_gets_no_memory() {
    let mut out = Vec::new();
    // A length of 2^31 - 1 and one literal byte.
    let result = decompress(Compression::Snappy, &hex("ffffffff07 00 61"), usize::MAX, &mut out);
    assert_eq!(result, Err(DecodeError::BadCompressedData));
    assert!(out.capacity() < 4096, "{} bytes", out.capacity());
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_content_larger_than_the_first_guess_is_whole() {
    let content: Vec<u8> = (0..2_000_000u32).map(|i| (i / 1000) as u8).collect();
    let input = ::zstd::bulk::compress(&content, 3).unwrap();
    assert!(input.len() * 4 < content.len());
    let mut out = vec![1];
    assert_eq!(decompress(Compression::Zstd, &input, content.len(), &mut out), Ok(()));
    assert!(out[1..] == content);
    let result = decompress(Compression::Zstd, &input, content.len() - 1, &mut out);
    assert_eq!(result, Err(DecodeError::DecompressedTooLong));
}

#[cfg(feature = "gzip")]
#[test]
fn a_gzip_bomb_stops_at_the_bound() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1000 {
        encoder.write_all(&[0; 10_000]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 20_000);
    let mut out = Vec::new();
    let result = decompress(Compression::Gzip, &bomb, 100_000, &mut out);
    assert_eq!(result, Err(DecodeError::DecompressedTooLong));
    assert!(out.capacity() <= 200_000, "{} bytes", out.capacity());
}
