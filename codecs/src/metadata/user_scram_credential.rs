//! UserScramCredentialRecord, api key 11.

use super::schema::schema;

schema! {
    /// SCRAM credential of a user, set.
    UserScramCredentialRecord<'a> = 11, USER_SCRAM_CREDENTIAL_RECORD, versions 0..=0 {
        /// Name of the user.
        name: &'a str,
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8,
        /// Salt of the hash.
        salt: &'a [u8],
        /// Stored key of RFC 5802.
        stored_key: &'a [u8],
        /// Server key of RFC 5802.
        server_key: &'a [u8],
        /// Number of hash iterations.
        iterations: i32,
    }
}
