//! What is read from a certificate beyond verifying it.

use rustls::pki_types::{CertificateDer, UnixTime};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Begin and end of a certificate's validity; none when it cannot be read.
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Option<(UnixTime, UnixTime)> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate().validity();
    Some((
        UnixTime::since_unix_epoch(validity.not_before.to_unix_duration()),
        UnixTime::since_unix_epoch(validity.not_after.to_unix_duration()),
    ))
}

/// The bits of a certificate's public key, which signatures are verified with.
pub(crate) fn public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let key = certificate.tbs_certificate().subject_public_key_info();
    Some(key.subject_public_key.raw_bytes().to_vec())
}

/// The certificate's digest by which a password exchange is bound to a session (`tls-server-end-point`, RFC 5929): with
/// the hash function of the certificate's own signature, but SHA-256 for MD5 and SHA-1. None where there is no single one,
/// as for Ed25519; the exchange is then not bound.
pub(crate) fn digest_for_channel_binding(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    match parsed.signature_algorithm().oid.to_string().as_str() {
        // RSA with MD5, SHA-1, SHA-256; ECDSA with SHA-1, SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Some(Sha256::digest(certificate).to_vec()),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => {
            Some(Sha384::digest(certificate).to_vec())
        }
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => {
            Some(Sha512::digest(certificate).to_vec())
        }
        _ => None,
    }
}
