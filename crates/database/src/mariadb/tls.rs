//! TLS under the protocol of MariaDB and MySQL, with MySQL's meaning of `ssl-mode`.
//!
//! The client library makes the handshakes of sessions. Where a certificate is to be verified, a handshake of ours
//! comes first, once per target: our verifier checks the certificate, and sessions must then use its key.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mysql_async::{ClientIdentity, Conn, DriverError, Error, Opts, OptsBuilder, SslOpts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::pinned_key;
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::target::{Address, Target};
use crate::tls::{
    Material, TlsFailure, TlsMode, Verification, describe, handshake, public_key, refusal,
};

/// The capability bit of a server that speaks TLS.
const CLIENT_SSL: u32 = 0x0800;
/// What is announced with a request for TLS: protocol of 4.1, TLS, authentication of 4.1 and by plugins. The login, which
/// would say more, does not follow.
const CAPABILITIES: u32 = 0x0200 | CLIENT_SSL | 0x8000 | 0x0008_0000;
/// utf8mb4_general_ci.
const CHARACTER_SET: u8 = 45;

/// Connects with what `options` and the target say.
pub(super) async fn connect(target: &Target, options: OptsBuilder) -> Result<Conn, SessionError> {
    let not_sent = |error: Error| explained(error, target);
    let Some(material) = target.tls.material() else {
        return Conn::new(options).await.map_err(not_sent);
    };
    let is_preferred = target.tls.options().mode == TlsMode::Prefer;
    if is_preferred && material.is_not_offered.load(Ordering::Relaxed) {
        return Conn::new(options).await.map_err(not_sent);
    }
    if !pinned_key::install() {
        return Err(refused("another library of this process took over TLS".to_string()));
    }
    let encrypted: Opts = options.clone().ssl_opts(ssl_options(material)).into();
    let connecting = async |encrypted| match verified_key(target, material).await {
        Ok(None) => Conn::new(encrypted).await.map_err(not_sent),
        Ok(Some(key)) => pinned_key::with_key(key, Conn::new(encrypted)).await.map_err(not_sent),
        Err(error) => Err(error),
    };
    match connecting(encrypted.clone()).await {
        Err(error) if error.message == NOT_OFFERED && is_preferred => {
            material.is_not_offered.store(true, Ordering::Relaxed);
            Conn::new(options).await.map_err(not_sent)
        }
        // The server may have a new certificate by now, so it is verified again, once.
        Err(error) if error.message.contains("BadSignature") => {
            material.verified_key.lock().expect("no holder of this lock panics").take();
            connecting(encrypted).await
        }
        outcome => outcome,
    }
}

pub(super) const NOT_OFFERED: &str = "the server does not offer TLS, which the URL demands: enable it on the server \
                           (ssl_cert, ssl_key), or write `ssl-mode=preferred` or `disabled`";

/// Nothing is verified by the library itself but that the server has the key of its certificate.
fn ssl_options(material: &Material) -> SslOpts {
    let identity =
        material.identity.clone().map(|(chain, key)| ClientIdentity::new(chain.into(), key.into()));
    SslOpts::default().with_danger_accept_invalid_certs(true).with_client_identity(identity)
}

/// The key that sessions are held to; none where nothing is verified.
async fn verified_key(
    target: &Target,
    material: &Arc<Material>,
) -> Result<Option<Vec<u8>>, SessionError> {
    if material.verification == Verification::Nothing {
        return Ok(None);
    }
    let known = material.verified_key.lock().expect("no holder of this lock panics").clone();
    if known.is_some() {
        return Ok(known);
    }
    let key = verify(target, material).await?;
    material.verified_key.lock().expect("no holder of this lock panics").replace(key.clone());
    Ok(Some(key))
}

/// Makes a handshake, and leaves. Returns the key of the certificate that our verifier accepted.
async fn verify(target: &Target, material: &Material) -> Result<Vec<u8>, SessionError> {
    let Address::Tcp(host) = &target.address else {
        return Err(refused("a Unix socket has no TLS".to_string()));
    };
    let lost = |error: std::io::Error| SessionError {
        class: ErrorClass::ConnectionLost,
        ..refused(format!("could not ask the server for TLS: {error}"))
    };
    let mut stream = TcpStream::connect((host.as_str(), target.port)).await.map_err(lost)?;
    let greeting = read_packet(&mut stream).await.map_err(lost)?;
    match capabilities(&greeting) {
        Some(offered) if offered & CLIENT_SSL != 0 => {}
        Some(_) => return Err(refused(NOT_OFFERED.to_string())),
        // An error packet (too many connections, a blocked host), or no such server at all.
        None => {
            return Err(refused(match greeting.split_first() {
                Some((0xff, said)) => {
                    let text = String::from_utf8_lossy(said.get(2..).unwrap_or_default());
                    format!("the server refused the connection: {text}")
                }
                _ => "the server is neither MariaDB nor MySQL".to_string(),
            }));
        }
    }
    stream.write_all(&request()).await.map_err(lost)?;
    let mut session = handshake(material, host, stream).await.map_err(|error| match error {
        TlsFailure::Lost(error) => lost(error),
        failure => refused(failure.to_string()),
    })?;
    let key = session
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first)
        .and_then(public_key)
        .ok_or_else(|| refused("the server's certificate cannot be read".to_string()))?;
    // It is only taken leave of: that it may be gone already changes nothing.
    let _gone = session.shutdown().await;
    Ok(key)
}

/// A packet's payload: three bytes of length, one of sequence.
async fn read_packet(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await?;
    Ok(payload)
}

/// What a server's greeting (version 10) says it can do: its low half follows the version's text, the connection's number
/// (4), the first part of the nonce (8) and a zero; the high half three bytes later.
fn capabilities(greeting: &[u8]) -> Option<u32> {
    let (10, rest) = greeting.split_first()? else { return None };
    let low = rest.iter().position(|byte| *byte == 0)? + 1 + 4 + 8 + 1;
    let half =
        |at: usize| Some(u32::from(u16::from_le_bytes([*rest.get(at)?, *rest.get(at + 1)?])));
    Some(half(low)? | half(low + 2 + 3)? << 16)
}

/// The packet that asks for TLS: capabilities, longest packet, character set, 23 zeros.
fn request() -> Vec<u8> {
    let mut packet = vec![32, 0, 0, 1];
    packet.extend(CAPABILITIES.to_le_bytes());
    packet.extend((16u32 << 20).to_le_bytes());
    packet.push(CHARACTER_SET);
    packet.extend([0; 23]);
    packet
}

/// The library's error, in words where it is about TLS.
fn explained(error: Error, target: &Target) -> SessionError {
    let host = match &target.address {
        Address::Tcp(host) => host.as_str(),
        Address::UnixSocket(_) => "",
    };
    match &error {
        Error::Driver(DriverError::NoClientSslFlagFromServer) => refused(NOT_OFFERED.to_string()),
        Error::Io(mysql_async::IoError::Io(inner)) => match refusal(inner) {
            Some(reason) => refused(describe(reason, host)),
            None => SessionError::from_mariadb(&error, CommitState::NotSent),
        },
        Error::Io(mysql_async::IoError::Tls(reason)) => refused(format!("TLS failed: {reason}")),
        _ => SessionError::from_mariadb(&error, CommitState::NotSent),
    }
}

/// An error that another attempt will not mend.
fn refused(message: String) -> SessionError {
    SessionError { class: ErrorClass::Other, sqlstate: None, message, commit_unknown: false }
}

#[cfg(test)]
mod tests {
    use super::{CLIENT_SSL, capabilities, request};

    #[test]
    fn reads_what_a_server_can_do() {
        let mut greeting = vec![10];
        greeting.extend(b"10.11.19-MariaDB\0");
        greeting.extend([7; 4 + 8]);
        greeting.push(0);
        greeting.extend([0x00, 0x08, 45, 2, 0, 0x34, 0x12]);
        assert_eq!(capabilities(&greeting), Some(0x1234_0800));
        assert!(capabilities(&greeting).unwrap() & CLIENT_SSL != 0);
        for length in 0..greeting.len() {
            assert_eq!(capabilities(&greeting[..length]), None);
        }
        assert_eq!(capabilities(b"\xff\x10\x04Too many connections"), None);
    }

    #[test]
    fn a_request_has_the_length_that_it_says() {
        assert_eq!(request().len(), 4 + 32);
    }
}
