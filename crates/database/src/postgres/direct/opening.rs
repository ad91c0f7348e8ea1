//! How a connection is opened: by the client library, which then hands over the socket.
//!
//! The library does start-up, authentication and channel binding; TLS is put under it by ours, as the target says.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use crate::error::{CommitState, ErrorClass, SessionError};
use crate::postgres::tls::{Attempts, channel_binding, is_not_let_in};
use crate::target::{Address, Target};
use crate::tls::TlsFailure;
use crate::transport::Socket;

/// The socket of a connection that is ready for requests.
pub(super) async fn socket(target: &Target) -> Result<Socket, SessionError> {
    let attempts = Attempts::of(target);
    let opened = match open(target, attempts.first).await {
        (Ok(socket), _) => Ok(socket),
        (Err(error), is_encrypted) => match attempts.after(error.library(), is_encrypted) {
            None => Err(error),
            Some(mode) => match open(target, mode).await.0 {
                Err(second) if second.library().is_some_and(is_not_let_in) => Err(error),
                outcome => outcome,
            },
        },
    };
    opened.map_err(|error| match error {
        OpenError::Library(error) => SessionError::from_postgres(&error, CommitState::NotSent),
        OpenError::Session(error) => error,
    })
}

/// Why a connection could not be opened.
enum OpenError {
    /// By the library, or by the server.
    Library(tokio_postgres::Error),
    /// Before TLS was established.
    Session(SessionError),
}

impl OpenError {
    fn library(&self) -> Option<&tokio_postgres::Error> {
        match self {
            OpenError::Library(error) => Some(error),
            OpenError::Session(_) => None,
        }
    }
}

/// Opens a connection with or without TLS; also returns whether TLS was established.
async fn open(target: &Target, mode: SslMode) -> (Result<Socket, OpenError>, bool) {
    let connected = match &target.address {
        Address::Tcp(host) => Socket::tcp(host, target.port, target.connect_timeout).await,
        Address::UnixSocket(directory) => {
            let path = directory.join(format!(".s.PGSQL.{}", target.port));
            Socket::unix(&path, target.connect_timeout).await
        }
    };
    let socket = match connected {
        Ok(socket) => socket,
        Err(error) => {
            let error = SessionError {
                class: ErrorClass::ConnectionLost,
                sqlstate: None,
                message: format!("error connecting to server: {error}"),
                commit_unknown: false,
            };
            return (Err(OpenError::Session(error)), false);
        }
    };
    let lent = Lent(Arc::new(Mutex::new(Some(socket))));
    let mut config = target.config();
    let handshake = config.ssl_mode(mode).connect_raw(lent.clone(), Encrypting(target.clone()));
    let ended = tokio::time::timeout(target.connect_timeout, handshake).await;
    let is_encrypted = lent.with(|socket| Ok(socket.is_encrypted())).unwrap_or(false);
    let opened = match ended {
        Err(_) => Err(OpenError::Session(SessionError {
            class: ErrorClass::ConnectionLost,
            ..SessionError::client_timeout(
                "the connection",
                target.connect_timeout,
                CommitState::NotSent,
            )
        })),
        Ok(Err(error)) => Err(OpenError::Library(error)),
        // The server has said that it is ready; what it sends unasked from here on is looked at before the next
        // request.
        Ok(Ok(library)) => {
            drop(library);
            Ok(lent.take().expect("the library has dropped its share with the connection"))
        }
    };
    (opened, is_encrypted)
}

/// A socket that is lent to the library while it opens the connection. While a handshake of TLS is made, it is not here.
#[derive(Clone, Debug)]
struct Lent(Arc<Mutex<Option<Socket>>>);

impl Lent {
    fn take(&self) -> Option<Socket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give_back(&self, socket: Socket) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    }

    fn with<T>(&self, action: impl FnOnce(&mut Socket) -> io::Result<T>) -> io::Result<T> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(socket) => action(socket),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn poll<T>(
        &self,
        action: impl FnOnce(Pin<&mut Socket>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(socket) => action(Pin::new(socket)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

/// Puts TLS under what was lent when the library has agreed on it with the server.
struct Encrypting(Target);

impl TlsConnect<Lent> for Encrypting {
    type Stream = Lent;
    type Error = TlsFailure;
    type Future = Pin<Box<dyn Future<Output = Result<Lent, TlsFailure>> + Send>>;

    fn connect(self, lent: Lent) -> Self::Future {
        Box::pin(async move {
            let off = || TlsFailure::Refused("TLS is switched off for this database".to_string());
            let (Some(material), Address::Tcp(host)) = (self.0.tls.material(), &self.0.address)
            else {
                return Err(off());
            };
            let socket = lent.take().ok_or_else(off)?;
            lent.give_back(socket.encrypt(material, host).await?);
            Ok(lent)
        })
    }
}

impl TlsStream for Lent {
    fn channel_binding(&self) -> ChannelBinding {
        let binding = self.with(|socket| {
            Ok(match socket {
                Socket::Tls(stream) => channel_binding(stream.get_ref().1),
                Socket::Tcp(_) | Socket::Unix(_) => ChannelBinding::none(),
            })
        });
        binding.unwrap_or_else(|_| ChannelBinding::none())
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(|socket| socket.poll_read(context, buffer))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(|socket| socket.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|socket| socket.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|socket| socket.poll_shutdown(context))
    }
}
