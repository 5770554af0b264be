//! One entry in the ring, and the two linked ones of an append.
//!
//! The kernel may use file and buffers until the completion arrives. Until then they belong to the
//! operation; when its future is dropped, tokio-uring's driver keeps them ([`Held`]) until the
//! completion. They lie on the heap, so that moving the operation does not move them.

use super::RING_ENTRIES;
use super::in_flight::{InFlight, One};
use bytes::{Bytes, BytesMut};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{cqueue, opcode, squeue};
use rustix::io::ReadWriteFlags;
use std::fs::File;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use tokio_uring::{InFlightOneshot, OneshotOutputTransform, UnsubmittedOneshot};

/// The ring's lengths have 32 bits, and the kernel moves less than 2 GiB at a time anyway.
pub(super) const BYTES_MAX: usize = 1 << 30;

/// What the kernel works with, until the completion.
pub(super) struct Held<D> {
    data: D,
    /// Keeps the descriptor from being closed, and its number from naming another file.
    _file: Rc<File>,
    _one: One,
}

/// Turns a completion into the kernel's answer and the buffers.
pub(super) struct Answer<D>(PhantomData<D>);

impl<D> OneshotOutputTransform for Answer<D> {
    type Output = (io::Result<usize>, D);
    type StoredData = Held<D>;

    fn transform_oneshot_output(self, held: Held<D>, completion: cqueue::Entry) -> Self::Output {
        let result = completion.result();
        let answer = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        (answer, held.data)
    }
}

/// An operation in the ring.
pub(super) type Running<D> = InFlightOneshot<Held<D>, Answer<D>>;

/// Buffers of one write, with the list of them that the kernel reads.
pub(super) struct WriteBufs {
    bufs: Vec<Bytes>,
    /// Points into `bufs`.
    slices: Vec<IoSlice<'static>>,
}

impl WriteBufs {
    fn new(bufs: Vec<Bytes>) -> WriteBufs {
        let slices = bufs
            .iter()
            .map(|buf| {
                // SAFETY: the bytes lie on the heap or are static, do not change and live at least as
                // long as `bufs`, which is dropped together with `slices`, and no slice leaves this
                // struct but as a pointer in an entry that completes before the struct is dropped.
                IoSlice::new(unsafe { std::slice::from_raw_parts(buf.as_ptr(), buf.len()) })
            })
            .collect();
        WriteBufs { bufs, slices }
    }

    pub(super) fn into_bufs(self) -> Vec<Bytes> {
        self.bufs
    }
}

/// An open file and its lane's account of what is in flight.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) file: Rc<File>,
    pub(super) in_flight: Rc<InFlight>,
}

impl Target {
    /// Reads up to `len` bytes into the spare room of `buf`, which must have so much.
    ///
    /// The answer counts bytes that the kernel has put there; the length of `buf` is as it was.
    pub(super) fn read(&self, position: u64, len: usize, mut buf: BytesMut) -> Running<BytesMut> {
        let room = buf.spare_capacity_mut();
        assert!(len <= room.len() && len <= BYTES_MAX, "a read of {len} bytes into {}", room.len());
        let entry = opcode::Read::new(self.fd(), room.as_mut_ptr().cast(), len as u32).offset(position);
        self.push(entry.build(), buf)
    }

    /// Writes the buffers, or as much of them as the kernel takes at once.
    pub(super) fn write(&self, position: u64, bufs: Vec<Bytes>) -> Running<WriteBufs> {
        let bufs = WriteBufs::new(bufs);
        self.push(self.write_entry(position, &bufs, ReadWriteFlags::empty()), bufs)
    }

    /// The same, and what was written is durable when it completes.
    pub(super) fn write_durably(&self, position: u64, bufs: Vec<Bytes>) -> Running<WriteBufs> {
        let bufs = WriteBufs::new(bufs);
        self.push(self.write_entry(position, &bufs, ReadWriteFlags::DSYNC), bufs)
    }

    /// A sync of the content, or of all metadata as well.
    pub(super) fn sync(&self, content_only: bool) -> Running<()> {
        self.push(self.sync_entry(content_only), ())
    }

    /// A write, and a sync of the content that the kernel begins when the write is done in full; if it
    /// is not, the sync ends as `ECANCELED`. `Err` gives the buffers back if that cannot be had now.
    ///
    /// Only entries that reach the kernel in one call are linked. They do, because nothing comes between
    /// the two pushes and the ring has room for both: a full one would be flushed in between.
    pub(super) fn linked(
        &self,
        position: u64,
        bufs: Vec<Bytes>,
    ) -> Result<(Running<WriteBufs>, Running<()>), Vec<Bytes>> {
        if self.in_flight.count() + 2 > RING_ENTRIES as usize {
            return Err(bufs);
        }
        let bufs = WriteBufs::new(bufs);
        let write = self.write_entry(position, &bufs, ReadWriteFlags::empty());
        let write = self.push(write.flags(squeue::Flags::IO_LINK), bufs);
        Ok((write, self.push(self.sync_entry(true), ())))
    }

    fn write_entry(&self, position: u64, bufs: &WriteBufs, flags: ReadWriteFlags) -> squeue::Entry {
        let flags = flags.bits() as i32;
        match bufs.bufs.as_slice() {
            [buf] => {
                let len = buf.len().min(BYTES_MAX) as u32;
                opcode::Write::new(self.fd(), buf.as_ptr(), len).offset(position).rw_flags(flags).build()
            }
            // std promises that an `IoSlice` is laid out as an `iovec`.
            _ => opcode::Writev::new(self.fd(), bufs.slices.as_ptr().cast(), bufs.slices.len() as u32)
                .offset(position)
                .rw_flags(flags)
                .build(),
        }
    }

    fn sync_entry(&self, content_only: bool) -> squeue::Entry {
        let flags = if content_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
        opcode::Fsync::new(self.fd()).flags(flags).build()
    }

    fn fd(&self) -> Fd {
        Fd(self.file.as_raw_fd())
    }

    fn push<D: 'static>(&self, entry: squeue::Entry, data: D) -> Running<D> {
        let held = Held { data, _file: Rc::clone(&self.file), _one: self.in_flight.one() };
        UnsubmittedOneshot::new(held, Answer(PhantomData), entry).submit()
    }
}
