//! RemoveDelegationTokenRecord, api key 26.

use super::schema::schema;

schema! {
    /// A delegation token was removed.
    RemoveDelegationTokenRecord<'a> = 26, REMOVE_DELEGATION_TOKEN_RECORD, versions 0..=0 {
        /// Id of the token.
        token_id: &'a str,
    }
}
