//! How a session is encrypted: what a comparison has to know, since the load generator pays for it. Finding it out is
//! `probe`'s.

use super::options::Verification;

/// How a session is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The protocol, such as `TLSv1.3`.
    pub protocol: String,
    /// The cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// What was verified of the server's certificate.
    pub verified: Verification,
}
