//! A connection whose requests and answers are handled here and not by the client library.
//!
//! The client library opens it, with start-up and authentication. Then it hands over the socket, and the rest is the
//! extended query protocol with one request in flight (PostgreSQL manual, chapter "Message Flow"). The library's queues
//! between client and connection cost as much processor time per statement as everything else in user space: without them
//! the load generator is as cheap as a client written in C. Rows are shown where they were received and not kept.

mod message;
mod opening;

use std::io;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};

use crate::connection::Completed;
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
    state: State,
}

/// What a connection is doing. Other than idle at the begin of a request only where a caller stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// A request was sent in part.
    Sending,
    /// A request was sent; its answer was not received to its end.
    Waiting,
}

/// A statement that the server has prepared, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Prepared(u32);

/// Writes the value of a parameter, counted from 0.
pub type Encode<'a> = &'a mut dyn FnMut(
    usize,
    &mut BytesMut,
)
    -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>>;

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

    /// In the terms of all engines.
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
            state: State::Idle,
        })
    }

    /// Prepares a statement with known parameter types.
    pub async fn prepare(
        &mut self,
        sql: &str,
        types: impl IntoIterator<Item = Oid>,
    ) -> Result<Prepared, Failure> {
        self.begin().await?;
        self.statements += 1;
        let prepared = Prepared(self.statements);
        frontend::parse(&prepared.name(), sql, types, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.converse(&mut |_| {}).await?;
        Ok(prepared)
    }

    /// Carries out a prepared statement with `count` parameters, and calls `look` with the columns of each row, in binary form.
    pub async fn execute(
        &mut self,
        statement: Prepared,
        count: usize,
        encode: Encode<'_>,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<Completed, Failure> {
        self.begin().await?;
        let serialised = frontend::bind(
            "",
            &statement.name(),
            [1],
            0..count,
            |index, buffer| encode(index, buffer),
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
        self.converse(look).await
    }

    /// Carries out text without parameters, and calls `look` with the columns of each row, in text form.
    pub async fn query(
        &mut self,
        sql: &str,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<Completed, Failure> {
        self.begin().await?;
        frontend::query(sql, &mut self.output)?;
        self.converse(look).await
    }

    /// Carries out a `COPY ... FROM STDIN` with what `next` appends, until it says that there is no more.
    pub async fn copy_in(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut BytesMut) -> bool,
    ) -> Result<Completed, Failure> {
        self.begin().await?;
        frontend::query(sql, &mut self.output)?;
        self.send().await?;
        if let Answered::Ended(completed) = self.answer(&mut |_| {}).await? {
            return Ok(completed);
        }
        let mut has_more = true;
        // The server speaks during the copy only to refuse it.
        while has_more && self.transport.received().is_empty() {
            // The length is known only when the rows have been appended.
            self.output.put_slice(&[b'd', 0, 0, 0, 0]);
            has_more = next(&mut self.output);
            let length = (self.output.len() - 1) as u32;
            self.output[1..5].copy_from_slice(&length.to_be_bytes());
            self.send().await?;
            self.transport.look()?;
        }
        frontend::copy_done(&mut self.output);
        self.converse(&mut |_| {}).await
    }

    /// To be called before a request is written: the connection may have ended meanwhile, and what was never sent
    /// cannot have been committed. An answer that a caller did not wait for is received first.
    async fn begin(&mut self) -> Result<(), Failure> {
        self.make_ready().await.map_err(|failure| Failure::NotSent(Box::new(failure)))
    }

    async fn make_ready(&mut self) -> Result<(), Failure> {
        match self.state {
            State::Idle => {}
            State::Sending => {
                return Err(io::Error::other("an earlier request was sent only in part").into());
            }
            State::Waiting => {
                // The server's answer was for a caller who is gone.
                match self.answer(&mut |_| {}).await {
                    Ok(_) | Err(Failure::Server(_)) if self.state == State::Idle => {}
                    Ok(_) => return Err(io::Error::other("an earlier COPY was abandoned").into()),
                    Err(failure) => return Err(failure),
                }
            }
        }
        self.output.clear();
        let ended = self.transport.look().err();
        while let Some((message, length)) = parse(self.transport.received())? {
            if let Message::Error(report) = message {
                return Err(Failure::Server(report));
            }
            // Notices and changed settings.
            self.transport.consume(length);
        }
        ended.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn send(&mut self) -> Result<(), Failure> {
        // A caller may stop waiting in the middle: the connection is then unusable, and this says
        // so.
        self.state = State::Sending;
        let sent = self.transport.send(&self.output).await;
        self.output.clear();
        sent?;
        self.state = State::Waiting;
        Ok(())
    }

    /// Sends what was written, and receives the answer up to the server's message that it is ready for the next request.
    async fn converse(&mut self, look: &mut dyn FnMut(&[u8])) -> Result<Completed, Failure> {
        self.send().await?;
        match self.answer(look).await? {
            Answered::Ended(completed) => Ok(completed),
            Answered::CopyIn => Err(io::Error::other("the server waits for rows of a copy").into()),
        }
    }

    async fn answer(&mut self, look: &mut dyn FnMut(&[u8])) -> Result<Answered, Failure> {
        let mut completed = Completed::default();
        // After an error the server still says that it is ready, which has to be received first.
        let mut failure = None;
        loop {
            let Some((message, length)) = parse(self.transport.received())? else {
                if let Err(error) = self.transport.receive().await {
                    // The server's reason for hanging up says more than that it did.
                    return Err(failure.map_or(Failure::Broken(error), Failure::Server));
                }
                continue;
            };
            let mut answered = None;
            match message {
                Message::Row(columns) => {
                    completed.returned += 1;
                    look(columns);
                }
                Message::Complete(rows) => completed.changed += rows,
                Message::Ready => answered = Some(Answered::Ended(completed)),
                Message::CopyIn => answered = Some(Answered::CopyIn),
                Message::Error(report) => {
                    failure.get_or_insert(report);
                }
                Message::Other => {}
            }
            self.transport.consume(length);
            if let Some(answered) = answered {
                if let Answered::Ended(_) = answered {
                    self.state = State::Idle;
                }
                return failure.map_or(Ok(answered), |report| Err(Failure::Server(report)));
            }
        }
    }
}

/// What ended an answer.
#[derive(Clone, Copy)]
enum Answered {
    Ended(Completed),
    CopyIn,
}

impl Prepared {
    fn name(self) -> String {
        format!("u{}", self.0)
    }
}

/// Ends the session (message `Terminate`): the server would log a connection that just breaks off.
impl Drop for Direct {
    fn drop(&mut self) {
        if self.state == State::Idle {
            self.transport.send_at_once(&[b'X', 0, 0, 0, 4]);
        }
    }
}
