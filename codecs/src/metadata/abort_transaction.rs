//! AbortTransactionRecord, api key 25.

use super::schema::schema;

schema! {
    /// Aborts the open metadata transaction: readers roll back to just before its Begin. Not allowed in a
    /// checkpoint.
    AbortTransactionRecord<'a> = 25, ABORT_TRANSACTION_RECORD, versions 0..=0 {
        /// Free text, e.g. `Controller failover`.
        reason: Option<&'a str> => tag 0,
    }
}
