//! What each state found on disk means.
//!
//! | found | what open does |
//! | --- | --- |
//! | bad batch, nothing valid behind it | torn: cut, the cut bytes kept in `kraftlog.cut/` |
//! | bad batch, valid ones behind it, within one group, with a sector of zeros, not below the durable end | torn: cut |
//! | bad batch, valid ones behind it, anything else | rot: `CorruptBatch`, nothing is changed |
//! | zeros behind the data | preallocation: cut |
//! | an empty segment that begins inside of the one before | a roll that failed halfway: removed |
//! | end below the recorded durable end, high watermark or a snapshot's end | `LostRecords`, `LostTail` |
//! | whole batch at a wrong offset, of a lower epoch; segments that do not meet | refused |
//! | gap wholly below a whole snapshot | a delete to finish: the segments before it are removed |
//! | any of these, and the node is an observer | cut at the first bad batch, it fetches again |
//! | log start above zero without a snapshot that covers it | `MissingSnapshot` |
//! | snapshot beyond the end, with our intent, or after a Kafka | the log is replaced by it |
//! | closed cleanly, everything as recorded | the last batch is read, not the log |
//! | not closed | everything behind the last durable batch is read, and written again with the same bytes |
//! | no or a void side file | everything is read and written again |
//! | index missing, short, stale, hostile | rebuilt |
//! | epoch checkpoint that disagrees with the batches | rebuilt; an unknown version is refused |
//! | quorum-state empty or broken | refused; missing: reported |
//! | `.part`, `.deleted`, `.tmp`, producer snapshots | removed durably, after all checks |
//!
//! Two phases: `survey` reads and decides, and may refuse; `apply` changes what was decided. A refusal
//! leaves every byte as it was. A crash within `apply` leaves a directory that the next open judges by
//! the same table.

pub(crate) mod apply;
pub(crate) mod begin;
pub(crate) mod damage;
pub(crate) mod found;
pub(crate) mod index_files;
pub(crate) mod keep;
pub(crate) mod scan;
pub(crate) mod survey;
