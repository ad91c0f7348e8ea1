//! Certificates of MariaDB and MySQL, verified by us in handshakes that the client library makes.
//!
//! The library's own verification depends on error texts if names are not to be checked, and does not support self-signed
//! servers. But it always verifies that the server has the key of its certificate, through the cryptography provider of the
//! process. There the key is compared with that of the certificate that our verifier has accepted: with another key the
//! handshake fails.
//!
//! Only code inside [`with_key`] is affected; other users of the process's cryptography are not.

use std::future::Future;
use std::sync::OnceLock;

use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};

tokio::task_local! {
    static EXPECTED: Vec<u8>;
}

/// One of the usual algorithms, for one key only where one is expected.
#[derive(Debug)]
struct ForExpectedKey(&'static dyn SignatureVerificationAlgorithm);

impl SignatureVerificationAlgorithm for ForExpectedKey {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        if EXPECTED.try_with(|expected| expected != public_key).unwrap_or(false) {
            return Err(InvalidSignature);
        }
        self.0.verify_signature(public_key, message, signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.0.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.0.signature_alg_id()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

/// Runs `work`; handshakes in it can be finished only by who has the key `expected`.
pub(super) async fn with_key<T>(expected: Vec<u8>, work: impl Future<Output = T>) -> T {
    EXPECTED.scope(expected, work).await
}

/// Makes this the process's cryptography. False if another library was first; keys would then not be checked.
pub(super) fn install() -> bool {
    static IS_OURS: OnceLock<bool> = OnceLock::new();
    *IS_OURS.get_or_init(|| {
        let usual = ring::default_provider();
        let algorithms = usual.signature_verification_algorithms;
        // For as long as the process lives, once.
        let ours = |usual: &[&'static dyn SignatureVerificationAlgorithm]| {
            let wrapped = usual.iter().map(|&algorithm| {
                let wrapped: &'static ForExpectedKey =
                    Box::leak(Box::new(ForExpectedKey(algorithm)));
                wrapped as &'static dyn SignatureVerificationAlgorithm
            });
            &*wrapped.collect::<Vec<_>>().leak()
        };
        let mapping: Vec<_> =
            algorithms.mapping.iter().map(|(scheme, usual)| (*scheme, ours(usual))).collect();
        let provider = CryptoProvider {
            signature_verification_algorithms: WebPkiSupportedAlgorithms {
                all: ours(algorithms.all),
                mapping: mapping.leak(),
            },
            ..usual
        };
        provider.install_default().is_ok()
    })
}
