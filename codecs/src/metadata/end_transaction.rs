//! EndTransactionRecord, api key 24.

use super::schema::schema;

schema! {
    /// Commits the open metadata transaction. Not allowed in a checkpoint.
    EndTransactionRecord<'a> = 24, END_TRANSACTION_RECORD, versions 0..=0 {}
}
