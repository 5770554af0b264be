//! BeginTransactionRecord, api key 23.

use super::schema::schema;

schema! {
    /// Opens a metadata transaction. Not allowed in a checkpoint, nor inside another transaction.
    BeginTransactionRecord<'a> = 23, BEGIN_TRANSACTION_RECORD, versions 0..=0 {
        /// Free text, e.g. `Bootstrap records`.
        name: Option<&'a str> => tag 0,
    }
}
