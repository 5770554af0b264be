//! Torn or rotten: what a bad batch is, by what lies behind it.
//!
//! A crash leaves a bad batch with nothing valid behind it, or, since a power cut may lose the second
//! batch of a group and keep the third, one with a whole sector of zeros in it. Anything else is rot:
//! what follows may be committed, and nothing is cut (design 7).

use crate::recover::scan::Fault;
use crate::types::{Epoch, Offset};
use bytes::BytesMut;
use kraftlog_codecs::batch::{BATCH_BYTES_MAX, BatchHeader, Batches, Found, find_valid_batch};
use kraftlog_io::{File, IoError};

/// Bytes looked at in one piece; batches up to half of it are found wherever they lie.
const WINDOW_BYTES: u64 = 64 << 20;
const SECTOR_BYTES: u64 = 512;
/// Most bytes that one crash can lose: a group, and the batch that went over it.
const GROUP_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX as u64;

/// A valid batch behind a bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Follower {
    pub(crate) position: u64,
    pub(crate) base: i64,
    /// Last offset of the batches that follow each other from there.
    pub(crate) last: i64,
    pub(crate) batches: u64,
}

/// What lies behind a bad batch in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    Nothing,
    Valid(Follower),
    /// There were more candidates than could be examined.
    Unknown,
}

/// Looks for a valid batch from `position` on. CRC work is at most twice the bytes.
pub(crate) async fn look_behind(
    file: &dyn File,
    file_len: u64,
    position: u64,
    expected: Offset,
    epoch: Epoch,
) -> Result<Behind, IoError> {
    let mut at = position;
    let mut gave_up = false;
    while at < file_len {
        let len = (file_len - at).min(WINDOW_BYTES);
        let buf = file.read_at(at, usize::try_from(len).unwrap_or(usize::MAX), BytesMut::new()).await?;
        match find_valid_batch(&buf, 0, expected.0, epoch.0, 2 * buf.len() as u64) {
            Found::At(found) => return Ok(Behind::Valid(follow(&buf[found..], at + found as u64))),
            Found::None => {}
            Found::GaveUp => gave_up = true,
        }
        if (buf.len() as u64) < len || at + len >= file_len {
            break;
        }
        at += WINDOW_BYTES / 2;
    }
    Ok(if gave_up { Behind::Unknown } else { Behind::Nothing })
}

/// Counts the batches that follow each other from a valid one.
fn follow(bytes: &[u8], position: u64) -> Follower {
    let mut follower = Follower { position, base: 0, last: 0, batches: 0 };
    for item in Batches::new(bytes) {
        let (_, Ok(batch)) = item else { break };
        let header: &BatchHeader = batch.header();
        if follower.batches == 0 {
            follower.base = header.base_offset;
        }
        follower.last = header.last_offset();
        follower.batches += 1;
    }
    follower
}

/// Whether a bad batch with valid ones behind it is what a power cut left of one group: it is not below
/// the durable end, the rest is no more than a group, and a sector of it was never written.
pub(crate) async fn is_torn_group(
    file: &dyn File,
    file_len: u64,
    position: u64,
    next_valid: u64,
) -> Result<bool, IoError> {
    let data_end = data_end(file, position, file_len).await?;
    if data_end - position > GROUP_BYTES_MAX {
        return Ok(false);
    }
    let mut sector = position / SECTOR_BYTES * SECTOR_BYTES;
    // The sector in which the valid batch begins counts too: a base offset begins with zeros, so a batch
    // whose first bytes lie in a sector that was lost can be whole.
    let end = next_valid.next_multiple_of(SECTOR_BYTES).min(data_end);
    let buf = file.read_at(position, index(end.saturating_sub(position)), BytesMut::new()).await?;
    while sector + SECTOR_BYTES <= end {
        let from = index(sector.max(position) - position);
        let lost = buf.get(from..index(sector + SECTOR_BYTES - position));
        if lost.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) {
            return Ok(true);
        }
        sector += SECTOR_BYTES;
    }
    Ok(false)
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Where the sectors end, from `from` on, that have a byte which is not zero: what lies behind is
/// preallocation. (Whole batches end in zeros too, so the last byte that is not zero says little.)
///
/// Preallocation ends where a sector does. A file of zeros alone that does not is the beginning of a torn
/// batch, since every base offset begins with zeros, and counts as data.
pub(crate) async fn data_end(file: &dyn File, from: u64, file_len: u64) -> Result<u64, IoError> {
    const CHUNK: u64 = 1 << 20;
    let mut end = file_len;
    while end > from {
        let at = end.saturating_sub(CHUNK).max(from);
        let buf = file.read_at(at, index(end - at), BytesMut::new()).await?;
        if let Some(last) = buf.iter().rposition(|byte| *byte != 0) {
            return Ok((at + last as u64 + 1).next_multiple_of(SECTOR_BYTES).min(file_len));
        }
        end = at;
    }
    Ok(if file_len.is_multiple_of(SECTOR_BYTES) { from } else { file_len })
}

impl Fault {
    /// A sentence about it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Fault::BadBatch { cause, .. } => cause.to_string(),
            Fault::Misplaced { base } => format!("a whole batch with base offset {base}"),
            Fault::EpochGoesDown { epoch } => format!("a whole batch of the lower epoch {epoch}"),
        }
    }
}
