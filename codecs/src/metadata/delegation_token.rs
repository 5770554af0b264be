//! DelegationTokenRecord, api key 10.

use super::array::Array;
use super::schema::schema;

schema! {
    /// A delegation token was created or renewed.
    DelegationTokenRecord<'a> = 10, DELEGATION_TOKEN_RECORD, versions 0..=0 {
        /// Principal text, e.g. `User:alice`.
        owner: &'a str,
        /// Principal that asked for it. Added without a version change before the record was ever used.
        requester: &'a str,
        /// Principals that may renew.
        renewers: Array<'a, &'a str>,
        /// Time of issue, in ms.
        issue_timestamp: i64,
        /// End of life, in ms.
        max_timestamp: i64,
        /// Next renewal deadline, in ms.
        expiration_timestamp: i64,
        /// Id of the token.
        token_id: &'a str,
    }
}
