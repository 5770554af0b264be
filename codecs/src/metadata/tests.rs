//! Golden vectors and round trips of every record.
