//! Why a TLS session could not be established, with a remedy.

use std::error::Error;
use std::{fmt, io};

use rustls::{AlertDescription, CertificateError};

/// No root vouches for a certificate.
#[derive(Debug, thiserror::Error)]
#[error(
    "no certificate in {roots} issued it (unknown issuer): name the issuer's certificate, or its own if it is \
     self-signed"
)]
pub(super) struct Untrusted {
    pub roots: String,
}

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum TlsFailure {
    /// The connection ended on the way.
    Lost(io::Error),
    /// One of the two sides refused the other.
    Refused(String),
}

impl TlsFailure {
    /// From what the handshake of `host` ended with.
    pub fn of(error: io::Error, host: &str) -> TlsFailure {
        match refusal(&error) {
            Some(refused) => TlsFailure::Refused(describe(refused, host)),
            None => TlsFailure::Lost(error),
        }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFailure::Lost(error) => {
                write!(
                    f,
                    "the connection ended during the TLS handshake: {}",
                    plain(&error.to_string())
                )
            }
            TlsFailure::Refused(text) => f.write_str(text),
        }
    }
}

impl Error for TlsFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TlsFailure::Lost(error) => Some(error),
            TlsFailure::Refused(_) => None,
        }
    }
}

/// What TLS itself said, if it was TLS that ended a connection.
pub(crate) fn refusal(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// In words.
pub(crate) fn describe(error: &rustls::Error, host: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(reason) => {
            format!("the server's certificate is not accepted: {}", of_certificate(reason, host))
        }
        rustls::Error::AlertReceived(alert) => of_alert(*alert),
        rustls::Error::PeerIncompatible(reason) => format!(
            "client and server have no TLS version or cipher in common: enable TLS 1.2 or 1.3 with AES-GCM or \
             ChaCha20 on the server ({reason:?})"
        ),
        error => format!("the TLS handshake failed: {error}"),
    }
}

/// What a server means by an alert and what can be done; its name in the protocol is what the server's log has.
fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    let (meaning, remedy) = match alert {
        Alert::CertificateRequired => {
            return "the server requires a client certificate: name one, and its private key"
                .to_string();
        }
        Alert::UnknownCA => (
            "the server does not trust the issuer of the client's certificate",
            "name one whose issuer it trusts, or add the issuer to those that it trusts",
        ),
        Alert::CertificateExpired => {
            ("the client's certificate has expired", "renew it, or name another one")
        }
        Alert::CertificateRevoked => ("the client's certificate was revoked", "name another one"),
        Alert::BadCertificate
        | Alert::CertificateUnknown
        | Alert::UnsupportedCertificate
        | Alert::AccessDenied => (
            "the server does not accept the client's certificate",
            "name another one; the server's log says what is wrong with it",
        ),
        Alert::ProtocolVersion => {
            ("the server supports neither TLS 1.2 nor 1.3", "enable one of them on the server")
        }
        Alert::HandshakeFailure | Alert::InsufficientSecurity => (
            "the server and this client have no cipher or group in common",
            "let the server accept AES-GCM or ChaCha20 of TLS 1.2 or 1.3; its log says more",
        ),
        Alert::UnrecognisedName => (
            "the server does not use the host name of the URL",
            "use the server's own name in the URL",
        ),
        Alert::NoApplicationProtocol => (
            "the server does not start TLS immediately",
            "omit sslnegotiation=direct, or use the port of a server that does",
        ),
        Alert::InternalError => ("the server failed during the TLS handshake", "see its log"),
        _ => ("the server refused the TLS handshake", "see its log"),
    };
    format!("{meaning}: {remedy} (alert {alert:?})")
}

/// A name in a certificate without what the library puts around it: `DnsName("h")` and `IpAddress(10.0.0.1)`.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(name, |inner| inner.trim_matches('"'))
}

/// A message without the library's address of its manual, which is for programmers.
pub(crate) fn plain(message: &str) -> &str {
    message.split_once(": https://docs.rs/").map_or(message, |(said, _)| said)
}

fn of_certificate(reason: &CertificateError, host: &str) -> String {
    const DAY_S: u64 = 86_400;
    match reason {
        CertificateError::ExpiredContext { time, not_after } => format!(
            "it expired {} days ago",
            time.as_secs().saturating_sub(not_after.as_secs()) / DAY_S
        ),
        CertificateError::Expired => "it expired".to_string(),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it becomes valid only in {} days (or the clock of this host is wrong)",
            not_before.as_secs().saturating_sub(time.as_secs()).div_ceil(DAY_S)
        ),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            format!(
                "it has no host name in subjectAltName, so it is not valid for `{host}` (the common name is not used)"
            )
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            format!("it is for {}, not for `{host}` (name mismatch)", names.join(", "))
        }
        CertificateError::Other(reason) => reason.to_string(),
        reason => format!("{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use rustls::pki_types::UnixTime;
    use rustls::{AlertDescription, CertificateError, Error};

    use super::{TlsFailure, describe};

    #[test]
    fn reasons_are_said_in_words() {
        let at = |days: u64| UnixTime::since_unix_epoch(Duration::from_secs(days * 86_400));
        let expired = CertificateError::ExpiredContext { time: at(110), not_after: at(100) };
        assert!(describe(&expired.into(), "h").contains("expired 10 days ago"));
        let early = CertificateError::NotValidYetContext { time: at(1), not_before: at(3) };
        assert!(describe(&early.into(), "h").contains("in 2 days"));
        let name = rustls::pki_types::ServerName::try_from("h").unwrap();
        let presented =
            vec!["DnsName(\"localhost\")".to_string(), "IpAddress(10.0.0.1)".to_string()];
        let other = CertificateError::NotValidForNameContext { expected: name, presented };
        assert!(
            describe(&other.into(), "h").contains("it is for localhost, 10.0.0.1, not for `h`")
        );
        let asks = Error::AlertReceived(AlertDescription::CertificateRequired);
        assert!(describe(&asks, "h").contains("requires a client certificate"));
    }

    #[test]
    fn every_alert_says_what_it_means_and_what_to_do() {
        for number in 0..=u8::MAX {
            let alert = AlertDescription::from(number);
            let said = describe(&Error::AlertReceived(alert), "h");
            let (meaning, remedy) = said.split_once(": ").expect("a remedy");
            assert!(meaning.contains("server") || meaning.contains("client"), "{said}");
            assert!(!remedy.is_empty() && !meaning.contains(&format!("{alert:?}")), "{said}");
        }
        let old = describe(&Error::AlertReceived(AlertDescription::ProtocolVersion), "h");
        assert!(old.contains("neither TLS 1.2 nor 1.3"), "{old}");
    }

    #[test]
    fn a_lost_connection_is_not_a_refusal() {
        let lost = TlsFailure::of(io::Error::from(io::ErrorKind::ConnectionReset), "h");
        assert!(matches!(lost, TlsFailure::Lost(_)), "{lost}");
        let text = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/rustls/x";
        let lost = TlsFailure::of(io::Error::new(io::ErrorKind::UnexpectedEof, text), "h");
        assert!(lost.to_string().ends_with("close_notify"), "{lost}");
        let refused = Error::AlertReceived(AlertDescription::UnknownCA);
        let refused = TlsFailure::of(io::Error::new(io::ErrorKind::InvalidData, refused), "h");
        let said = "does not trust the issuer of the client's certificate: name one";
        assert!(refused.to_string().contains(said), "{refused}");
    }
}
