//! CRC-32C, the one place that names a CRC crate.
//!
//! `crc32c` serves short inputs, `crc-fast` long ones; each is the other's oracle in the tests.

/// From this length on `crc-fast` wins (see `benches/`).
const LONG_INPUT_BYTES: usize = 512;

/// CRC-32C (Castagnoli) of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    extend(0, bytes)
}

/// Continues a CRC-32C: `extend(crc32c(a), b)` is the CRC of `a` and `b` back to back.
#[inline]
pub fn extend(crc: u32, bytes: &[u8]) -> u32 {
    if bytes.len() < LONG_INPUT_BYTES { ::crc32c::crc32c_append(crc, bytes) } else { extend_long(crc, bytes) }
}

fn extend_long(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest =
        crc_fast::Digest::new_with_init_state(crc_fast::CrcAlgorithm::Crc32Iscsi, u64::from(crc ^ u32::MAX));
    digest.update(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit CRC in a 64-bit return type")]
    let sum = digest.finalize() as u32;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(extend_long(0, b"123456789"), 0xe306_9283);
    }

    #[test]
    fn both_implementations_agree_at_every_length_and_split() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
        for len in (0..700).chain([1024, 4095, 4096, 5000]) {
            assert_eq!(::crc32c::crc32c(&bytes[..len]), extend_long(0, &bytes[..len]), "{len} bytes");
        }
        for split in [0, 1, 511, 512, 513, 2500, 4999, 5000] {
            assert_eq!(extend(crc32c(&bytes[..split]), &bytes[split..]), crc32c(&bytes), "split at {split}");
        }
    }
}
