//! What the sessions of one target do about TLS: what was asked for, and what a handshake needs. Handshakes are not made here.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::material::Material;
use super::options::{TlsMode, TlsOptions, Words};
use crate::error::TargetError;

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
