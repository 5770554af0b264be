//! A fuzzer hardly ever hits a checksum. Each target tries its bytes as they are and with these made
//! right, so that what lies behind a checksum is reached too.

use kraftlog_codecs::batch::{BatchHeader, CRC_FROM};
use kraftlog_codecs::crc::crc32c;

/// Where a batch has its CRC.
const CRC_AT: std::ops::Range<usize> = 17..21;

/// Makes the CRC of every batch right, from the front as far as the lengths lead.
pub fn batches(bytes: &[u8]) -> Vec<u8> {
    let mut mended = bytes.to_vec();
    let mut at = 0;
    while let Ok(size) = BatchHeader::frame(&mended[at..])
        && let Some(batch) = mended[at..].get_mut(..size)
    {
        let crc = crc32c(&batch[CRC_FROM..]);
        batch[CRC_AT].copy_from_slice(&crc.to_be_bytes());
        at += size;
    }
    mended
}

/// Puts the right checksum line at the end of a `kraftlog.state`, in place of what follows its last
/// whole line but one.
pub fn state(bytes: &[u8]) -> Vec<u8> {
    let body = match bytes.strip_suffix(b"\n").unwrap_or(bytes).iter().rposition(|&byte| byte == b'\n') {
        Some(end) => &bytes[..=end],
        None => b"",
    };
    let mut mended = body.to_vec();
    mended.extend_from_slice(format!("crc {:08x}\n", crc32c(body)).as_bytes());
    mended
}
