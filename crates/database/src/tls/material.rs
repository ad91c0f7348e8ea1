//! Certificates and keys, read once per URL.
//!
//! No error says anything about the contents of a key, except that it is not a key.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use underlay_host::read_small_file;

use super::options::{Roots, TlsMode, TlsOptions, Verification, Words, unsatisfiable};
use super::verifier::Verifier;
use crate::error::TargetError;

/// What handshakes need, and what they taught.
pub(crate) struct Material {
    /// For a handshake of ours.
    pub config: Arc<ClientConfig>,
    /// What of the server's certificate is verified.
    pub verification: Verification,
    /// Chain and key of the client, in PEM, for a library that makes handshakes itself.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// MariaDB's: the public key of the certificate that was verified; see `mariadb::tls`.
    pub verified_key: Mutex<Option<Vec<u8>>>,
    /// MariaDB's: the server turned out to offer no TLS, so that asking again only costs.
    pub is_not_offered: AtomicBool,
}

impl Material {
    /// Reads what `options` name.
    pub(super) fn read(
        options: &TlsOptions,
        words: &Words,
        home: Option<&Path>,
    ) -> Result<Material, TargetError> {
        let at_home = |index: usize| {
            let path = home?.join(words.at_home?[index]);
            path.exists().then_some(path)
        };
        let roots = options.roots.clone().or_else(|| at_home(0).map(Roots::File));
        let verification = options.verification(roots.is_some());
        if verification != Verification::Nothing && roots.is_none() {
            return Err(no_roots(options.mode, words));
        }
        let (store, listed) = match &roots {
            Some(roots) => trusted(roots, words)?,
            None => (RootCertStore::empty(), Vec::new()),
        };
        let certificate = options.certificate.clone().or_else(|| at_home(1));
        let identity = match certificate {
            None => None,
            Some(certificate) => {
                let key = options.key.clone().or_else(|| at_home(2)).ok_or_else(|| {
                    unsatisfiable(format!(
                        "the client certificate has no private key: name it with `{}`",
                        words.key
                    ))
                })?;
                Some(client_identity(&certificate, &key, words)?)
            }
        };
        let provider = Arc::new(ring::default_provider());
        let trust = roots.as_ref().map_or_else(String::new, |roots| match roots {
            Roots::System => "the system's roots".to_string(),
            Roots::File(path) => path.display().to_string(),
        });
        let verifier = Verifier::new(verification, store, listed, trust, &provider);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unsatisfiable(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(|error| {
                    unsatisfiable(format!(
                        "`{}` and `{}` do not belong together: {error}",
                        words.certificate, words.key
                    ))
                })?,
        };
        config.alpn_protocols =
            words.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Material {
            config: Arc::new(config),
            verification,
            identity: identity.map(|identity| identity.pem),
            verified_key: Mutex::new(None),
            is_not_offered: AtomicBool::new(false),
        })
    }
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pem: (Vec<u8>, Vec<u8>),
}

fn no_roots(mode: TlsMode, words: &Words) -> TargetError {
    let word = words.modes.iter().find(|(_, known)| *known == mode).map_or("", |(word, _)| word);
    let elsewhere =
        words.at_home.map_or_else(String::new, |files| format!(", put it into ~/{}", files[0]));
    unsatisfiable(format!(
        "`{}={word}` verifies the server's certificate, but no trusted issuer is known: name the issuer's certificate \
         with `{}=FILE`{elsewhere}, or trust the system's roots with `{}=system`",
        words.mode, words.roots, words.roots
    ))
}

/// The anchors, and their certificates as they stand in the file.
fn trusted(
    roots: &Roots,
    words: &Words,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TargetError> {
    let mut store = RootCertStore::empty();
    let listed = match roots {
        Roots::System => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
            if store.is_empty() {
                return Err(unsatisfiable(format!(
                    "the system has no trusted roots that can be read: name a file with `{}`",
                    words.roots
                )));
            }
            Vec::new()
        }
        Roots::File(path) => {
            let listed = certificates(path, words.roots)?;
            for certificate in &listed {
                store.add(certificate.clone()).map_err(|error| {
                    unsatisfiable(format!(
                        "`{}` ({}) contains a certificate that cannot verify others: {error}",
                        words.roots,
                        path.display()
                    ))
                })?;
            }
            listed
        }
    };
    Ok((store, listed))
}

fn read(path: &Path, option: &str) -> Result<Vec<u8>, TargetError> {
    read_small_file(path).map_err(|error| {
        unsatisfiable(format!("`{option}` ({}) cannot be read: {error}", path.display()))
    })
}

fn certificates(path: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, TargetError> {
    let text = read(path, option)?;
    let listed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match listed {
        Ok(listed) if !listed.is_empty() => Ok(listed),
        _ => Err(unsatisfiable(format!(
            "`{option}` ({}) holds no certificate in PEM",
            path.display()
        ))),
    }
}

fn client_identity(
    certificate: &Path,
    key_file: &Path,
    words: &Words,
) -> Result<Identity, TargetError> {
    let chain = certificates(certificate, words.certificate)?;
    let key_text = read(key_file, words.key)?;
    let key = PrivateKeyDer::from_pem_slice(&key_text).map_err(|_| {
        // What the parser says can quote the text.
        let is_locked = key_text.windows(9).any(|text| text == b"ENCRYPTED");
        unsatisfiable(format!(
            "`{}` ({}) {}",
            words.key,
            key_file.display(),
            match is_locked {
                true => "is encrypted with a passphrase: decrypt a copy of it (openssl pkey -in ... -out ...)",
                false => "holds no private key in PEM",
            }
        ))
    })?;
    if words.private_keys {
        require_private(key_file, words)?;
    }
    let pem = (read(certificate, words.certificate)?, key_text);
    Ok(Identity { chain, key, pem })
}

/// libpq's rule: only the owner may read it, or root and a group.
fn require_private(path: &Path, words: &Words) -> Result<(), TargetError> {
    let metadata = fs::metadata(path).map_err(|error| {
        unsatisfiable(format!("`{}` ({}) cannot be read: {error}", words.key, path.display()))
    })?;
    let forbidden = if metadata.uid() == 0 { 0o027 } else { 0o077 };
    match metadata.permissions().mode() & forbidden {
        0 => Ok(()),
        _ => Err(unsatisfiable(format!(
            "`{}` ({}) can be read by other users: run chmod 0600 on it",
            words.key,
            path.display()
        ))),
    }
}
