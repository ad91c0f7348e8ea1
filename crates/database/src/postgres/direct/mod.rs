//! A connection whose requests and answers are handled here and not by the client library.
//!
//! The library opens it: resolving, start-up and authentication are its business. Afterwards it lets go of the socket,
//! and what is left is the extended query protocol with one request in flight (PostgreSQL manual, chapter "Message
//! Flow"). The library's queues between client and connection cost as much processor time per statement as
//! everything else in user space: without them the load generator is as cheap as a peer written in C. It returns
//! counts of rows, not rows: workloads that look at what they read use [`Link`](super::link::Link).

mod message;
mod opening;

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull as Null;
use postgres_protocol::message::frontend;
use tokio_postgres::types::{IsNull, ToSql, Type};

use crate::error::{CommitState, ErrorClass, SessionError};
use crate::target::Target;
use crate::transport::{Socket, Transport};

pub use message::Report;
use message::{Message, parse};

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
        Ok(Direct {
            transport: Transport::new(opening::socket(target).await?),
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

/// Takes leave (message `Terminate`): the server would log a connection that just breaks off.
impl Drop for Direct {
    fn drop(&mut self) {
        if !self.busy {
            self.transport.send_at_once(&[b'X', 0, 0, 0, 4]);
        }
    }
}
