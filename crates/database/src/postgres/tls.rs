//! TLS under PostgreSQL's protocol, with libpq's meaning of `sslmode`, and channel binding.
//!
//! The client library negotiates. This decides what happens if TLS is not established, or if the server accepts a login
//! only with TLS or only without it.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use rustls::{ClientConnection, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream as IsTlsStream};
use tokio_postgres::{Client, Config, Connection, Error, Socket};

use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::tls::{
    Encryption, Material, TlsFailure, TlsMode, digest_for_channel_binding, handshake,
};

/// A connection that may be encrypted.
pub type MaybeTlsConnection = Connection<Socket, TlsStream>;

/// An encrypted stream. In a box: sessions without TLS shall not carry its size.
pub struct TlsStream(Box<tokio_rustls::client::TlsStream<Socket>>);

/// Makes the handshakes of one attempt to connect.
#[derive(Clone)]
struct Handshakes {
    material: Option<Arc<Material>>,
    /// What the latest one agreed on.
    agreed: Arc<Mutex<Option<Encryption>>>,
}

struct Handshake {
    with: Handshakes,
    host: String,
}

/// Connects as `target` says, with the further parameters of `config`.
///
/// # Errors
/// Those of the client library. An error of TLS has a source that says why.
pub async fn connect(
    target: &Target,
    config: &Config,
) -> Result<(Client, MaybeTlsConnection), Error> {
    connect_with_encryption(target, config)
        .await
        .map(|(client, connection, _)| (client, connection))
}

/// A client, its connection, and how that is encrypted.
type Connected = (Client, MaybeTlsConnection, Option<Encryption>);

async fn connect_with_encryption(target: &Target, config: &Config) -> Result<Connected, Error> {
    let attempts = Attempts::of(target);
    match attempt(target, config, attempts.first).await {
        (Ok(connected), _) => Ok(connected),
        (Err(error), is_encrypted) => match attempts.after(Some(&error), is_encrypted) {
            None => Err(error),
            Some(mode) => match attempt(target, config, mode).await.0 {
                Err(second) if is_not_let_in(&second) => Err(error),
                outcome => outcome,
            },
        },
    }
}

/// One attempt, and whether TLS was established.
async fn attempt(
    target: &Target,
    config: &Config,
    mode: SslMode,
) -> (Result<Connected, Error>, bool) {
    let material = target.tls.material().cloned();
    let handshakes = Handshakes { material, agreed: Arc::new(Mutex::new(None)) };
    let mut config = config.clone();
    let connected = config.ssl_mode(mode).connect(handshakes.clone()).await;
    let agreed = handshakes.agreed();
    let is_encrypted = agreed.is_some();
    (connected.map(|(client, connection)| (client, connection, agreed)), is_encrypted)
}

/// The one or two attempts that a target's mode asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    /// How to try first.
    pub first: SslMode,
    second: Option<SslMode>,
}

impl Attempts {
    pub(super) fn of(target: &Target) -> Attempts {
        let (first, second) = match target.tls.options().mode {
            TlsMode::Disable => (SslMode::Disable, None),
            TlsMode::Allow => (SslMode::Disable, Some(SslMode::Require)),
            TlsMode::Prefer => (SslMode::Prefer, Some(SslMode::Disable)),
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => (SslMode::Require, None),
        };
        Attempts { first, second }
    }

    /// How to try again after the client library's error, if it was one: the server refuses the session as it is, or the
    /// two cannot agree on TLS. If the second attempt is not let in either, what the first met is what was wanted.
    pub(super) fn after(self, error: Option<&Error>, is_encrypted: bool) -> Option<SslMode> {
        let error = error?;
        let again = match self.first {
            SslMode::Prefer => is_tls_failure(error) || (is_not_let_in(error) && is_encrypted),
            _ => is_not_let_in(error),
        };
        self.second.filter(|_| again)
    }
}

/// Whether the server's rules let this session not in.
pub(super) fn is_not_let_in(error: &Error) -> bool {
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// How a session of `target` is encrypted, as this side of it knows: a proxy's server would speak of another session.
pub(crate) async fn encryption(target: &Target) -> Result<Option<Encryption>, SessionError> {
    let (client, mut connection, agreed) = connect_with_encryption(target, &target.config())
        .await
        .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
    // Taking leave is the client's last message.
    drop(client);
    let _it_ends_anyway =
        std::future::poll_fn(|context| Pin::new(&mut connection).poll(context)).await;
    Ok(agreed)
}

fn is_tls_failure(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<TlsFailure>())
}

impl Handshakes {
    fn agreed(&self) -> Option<Encryption> {
        self.agreed.lock().expect("no holder of this lock panics").clone()
    }
}

impl MakeTlsConnect<Socket> for Handshakes {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = TlsFailure;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, TlsFailure> {
        Ok(Handshake { with: self.clone(), host: host.to_string() })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = TlsFailure;
    type Future = Pin<Box<dyn Future<Output = Result<TlsStream, TlsFailure>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Handshake { with, host } = self;
            let material = with.material.ok_or_else(|| {
                TlsFailure::Refused("TLS is switched off for this database".to_string())
            })?;
            let stream = handshake(&material, &host, socket).await?;
            let session = stream.get_ref().1;
            let encryption = Encryption {
                protocol: match session.protocol_version() {
                    Some(ProtocolVersion::TLSv1_3) => "TLSv1.3".to_string(),
                    Some(ProtocolVersion::TLSv1_2) => "TLSv1.2".to_string(),
                    other => format!("{other:?}"),
                },
                cipher: session
                    .negotiated_cipher_suite()
                    .and_then(|suite| suite.suite().as_str())
                    .unwrap_or("unknown")
                    .replace("TLS13_", "TLS_"),
                verified: material.verification,
            };
            *with.agreed.lock().expect("no holder of this lock panics") = Some(encryption);
            Ok(TlsStream(Box::new(stream)))
        })
    }
}

/// What binds the exchange of the password to a session.
pub(super) fn channel_binding(session: &ClientConnection) -> ChannelBinding {
    session
        .peer_certificates()
        .and_then(<[_]>::first)
        .and_then(digest_for_channel_binding)
        .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
}

impl IsTlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        channel_binding(self.0.get_ref().1)
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
