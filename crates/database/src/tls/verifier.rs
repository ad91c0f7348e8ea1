//! The verifier of server certificates.
//!
//! Signatures of the handshake are always verified, so the server has the key of the certificate that it presented.
//! What the certificate itself has to prove depends on [`Verification`].

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

use super::failure::Untrusted;
use super::identity::validity;
use super::options::Verification;

/// Judges by the roots that it was given.
#[derive(Debug)]
pub(super) struct Verifier {
    verification: Verification,
    roots: RootCertStore,
    /// The certificates of the roots' file: a server may show one of them itself.
    listed: Vec<CertificateDer<'static>>,
    /// What the roots are called.
    trust: String,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(
        verification: Verification,
        roots: RootCertStore,
        listed: Vec<CertificateDer<'static>>,
        trust: String,
        provider: &CryptoProvider,
    ) -> Verifier {
        let algorithms = provider.signature_verification_algorithms;
        Verifier { verification, roots, listed, trust, algorithms }
    }

    /// A server that signs its own certificate shows the root itself, which is trusted as long as it is valid.
    fn is_listed(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<bool, Error> {
        if !self.listed.iter().any(|listed| listed == certificate) {
            return Ok(false);
        }
        let (not_before, not_after) = validity(certificate).ok_or(CertificateError::BadEncoding)?;
        if now > not_after {
            return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
        }
        if now < not_before {
            return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
        }
        Ok(true)
    }
}

/// Issued by an unknown authority, or the certificate of an authority that is not among the roots.
fn is_of_nobody(reason: &CertificateError) -> bool {
    match reason {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(reason) => reason.to_string() == "CaUsedAsEndEntity",
        _ => false,
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.verification == Verification::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = ParsedCertificate::try_from(certificate)?;
        if !self.is_listed(certificate, now)? {
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &self.roots,
                intermediates,
                now,
                self.algorithms.all,
            )
            .map_err(|error| match error {
                // With whom it was compared is known here alone.
                Error::InvalidCertificate(reason) if is_of_nobody(&reason) => {
                    let reason = Untrusted { roots: self.trust.clone() };
                    CertificateError::Other(OtherError(Arc::new(reason))).into()
                }
                error => error,
            })?;
        }
        if self.verification == Verification::Name {
            verify_server_name(&parsed, host)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
