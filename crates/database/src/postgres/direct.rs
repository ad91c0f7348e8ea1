//! A connection whose requests and answers are handled here and not by the client library.
//!
//! The library opens it: resolving, start-up and authentication are its business. Afterwards it lets go of the socket,
//! and what is left is the extended query protocol with one request in flight (PostgreSQL manual, chapter "Message
//! Flow"). The library's queues between client and connection cost as much processor time per statement as
//! everything else in user space: without them the load generator is as cheap as a peer written in C. It returns
//! counts of rows, not rows: workloads that look at what they read use [`Link`](super::link::Link).

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::BytesMut;
use postgres_protocol::IsNull as Null;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::types::{IsNull, ToSql, Type};

use crate::error::{CommitState, ErrorClass, SessionError};
use crate::postgres::tls::{Attempts, channel_binding, is_not_let_in};
use crate::target::{Address, Target};
use crate::tls::TlsFailure;
use crate::transport::{Socket, Transport};

/// The length that follows the tag of a message counts itself.
const HEADER_BYTES: usize = 5;

/// A connection.
#[derive(Debug)]
pub struct Direct {
    transport: Transport<Socket>,
    output: BytesMut,
    statements: u32,
    /// A request was sent whose answer nobody waited for.
    busy: bool,
}

/// A statement that the server has prepared.
#[derive(Clone, Debug)]
pub struct Prepared {
    name: String,
    types: &'static [Type],
}

/// Why a request failed.
#[derive(Debug)]
pub enum Failure {
    /// The server said so.
    Server(Report),
    /// The connection broke, or the server did not keep to its protocol.
    Broken(io::Error),
    /// It had broken before the request was sent.
    NotSent(Box<Failure>),
    /// A parameter does not fit its type.
    Parameter(Box<dyn std::error::Error + Sync + Send>),
}

/// An error as the server reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `ERROR`, `FATAL` or `PANIC`.
    pub severity: String,
    /// Five characters.
    pub code: String,
    /// What happened.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
}

impl Failure {
    /// The server's code, when the server answered.
    pub fn code(&self) -> Option<&str> {
        match self {
            Failure::Server(report) => Some(&report.code),
            Failure::NotSent(failure) => failure.code(),
            Failure::Broken(_) | Failure::Parameter(_) => None,
        }
    }

    /// In the words of all engines.
    pub fn into_session_error(self, commit: CommitState) -> SessionError {
        match self {
            Failure::Server(Report { severity, code, message, detail }) => {
                let ends_session = severity != "ERROR";
                let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
                let message = format!("{}: {message}{detail}", severity.to_lowercase());
                SessionError::of_report(&code, ends_session, message, commit)
            }
            Failure::NotSent(failure) => failure.into_session_error(CommitState::NotSent),
            Failure::Broken(error) => SessionError {
                class: ErrorClass::ConnectionLost,
                sqlstate: None,
                message: format!("error communicating with the server: {error}"),
                commit_unknown: commit == CommitState::InFlight,
            },
            Failure::Parameter(error) => SessionError {
                class: ErrorClass::Other,
                sqlstate: None,
                message: format!("a parameter does not fit its type: {error}"),
                commit_unknown: false,
            },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Broken(error)
    }
}

impl Direct {
    /// Connects.
    pub async fn connect(target: &Target) -> Result<Direct, SessionError> {
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
        let socket = opened.map_err(|error| match error {
            OpenError::Library(error) => SessionError::from_postgres(&error, CommitState::NotSent),
            OpenError::Session(error) => error,
        })?;
        Ok(Direct {
            transport: Transport::new(socket),
            output: BytesMut::new(),
            statements: 0,
            busy: false,
        })
    }

    /// Prepares a statement with known parameter types.
    pub async fn prepare(
        &mut self,
        sql: &str,
        types: &'static [Type],
    ) -> Result<Prepared, Failure> {
        self.begin()?;
        self.statements += 1;
        let name = format!("u{}", self.statements);
        frontend::parse(&name, sql, types.iter().map(Type::oid), &mut self.output)?;
        frontend::sync(&mut self.output);
        self.converse().await?;
        Ok(Prepared { name, types })
    }

    /// Carries out a prepared statement; returns the number of rows that it changed or returned.
    pub async fn execute(
        &mut self,
        statement: &Prepared,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Failure> {
        self.begin()?;
        let values = parameters.iter().zip(statement.types);
        let serialised = frontend::bind(
            "",
            &statement.name,
            [1],
            values,
            |(value, ty), buffer| match value.to_sql_checked(ty, buffer)? {
                IsNull::Yes => Ok(Null::Yes),
                IsNull::No => Ok(Null::No),
            },
            [1],
            &mut self.output,
        );
        if let Err(error) = serialised {
            self.output.clear();
            return Err(Failure::Parameter(match error {
                frontend::BindError::Conversion(error) => error,
                frontend::BindError::Serialization(error) => error.into(),
            }));
        }
        frontend::execute("", 0, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.converse().await
    }

    /// Carries out a statement without parameters; returns the number of rows that it changed or returned.
    pub async fn query(&mut self, sql: &str) -> Result<u64, Failure> {
        self.begin()?;
        frontend::query(sql, &mut self.output)?;
        self.converse().await
    }

    /// To be called before a request is written: the connection may have ended meanwhile, and what was never sent
    /// cannot have been committed.
    fn begin(&mut self) -> Result<(), Failure> {
        let not_sent = |failure| Failure::NotSent(Box::new(failure));
        if self.busy {
            let reason = "the answer to the request before was not waited for";
            return Err(not_sent(io::Error::other(reason).into()));
        }
        let mut ended = self.transport.look().err();
        loop {
            match self.next_message() {
                Ok(Some(Message::Error(report))) => return Err(not_sent(Failure::Server(report))),
                // Notices and changed settings.
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            }
        }
        match ended {
            Some(error) => Err(not_sent(error.into())),
            None => Ok(()),
        }
    }

    /// Sends what was written and takes the answer, up to the server's word that it is ready for the next request.
    async fn converse(&mut self) -> Result<u64, Failure> {
        self.busy = true;
        let sent = self.transport.send(&self.output).await;
        self.output.clear();
        sent?;
        let mut rows = 0;
        let mut failure = None;
        loop {
            match self.next_message()? {
                None => {
                    if let Err(error) = self.transport.receive().await {
                        // The server's reason for hanging up says more than that it did.
                        return Err(failure.map_or(Failure::Broken(error), Failure::Server));
                    }
                }
                Some(Message::Complete(count)) => rows += count,
                Some(Message::Ready) => break,
                Some(Message::Error(report)) => {
                    failure.get_or_insert(report);
                }
                Some(Message::Other) => {}
            }
        }
        self.busy = false;
        failure.map_or(Ok(rows), |report| Err(Failure::Server(report)))
    }

    /// The next message that was received whole.
    fn next_message(&mut self) -> io::Result<Option<Message>> {
        let received = self.transport.received();
        let Some((message, length)) = parse(received)? else { return Ok(None) };
        self.transport.consume(length);
        Ok(Some(message))
    }
}

/// What matters of a message of the server.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// A statement has ended; so many rows were changed or returned.
    Complete(u64),
    Error(Report),
    Ready,
    Other,
}

/// The first message in `bytes` and its length, if it is there as a whole.
fn parse(bytes: &[u8]) -> io::Result<Option<(Message, usize)>> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [tag, length @ ..] = header;
    let length = u32::from_be_bytes(*length) as usize + 1;
    if length < HEADER_BYTES {
        return Err(invalid("a message of impossible length"));
    }
    let Some(message) = bytes.get(..length) else { return Ok(None) };
    let message = match tag {
        b'C' => Message::Complete(rows_of(&message[HEADER_BYTES..])),
        b'E' => Message::Error(report(&message[HEADER_BYTES..])?),
        b'Z' => Message::Ready,
        _ => Message::Other,
    };
    Ok(Some((message, length)))
}

/// The number at the end of a command's tag: "INSERT 0 5", "SELECT 100", "BEGIN".
fn rows_of(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let last = tag.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(last).ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The fields of an error: a type of one byte and a text that ends with a zero, as often as there are fields, and a
/// zero.
fn report(mut fields: &[u8]) -> io::Result<Report> {
    let mut report = Report::default();
    loop {
        let (kind, rest) = match fields {
            [0, ..] => return Ok(report),
            [kind, rest @ ..] => (*kind, rest),
            [] => return Err(invalid("an error without an end")),
        };
        let end = rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| invalid("a field of an error without an end"))?;
        let text = || String::from_utf8_lossy(&rest[..end]).into_owned();
        match kind {
            // The one that is not translated, since PostgreSQL 9.6.
            b'V' => report.severity = text(),
            b'S' if report.severity.is_empty() => report.severity = text(),
            b'C' => report.code = text(),
            b'M' => report.message = text(),
            b'D' => report.detail = Some(text()),
            _ => {}
        }
        fields = &rest[end + 1..];
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Why a connection could not be opened.
enum OpenError {
    /// By the library, or by the server.
    Library(tokio_postgres::Error),
    /// Before it came to that.
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

/// Opens a connection with or without TLS; says also whether it came to TLS.
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

#[cfg(test)]
mod tests {
    use super::{Message, Report, parse};

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn messages_are_taken_whole_or_not_at_all() {
        let mut bytes = message(b'C', b"UPDATE 1\0");
        bytes.extend(message(b'Z', b"I"));
        for cut in 0..14 {
            assert_eq!(parse(&bytes[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(parse(&bytes).unwrap(), Some((Message::Complete(1), 14)));
        assert_eq!(parse(&bytes[14..]).unwrap(), Some((Message::Ready, 6)));
        assert!(parse(&[b'Z', 0, 0, 0, 3]).is_err(), "shorter than its own length");
    }

    #[test]
    fn tags_of_commands_say_how_many_rows() {
        let rows = |tag: &str| parse(&message(b'C', format!("{tag}\0").as_bytes())).unwrap();
        for (tag, count) in [("INSERT 0 5", 5), ("SELECT 100", 100), ("BEGIN", 0), ("DELETE 0", 0)]
        {
            assert_eq!(
                rows(tag).map(|(message, _)| message),
                Some(Message::Complete(count)),
                "{tag}"
            );
        }
    }

    #[test]
    fn errors_are_read_with_the_severity_that_is_not_translated() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mdoppelt\0DKey (id)=(1)\0\0";
        let expected = Report {
            severity: "ERROR".to_string(),
            code: "23505".to_string(),
            message: "doppelt".to_string(),
            detail: Some("Key (id)=(1)".to_string()),
        };
        let (got, _) = parse(&message(b'E', body)).unwrap().unwrap();
        assert_eq!(got, Message::Error(expected));
        assert!(parse(&message(b'E', b"Mcut")).is_err());
    }
}
