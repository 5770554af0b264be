//! Appending: as leader, at given offsets, as follower, and the first batch of an epoch.
//!
//! Batches are checked on the caller's thread. Offsets are assigned in the same step in which a batch
//! is queued, so the order of calls is the order in the log; the bytes between offset and epoch are
//! outside of the CRC and are patched in place. Nothing is durable before the ticket says so.

use crate::handle::{MetadataLog, block_on};
use crate::lane::budget::Share;
use crate::lane::log_lane::{AppendOp, LogOp, Order};
use crate::lane::oneshot::oneshot;
use crate::ticket::{AppendError, Appended, Ticket};
use crate::types::{Epoch, Offset};
use bytes::Bytes;
use kraftlog_codecs::batch::{Batch, BatchBuilder, BatchHeader, BatchOptions, patch_offset_and_epoch};
use kraftlog_codecs::error::DecodeError;

/// What became of bytes that a follower brought.
#[must_use = "nothing is durable before the ticket says so"]
pub enum FollowerAppend {
    /// Some batches were queued.
    Queued(Ticket),
    /// There was no whole batch of an epoch up to the follower's (behaviour.md B-91, B-92): fetch again
    /// from the unchanged log end.
    Skipped,
}

impl FollowerAppend {
    /// The ticket, if anything was queued.
    pub fn ticket(self) -> Option<Ticket> {
        match self {
            FollowerAppend::Queued(ticket) => Some(ticket),
            FollowerAppend::Skipped => None,
        }
    }
}

/// Room for an append, taken before the batch is made. Dropped unused, it gives the room back.
#[must_use = "a permit holds room that others wait for"]
pub struct Permit {
    share: Share,
}

impl Permit {
    /// Bytes that may be appended with it.
    pub fn bytes(&self) -> usize {
        self.share.bytes()
    }
}

impl MetadataLog {
    /// Queues one batch as leader of `epoch`, behind all earlier calls, and says at once which offsets
    /// it has. Base offset and epoch are patched in; whatever the batch had there does not matter.
    ///
    /// Nothing is durable on return: [`Ticket::durable`] resolves when it is. Batches waiting at the
    /// same moment share one sync.
    ///
    /// # Errors
    /// [`AppendError::WrongEpoch`] if this handle has not begun `epoch`,
    /// [`AppendError::BatchTooLarge`], [`AppendError::QueueFull`] if too much waits
    /// (see [`reserve`](MetadataLog::reserve)). The log is unchanged after any error.
    pub fn append_as_leader(&self, epoch: Epoch, batch: Vec<u8>) -> Result<Ticket, AppendError> {
        self.check_leader_batch(&batch)?;
        let share = self.take_share(batch.len())?;
        self.queue_as_leader(share, epoch, batch)
    }

    /// Builds one batch of encoded metadata records, with the runtime's clock, and appends it as
    /// [`append_as_leader`](MetadataLog::append_as_leader).
    ///
    /// # Errors
    /// Those of [`append_as_leader`](MetadataLog::append_as_leader).
    pub fn append_records<R: AsRef<[u8]>>(
        &self,
        epoch: Epoch,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Ticket, AppendError> {
        let bytes_max = self.shared().config.batch_bytes_max;
        let mut batch = Vec::new();
        let options = BatchOptions { bytes_max, ..BatchOptions::data(0, epoch.0, self.now_ms()) };
        let mut builder = BatchBuilder::new(&mut batch, options);
        for record in records {
            builder.append(None, record.as_ref()).map_err(|full| AppendError::BatchTooLarge {
                bytes: full.batch_bytes + full.record_bytes,
                bytes_max: full.bytes_max,
                records: i32::try_from(builder.count()).unwrap_or(i32::MAX),
                records_max: self.shared().config.batch_records_max,
            })?;
        }
        if builder.is_empty() {
            return Err(AppendError::Empty);
        }
        builder.finish();
        self.append_as_leader(epoch, batch)
    }

    /// Waits for room of `bytes` for one append. Callers are served in the order of their calls.
    ///
    /// # Cancel safety
    /// Dropping the future takes no room.
    pub async fn reserve(&self, bytes: usize) -> Permit {
        Permit { share: self.shared().budget.take(bytes).await }
    }

    /// As [`reserve`](MetadataLog::reserve), blocking this thread.
    ///
    /// # Panics
    /// Inside an async context, if the runtime can tell.
    pub fn reserve_blocking(&self, bytes: usize) -> Permit {
        block_on(&*self.shared().rt, self.reserve(bytes))
    }

    /// As [`append_as_leader`](MetadataLog::append_as_leader), in room reserved before; for a batch that
    /// is larger than the permit, more room is taken if there is some.
    ///
    /// # Errors
    /// Those of [`append_as_leader`](MetadataLog::append_as_leader).
    pub fn try_append(&self, permit: Permit, epoch: Epoch, batch: Vec<u8>) -> Result<Ticket, AppendError> {
        self.check_leader_batch(&batch)?;
        let mut share = permit.share;
        if share.bytes() >= batch.len() {
            share.shrink_to(batch.len());
        } else {
            drop(share);
            share = self.take_share(batch.len())?;
        }
        self.queue_as_leader(share, epoch, batch)
    }

    fn queue_as_leader(&self, share: Share, epoch: Epoch, mut batch: Vec<u8>) -> Result<Ticket, AppendError> {
        let count = match BatchHeader::parse(&batch) {
            Ok(header) => i64::from(header.last_offset_delta) + 1,
            Err(cause) => return Err(AppendError::BadBatch { position: 0, cause }),
        };
        self.queue(share, |order| {
            if order.leading != Some(epoch) {
                return Err(AppendError::WrongEpoch { given: epoch, begun: order.leading });
            }
            let base = order.next;
            patch_offset_and_epoch(&mut batch, base.0, epoch.0);
            let next = advance(base, count)?;
            Ok((Bytes::from(batch), Appended { first: base, last: Offset(next.0 - 1), epoch }))
        })
    }

    /// Queues one batch at the offset that the caller gave it, for callers that number themselves.
    /// Offset and epoch are patched in.
    ///
    /// # Errors
    /// [`AppendError::Gap`] or [`AppendError::Overlap`] if `base` is not where the log ends (with all that
    /// waits), [`AppendError::EpochGoesDown`] if `epoch` is below the newest one.
    pub fn append_at(&self, base: Offset, epoch: Epoch, mut batch: Vec<u8>) -> Result<Ticket, AppendError> {
        let count = i64::from(self.check_leader_batch(&batch)?.last_offset_delta) + 1;
        let share = self.take_share(batch.len())?;
        self.queue(share, |order| {
            check_place(order, base, epoch)?;
            patch_offset_and_epoch(&mut batch, base.0, epoch.0);
            let next = advance(base, count)?;
            Ok((Bytes::from(batch), Appended { first: base, last: Offset(next.0 - 1), epoch }))
        })
    }

    /// Queues what a leader sent: whole batches back to back, with their offsets and epochs.
    ///
    /// The walk ends at the first batch of an epoch above `epoch`, the one that the fetch was made in
    /// (KAFKA-18723), and at an incomplete batch at the end; what comes before is queued as one append.
    /// CRCs are checked; batches above the leader's size limit are taken.
    ///
    /// # Errors
    /// Nothing is queued after any: [`AppendError::BadBatch`] (fetch again), [`AppendError::Gap`] and
    /// [`AppendError::Overlap`] (behaviour.md W-30), [`AppendError::EpochGoesDown`].
    pub fn append_as_follower(
        &self,
        epoch: Epoch,
        bytes: impl Into<Bytes>,
    ) -> Result<FollowerAppend, AppendError> {
        let mut bytes = bytes.into();
        if bytes.is_empty() {
            return Err(AppendError::Empty);
        }
        let Some(found) = check_follower_batches(epoch, &bytes)? else { return Ok(FollowerAppend::Skipped) };
        bytes.truncate(found.len);
        self.check_fits_segment(found.len)?;
        let share = self.take_share(found.len)?;
        let ticket = self.queue(share, |order| {
            check_place(order, found.first, found.first_epoch)?;
            let (first, last, epoch) = (found.first, found.last, found.last_epoch);
            Ok((bytes, Appended { first, last, epoch }))
        })?;
        Ok(FollowerAppend::Queued(ticket))
    }

    /// Queues checked bytes; `place` decides on their offsets in the same step.
    fn queue(
        &self,
        share: Share,
        place: impl FnOnce(&mut Order) -> Result<(Bytes, Appended), AppendError>,
    ) -> Result<Ticket, AppendError> {
        let shared = self.shared();
        let (answer, settled) = oneshot();
        let appended = shared.log_queue.push_with(|order| {
            if let Some(fenced) = shared.fenced() {
                return Err(AppendError::Fenced(fenced.clone()));
            }
            let (bytes, appended) = place(order)?;
            order.next = Offset(appended.last.0 + 1);
            order.last_epoch = order.last_epoch.max(appended.epoch);
            // Behind a batch of a newer epoch nothing of the old one comes, or no open would take the log.
            order.leading = order.leading.filter(|leading| *leading >= order.last_epoch);
            Ok((LogOp::Append(AppendOp { bytes, appended, share, answer }), appended))
        })?;
        Ok(Ticket { appended, answer: settled, rt: std::sync::Arc::clone(&shared.rt) })
    }

    fn take_share(&self, bytes: usize) -> Result<Share, AppendError> {
        let budget = &self.shared().budget;
        budget
            .try_take(bytes)
            .ok_or_else(|| AppendError::QueueFull { waiting: budget.used(), limit: budget.limit() })
    }

    fn check_leader_batch(&self, batch: &[u8]) -> Result<BatchHeader, AppendError> {
        let bad = |cause| AppendError::BadBatch { position: 0, cause };
        let config = &self.shared().config;
        if batch.is_empty() {
            return Err(AppendError::Empty);
        }
        let header = BatchHeader::parse(batch).map_err(bad)?;
        if batch.len() > config.batch_bytes_max || header.records_count > config.batch_records_max {
            return Err(AppendError::BatchTooLarge {
                bytes: batch.len(),
                bytes_max: config.batch_bytes_max,
                records: header.records_count,
                records_max: config.batch_records_max,
            });
        }
        self.check_fits_segment(batch.len())?;
        let checked = Batch::check(batch).map_err(bad)?;
        if checked.bytes().len() != batch.len() {
            return Err(bad(DecodeError::TrailingBytes));
        }
        header.check_strict().map_err(bad)?;
        Ok(header)
    }

    fn check_fits_segment(&self, bytes: usize) -> Result<(), AppendError> {
        let segment_bytes_max = self.shared().config.segment_bytes_max;
        match bytes as u64 > segment_bytes_max {
            true => Err(AppendError::LargerThanSegment { bytes, segment_bytes_max }),
            false => Ok(()),
        }
    }

    /// Wall clock in milliseconds, as batches carry it.
    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from(self.shared().rt.now().as_millis()).unwrap_or(i64::MAX)
    }
}

fn advance(base: Offset, count: i64) -> Result<Offset, AppendError> {
    base.0.checked_add(count).map(Offset).ok_or(AppendError::OffsetsUsedUp { end: base })
}

fn check_place(order: &Order, base: Offset, epoch: Epoch) -> Result<(), AppendError> {
    match base.cmp(&order.next) {
        std::cmp::Ordering::Greater => return Err(AppendError::Gap { given: base, end: order.next }),
        std::cmp::Ordering::Less => return Err(AppendError::Overlap { given: base, end: order.next }),
        std::cmp::Ordering::Equal => {}
    }
    if epoch < order.last_epoch {
        return Err(AppendError::EpochGoesDown { given: epoch, last: order.last_epoch, offset: base });
    }
    Ok(())
}

struct FollowerBatches {
    first: Offset,
    last: Offset,
    first_epoch: Epoch,
    last_epoch: Epoch,
    len: usize,
}

fn check_follower_batches(epoch: Epoch, bytes: &[u8]) -> Result<Option<FollowerBatches>, AppendError> {
    let mut found: Option<FollowerBatches> = None;
    let mut position = 0;
    while position < bytes.len() {
        let rest = &bytes[position..];
        let bad = |cause| AppendError::BadBatch { position, cause };
        let batch = match Batch::check(rest) {
            Ok(batch) => batch,
            // A fetch may be cut anywhere: the last batch is not all there.
            Err(DecodeError::Truncated) => break,
            Err(cause) => return Err(bad(cause)),
        };
        let header = batch.header();
        let (base, batch_epoch) = (Offset(header.base_offset), Epoch(header.leader_epoch));
        if batch_epoch > epoch {
            break;
        }
        if base.0 < 0 || header.last_offset_delta < 0 || base.0.checked_add(1 << 31).is_none() {
            return Err(bad(DecodeError::BadOffset));
        }
        if batch_epoch.0 < 0 {
            return Err(bad(DecodeError::BadFieldValue));
        }
        position += header.size();
        match &mut found {
            None => {
                found = Some(FollowerBatches {
                    first: base,
                    last: Offset(header.last_offset()),
                    first_epoch: batch_epoch,
                    last_epoch: batch_epoch,
                    len: position,
                });
            }
            Some(found) => {
                let end = Offset(found.last.0 + 1);
                if base != end {
                    return Err(match base > end {
                        true => AppendError::Gap { given: base, end },
                        false => AppendError::Overlap { given: base, end },
                    });
                }
                if batch_epoch < found.last_epoch {
                    let (given, last) = (batch_epoch, found.last_epoch);
                    return Err(AppendError::EpochGoesDown { given, last, offset: base });
                }
                found.last = Offset(header.last_offset());
                found.last_epoch = batch_epoch;
                found.len = position;
            }
        }
    }
    Ok(found)
}
