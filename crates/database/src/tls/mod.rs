//! TLS of sessions with databases that a URL names: what the URL asks for, and what a handshake needs.
//!
//! The options of a URL have the meaning of the engine's own client library. If that would silently do less than
//! requested (a file that does not exist, a Unix socket), the URL is refused instead. Certificates and keys are read
//! with the URL, so that errors in them are reported before anything is touched. One verifier checks the certificates of
//! all servers.
//!
//! Deliberately not here: revocation lists, keys with a passphrase, TLS below 1.2. Managed servers use no TLS: they are
//! reached over a Unix socket or the loopback interface, where encryption would be measured as the database's time.

mod configuration;
mod encryption;
mod failure;
mod handshake;
mod identity;
mod material;
mod options;
mod probe;
mod verifier;

pub use configuration::Tls;
pub use encryption::Encryption;
pub(crate) use failure::{TlsFailure, describe, plain, refusal};
pub(crate) use handshake::handshake;
pub(crate) use identity::{digest_for_channel_binding, public_key};
pub(crate) use material::Material;
pub(crate) use options::{MARIADB_WORDS, POSTGRES_WORDS};
pub use options::{Roots, TlsMode, TlsOptions, Verification};
pub use probe::encryption;
