//! TLS of sessions with databases that a URL names: what the URL asks for, and what a handshake needs.
//!
//! The options of a URL have the meaning of the engine's own client library. If that would silently do less than
//! requested (a file that does not exist, a Unix socket), the URL is refused instead. Certificates and keys are read
//! with the URL, so that errors in them are reported before anything is touched. One verifier checks the certificates of
//! all servers.
//!
//! Deliberately not here: revocation lists, keys with a passphrase, TLS below 1.2. Managed servers use no TLS: they are
//! reached over a Unix socket or the loopback interface, where encryption would be measured as the database's time.

mod encryption;
mod failure;
mod handshake;
mod identity;
mod material;
mod options;
mod verifier;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::error::TargetError;

pub use encryption::{Encryption, encryption};
pub(crate) use failure::{TlsFailure, describe, plain, refusal};
pub(crate) use handshake::handshake;
pub(crate) use identity::{digest_for_channel_binding, public_key};
pub(crate) use material::Material;
pub(crate) use options::{MARIADB_WORDS, POSTGRES_WORDS, Words};
pub use options::{Roots, TlsMode, TlsOptions, Verification};

/// What a target's sessions do about TLS.
///
/// Equality and `Debug` look at what was asked for, never at keys.
#[derive(Clone)]
pub struct Tls {
    options: TlsOptions,
    material: Option<Arc<Material>>,
}

impl Tls {
    /// Sessions that never use TLS.
    pub fn disabled() -> Tls {
        Tls { options: TlsOptions::default(), material: None }
    }

    /// Reads the files that `options` name, and those of `home` that the engine's own client would look at.
    pub(crate) fn new(
        options: TlsOptions,
        words: &Words,
        home: Option<&Path>,
    ) -> Result<Tls, TargetError> {
        if options.mode == TlsMode::Disable {
            return Ok(Tls::disabled());
        }
        let material = Material::read(&options, words, home)?;
        Ok(Tls { options, material: Some(Arc::new(material)) })
    }

    /// What was asked for.
    pub fn options(&self) -> &TlsOptions {
        &self.options
    }

    /// What a handshake needs; none where there will be no handshake.
    pub(crate) fn material(&self) -> Option<&Arc<Material>> {
        self.material.as_ref()
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Tls) -> bool {
        self.options == other.options
    }
}

impl Eq for Tls {}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}
