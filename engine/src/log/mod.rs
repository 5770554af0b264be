//! The verbs of the log, one file each.

pub(crate) mod active;
pub(crate) mod append;
pub(crate) mod close;
pub(crate) mod epoch;
pub(crate) mod leader_change;
pub(crate) mod open;
pub(crate) mod open_error;
pub(crate) mod open_report;
pub(crate) mod read;
pub(crate) mod roll;
pub(crate) mod tail;
