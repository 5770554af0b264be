//! The search for a batch that still stands behind a damaged one.
//!
//! Recovery asks this to tell a torn end from rot in the middle. The bytes are hostile: they may be
//! sown with headers that lead nowhere, so that the CRC work has a budget. Two passes over the bytes,
//! no allocation.

use super::header::{BatchHeader, HEADER_BYTES};
use super::view::Batch;
use std::ops::Range;

/// Where a header has producer id, epoch and sequence, all -1 in a KRaft batch.
const NO_PRODUCER: Range<usize> = 43..57;

/// What [`find_valid_batch`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A whole batch with a good CRC at this position.
    At(usize),
    /// No valid batch that could continue the log.
    None,
    /// No valid batch among those examined, but the budget did not reach for all candidates.
    GaveUp,
}

/// Looks in `bytes` at `from` and behind for a valid batch that could continue a log.
///
/// Candidates are headers with magic 2, a base offset of at least `min_base_offset`, an epoch of at
/// least `min_epoch`, and a size that fits into the bytes that are there. Records are full of bytes
/// that could be such a header, and each costs a CRC over what it claims to be. So the header that
/// KRaft writes is looked for first: without a producer, which makes fourteen bytes of ones, and with a
/// last offset that fits its count. Only then come the headers that any Kafka might have written.
///
/// In either pass the CRCs of candidates cover at most `crc_budget_bytes` together (recovery gives twice
/// the bytes there are): one that would exceed the budget is passed over, and when that was one of
/// KRaft's the answer is [`Found::GaveUp`] unless another holds.
pub fn find_valid_batch(
    bytes: &[u8],
    from: usize,
    min_base_offset: i64,
    min_epoch: i32,
    crc_budget_bytes: u64,
) -> Found {
    let least = Least { base_offset: min_base_offset, epoch: min_epoch };
    let by_kraft = search(bytes, from, least, crc_budget_bytes, |header, front| {
        front.get(NO_PRODUCER).is_some_and(|bytes| bytes == [0xff; 14]) && header.check_strict().is_ok()
    });
    if let Found::At(_) = by_kraft {
        return by_kraft;
    }
    match search(bytes, from, least, crc_budget_bytes, |_, _| true) {
        Found::At(position) => Found::At(position),
        // What was passed over here is no batch of a metadata log, or was passed over there too.
        Found::None | Found::GaveUp => by_kraft,
    }
}

/// What a batch must have at least to continue the log.
#[derive(Clone, Copy)]
struct Least {
    base_offset: i64,
    epoch: i32,
}

/// One pass: the lowest valid batch among the candidates that `accept` takes.
#[inline]
fn search(
    bytes: &[u8],
    from: usize,
    least: Least,
    crc_budget_bytes: u64,
    accept: impl Fn(&BatchHeader, &[u8]) -> bool,
) -> Found {
    let mut budget = crc_budget_bytes;
    let mut passed_over = false;
    let mut position = from;
    while let Some(rest) = bytes.get(position..) {
        if rest.len() < HEADER_BYTES {
            break;
        }
        if let Some(batch) = candidate(rest, least, &accept) {
            match budget.checked_sub(batch.bytes().len() as u64) {
                None => passed_over = true,
                Some(left) => {
                    budget = left;
                    if batch.check_crc().is_ok() {
                        return Found::At(position);
                    }
                }
            }
        }
        position += 1;
    }
    if passed_over { Found::GaveUp } else { Found::None }
}

/// The batch at the front of `bytes`, if it may continue a log.
#[inline]
fn candidate<'a>(
    bytes: &'a [u8],
    least: Least,
    accept: impl Fn(&BatchHeader, &[u8]) -> bool,
) -> Option<Batch<'a>> {
    // Most positions fail here: `parse` looks at the magic byte before anything else of weight.
    let header = BatchHeader::parse(bytes).ok()?;
    if header.base_offset < least.base_offset || header.leader_epoch < least.epoch || !accept(&header, bytes)
    {
        return None;
    }
    Batch::parse(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, BatchOptions};
    use super::*;

    fn batch(base_offset: i64, leader_epoch: i32, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut builder = BatchBuilder::new(&mut bytes, BatchOptions::data(base_offset, leader_epoch, 0));
        builder.append(None, value).unwrap();
        builder.finish();
        bytes
    }

    #[test]
    fn the_next_whole_batch_behind_garbage_is_found() {
        let mut bytes = vec![2; 1000];
        bytes.extend_from_slice(&batch(7, 3, b"found"));
        bytes.extend_from_slice(&batch(8, 3, b"later"));
        let budget = 2 * bytes.len() as u64;
        assert_eq!(find_valid_batch(&bytes, 1, 7, 3, budget), Found::At(1000));
        assert_eq!(
            find_valid_batch(&bytes, 1, 8, 3, budget),
            Found::At(bytes.len() - (bytes.len() - 1000) / 2)
        );
        assert_eq!(find_valid_batch(&bytes, 1, 9, 3, budget), Found::None, "offset too low");
        assert_eq!(find_valid_batch(&bytes, 1, 7, 4, budget), Found::None, "epoch too low");
        assert_eq!(find_valid_batch(&bytes[..1060], 1, 7, 3, budget), Found::None, "cut");
        assert_eq!(find_valid_batch(&bytes, usize::MAX, 0, 0, budget), Found::None);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(find_valid_batch(&bytes, 1001, 8, 3, budget), Found::None, "bad CRC");
    }

    /// A header every 61 bytes whose batch would reach to the end: without a budget the CRCs would
    /// read the bytes once for each of them.
    #[test]
    fn planted_headers_exhaust_the_budget_and_say_so() {
        let planted = 20_000;
        let mut bytes = Vec::new();
        let total = planted * HEADER_BYTES;
        for index in 0..planted {
            let mut header = BatchHeader::parse(&batch(5, 1, b"x")).unwrap();
            header.batch_length = i32::try_from(total - index * HEADER_BYTES - 12).unwrap();
            bytes.extend_from_slice(&header.encode());
        }
        assert_eq!(find_valid_batch(&bytes, 0, 5, 1, 2 * total as u64), Found::GaveUp);
        // A small real one behind them is still affordable, though large fakes were not.
        let real = batch(6, 1, b"real");
        let at = bytes.len();
        bytes.extend_from_slice(&real);
        let budget = 2 * bytes.len() as u64 + real.len() as u64;
        let spare = budget - (budget % 100);
        assert!(matches!(find_valid_batch(&bytes, 0, 6, 1, spare), Found::At(found) if found == at));
    }

    #[test]
    fn the_budget_is_never_exceeded() {
        // Three candidates of 100 bytes and a budget for two of them: the third, which is valid, is
        // not examined.
        let good = batch(5, 1, &[7; 30]);
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        let bytes = [bad.clone(), bad, good.clone()].concat();
        let size = good.len() as u64;
        assert_eq!(find_valid_batch(&bytes, 0, 5, 1, 2 * size), Found::GaveUp);
        assert_eq!(find_valid_batch(&bytes, 0, 5, 1, 3 * size), Found::At(2 * good.len()));
    }
}
