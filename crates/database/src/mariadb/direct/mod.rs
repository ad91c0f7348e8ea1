//! A connection whose requests and answers are handled here and not by the client library.
//!
//! What it speaks is the part of the client/server protocol (MariaDB Knowledge Base, "Client/Server Protocol") that
//! transactions of prepared statements need, with one request in flight: the library's buffers and states cost twice the
//! processor time in user space of a peer written in C. Rows are shown where they were received, one after the other, and
//! are not kept. It authenticates with `mysql_native_password`; whoever needs another plugin uses the library
//! ([`connect`](super::connection::connect)), and [`Opened::NotHere`] says so.

mod answer;
mod opening;
mod packet;
mod row;

use std::io;
use std::time::Duration;

use mysql_async::Error;
use tokio::time::timeout;

use answer::{Agreed, Answer, Step};
pub use packet::Parameter;
use packet::{broken, refused, write_array_execution, write_execution};
pub(super) use packet::{decimal, protocol};
use row::Column;
pub use row::Row;

use bytes::BytesMut;

use super::error::RequestError;
use crate::connection::Completed;
use crate::target::{Address, Target};
use crate::transport::{Socket, Transport};

/// Length (3 bytes) and number of a packet.
const HEADER_BYTES: usize = 4;
/// Longer requests and rows would be several packets.
const PACKET_BYTES_MAX: usize = (1 << 24) - 2;
const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_BULK_EXECUTE: u8 = 0xfa;

/// A connection.
#[derive(Debug)]
pub struct Direct {
    transport: Transport<Socket>,
    output: Vec<u8>,
    /// The number of the next packet, in either direction.
    sequence: u8,
    /// What is still to come. Something is when a caller stopped waiting.
    answer: Answer,
    statements: Vec<Known>,
    /// The statement that the answer is for.
    executed: Option<Prepared>,
    /// A request was sent in part, or the server violated the protocol: the next message is unknown.
    is_out_of_step: bool,
    /// The server carries out a statement for an array of values.
    takes_arrays: bool,
}

/// What is known of a statement that the server has prepared.
#[derive(Debug)]
struct Known {
    /// The server's number for it.
    number: u32,
    /// How many values it takes.
    parameters: u16,
    /// How its rows were described last.
    columns: Vec<Column>,
}

/// A statement that this connection has prepared: its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(usize);

/// What became of an attempt to open a connection.
#[derive(Debug)]
pub enum Opened {
    /// It is open.
    Here(Box<Direct>),
    /// The server asks for something that only the library can do.
    NotHere,
}

/// How an answer ended, unless the server refused.
enum End {
    Completed(Completed),
    Prepared(u32, u16),
    /// The server waits for the rows of a bulk load.
    File,
}

impl Direct {
    /// Connects. The database may be empty: then none is chosen.
    pub async fn connect(target: &Target) -> Result<Opened, Error> {
        let limit: Duration = target.connect_timeout;
        let socket = match &target.address {
            Address::Tcp(host) => Socket::tcp(host, target.port, limit).await,
            Address::UnixSocket(path) => Socket::unix(path, limit).await,
        };
        let direct = Direct {
            transport: Transport::new(socket.map_err(broken)?),
            output: Vec::new(),
            sequence: 0,
            answer: Answer::new(Agreed::default()),
            statements: Vec::new(),
            executed: None,
            is_out_of_step: false,
            takes_arrays: false,
        };
        let greeted = timeout(limit, direct.greet(target)).await;
        // A server that accepts connections and says nothing must not hang the caller.
        let here = greeted.map_err(|_| broken(io::ErrorKind::TimedOut.into()))??;
        Ok(here.map_or(Opened::NotHere, |direct| Opened::Here(Box::new(direct))))
    }

    /// Takes leave: the server would count and log a connection that just breaks off.
    pub fn quit(&mut self) {
        if !self.is_out_of_step && self.answer.is_over() {
            self.transport.send_at_once(&[1, 0, 0, 0, COM_QUIT]);
            self.is_out_of_step = true;
        }
    }

    /// Prepares a statement.
    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, RequestError> {
        self.begin(COM_STMT_PREPARE).await?;
        self.output.extend_from_slice(sql.as_bytes());
        self.answer.expect_preparation();
        let End::Prepared(number, parameters) = self.ask(&mut |_| {}).await? else {
            unreachable!("a preparation ends in a statement");
        };
        let columns = self.answer.described().unwrap_or_default().to_vec();
        self.statements.push(Known { number, parameters, columns });
        Ok(Prepared(self.statements.len() - 1))
    }

    /// Carries out a prepared statement, and shows `look` each of its rows.
    ///
    /// Also when it returns rows, it returns after the server said that the statement, and the transaction if it was one
    /// by itself, has ended.
    pub async fn execute(
        &mut self,
        statement: Prepared,
        parameters: &[Parameter<'_>],
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<Completed, RequestError> {
        self.begin(COM_STMT_EXECUTE).await?;
        let known = &self.statements[statement.0];
        if parameters.len() != usize::from(known.parameters) {
            let what = "a wrong number of parameters for the statement";
            return Err(RequestError::NotSent(protocol(what)));
        }
        write_execution(&mut self.output, known.number, parameters);
        self.answer.expect_rows(&known.columns);
        self.executed = Some(statement);
        self.completed(look).await
    }

    /// Whether [`Direct::execute_array`] is understood: by every MariaDB, by no MySQL.
    pub fn takes_arrays(&self) -> bool {
        self.takes_arrays
    }

    /// Carries out a prepared statement that returns no rows once for each row of an array, whose values are given one
    /// after the other, in their order. The server is asked and answers once: `changed` is the sum.
    ///
    /// # Errors
    /// Those of the first row that the server refuses. What was done for rows before it stays in the transaction.
    pub async fn execute_array(
        &mut self,
        statement: Prepared,
        values: &[Parameter<'_>],
    ) -> Result<Completed, RequestError> {
        self.begin(COM_STMT_BULK_EXECUTE).await?;
        let known = &self.statements[statement.0];
        let columns = usize::from(known.parameters);
        if !self.takes_arrays
            || columns == 0
            || values.is_empty()
            || !values.len().is_multiple_of(columns)
        {
            return Err(RequestError::NotSent(protocol(
                "an array that the statement does not accept",
            )));
        }
        write_array_execution(&mut self.output, known.number, columns, values)
            .map_err(RequestError::NotSent)?;
        self.answer.expect_result();
        self.completed(&mut |_| {}).await
    }

    /// Carries out a statement without parameters, and calls `look` with each of its rows, which are texts.
    pub async fn query(
        &mut self,
        sql: &[u8],
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<Completed, RequestError> {
        self.begin(COM_QUERY).await?;
        self.output.extend_from_slice(sql);
        self.answer.expect_result();
        self.completed(look).await
    }

    /// Carries out a `LOAD DATA LOCAL INFILE` with what `next` appends as the file, until it says that there is no more.
    pub async fn load_data(
        &mut self,
        sql: &str,
        next: &mut dyn FnMut(&mut BytesMut) -> bool,
    ) -> Result<Completed, RequestError> {
        self.begin(COM_QUERY).await?;
        self.output.extend_from_slice(sql.as_bytes());
        self.answer.expect_request_for_file();
        match self.ask(&mut |_| {}).await? {
            End::Completed(completed) => return Ok(completed),
            End::Prepared(..) => unreachable!("a statement does not end in a preparation"),
            End::File => {}
        }
        let mut rows = BytesMut::new();
        let mut has_more = true;
        // The server speaks during the load only to refuse it, and reads on to the end of the file.
        while has_more && self.transport.received().is_empty() {
            has_more = next(&mut rows);
            if !rows.is_empty() {
                self.begin_packet();
                self.output.extend_from_slice(&rows);
                rows.clear();
                self.send_packet().await?;
            }
            self.transport.look().map_err(broken)?;
        }
        // An empty packet ends the file.
        self.begin_packet();
        self.send_packet().await?;
        match self.end_of_answer(&mut |_| {}).await?? {
            End::Completed(completed) => Ok(completed),
            End::File | End::Prepared(..) => unreachable!("one file per statement"),
        }
    }

    /// To be called before a request is written. The connection may have ended meanwhile, and what was never sent cannot
    /// have been committed; an answer that a caller did not wait for comes first.
    async fn begin(&mut self, command: u8) -> Result<(), RequestError> {
        self.make_ready().await.map_err(RequestError::NotSent)?;
        self.begin_packet();
        self.output.push(command);
        Ok(())
    }

    async fn make_ready(&mut self) -> Result<(), Error> {
        if self.is_out_of_step {
            return Err(protocol("the state of the connection is unknown"));
        }
        while !self.answer.is_over() {
            // Its content does not matter any more.
            let _unasked = self.end_of_answer(&mut |_| {}).await?;
        }
        let ended = self.transport.look().err();
        if !self.transport.received().is_empty() {
            self.is_out_of_step = true;
            return self.last_words().await;
        }
        match ended {
            Some(error) => {
                self.is_out_of_step = true;
                Err(broken(error))
            }
            None => Ok(()),
        }
    }

    /// Why the server hangs up: nothing else comes unasked.
    async fn last_words(&mut self) -> Result<(), Error> {
        loop {
            if let Some(header) = self.transport.received().first_chunk::<HEADER_BYTES>() {
                // Whatever number it has.
                self.sequence = header[3];
                refused(&self.packet().await?)?;
                return Err(protocol("an unexpected reply"));
            }
            self.transport.receive().await.map_err(broken)?;
        }
    }

    async fn completed(
        &mut self,
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<Completed, RequestError> {
        match self.ask(look).await? {
            End::Completed(completed) => Ok(completed),
            End::Prepared(..) | End::File => {
                unreachable!("a statement ends neither in a preparation nor in a file")
            }
        }
    }

    /// Sends the request that was written, and takes its answer.
    async fn ask(&mut self, look: &mut dyn FnMut(Row<'_>)) -> Result<End, RequestError> {
        // Each command begins with packet 0 again (client/server protocol).
        self.sequence = 0;
        self.send_packet().await?;
        Ok(self.end_of_answer(look).await??)
    }

    /// Takes packets to the end of the answer. The outer error is one of the connection, the inner one the server's.
    async fn end_of_answer(
        &mut self,
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<Result<End, Error>, Error> {
        loop {
            let body = match body(self.transport.received(), self.sequence) {
                Ok(Some(body)) => body,
                Ok(None) => {
                    self.transport.receive().await.map_err(broken)?;
                    continue;
                }
                Err(error) => {
                    self.is_out_of_step = true;
                    return Err(error);
                }
            };
            let length = HEADER_BYTES + body.len();
            let end = match self.answer.take(body) {
                Ok(Step::More) => None,
                Ok(Step::Row(row)) => {
                    look(row);
                    None
                }
                Ok(Step::File) => Some(Ok(End::File)),
                Ok(Step::Completed(completed)) => Some(Ok(End::Completed(completed))),
                Ok(Step::Prepared(number, parameters)) => {
                    Some(Ok(End::Prepared(number, parameters)))
                }
                Ok(Step::Refused(error)) => Some(Err(Error::Server(error))),
                Err(error) => {
                    self.is_out_of_step = true;
                    return Err(error);
                }
            };
            self.sequence = self.sequence.wrapping_add(1);
            self.transport.consume(length);
            if let Some(end) = end {
                self.learn();
                return Ok(end);
            }
        }
    }

    /// Keeps what the answer told about the statement. The server describes columns again only when they change: what it
    /// said must not be forgotten, however the answer ended.
    fn learn(&mut self) {
        let Some(statement) = self.executed.take() else { return };
        let known = &mut self.statements[statement.0];
        if let Some(columns) = self.answer.described() {
            known.columns.clear();
            known.columns.extend_from_slice(columns);
        }
    }

    fn begin_packet(&mut self) {
        self.output.clear();
        self.output.extend_from_slice(&[0; HEADER_BYTES]);
    }

    /// Sends what was written since `begin_packet`.
    async fn send_packet(&mut self) -> Result<(), Error> {
        // Until it was sent as a whole: a caller may stop waiting.
        self.is_out_of_step = true;
        let length = self.output.len() - HEADER_BYTES;
        if length > PACKET_BYTES_MAX {
            return Err(protocol("a request of more than 16 MiB"));
        }
        self.output[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.output[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.transport.send(&self.output).await.map_err(broken)?;
        self.is_out_of_step = false;
        Ok(())
    }

    /// Waits for the next packet, and copies it.
    async fn packet(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            if let Some(body) = body(self.transport.received(), self.sequence)? {
                let body = body.to_vec();
                self.sequence = self.sequence.wrapping_add(1);
                self.transport.consume(HEADER_BYTES + body.len());
                return Ok(body);
            }
            self.transport.receive().await.map_err(broken)?;
        }
    }
}

/// The body of the packet at the front of what was received, if it is there as a whole.
fn body(received: &[u8], sequence: u8) -> Result<Option<&[u8]>, Error> {
    let Some((header, rest)) = received.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    if length > PACKET_BYTES_MAX {
        return Err(protocol("a reply of more than 16 MiB"));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    if header[3] != sequence {
        return Err(protocol("a packet out of order"));
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn packets_are_taken_whole_and_in_order() {
        let received = [3, 0, 0, 7, b'a', b'b', b'c', 9];
        for cut in 0..7 {
            assert_eq!(body(&received[..cut], 7).unwrap(), None, "{cut}");
        }
        assert_eq!(body(&received, 7).unwrap(), Some(&b"abc"[..]));
        assert!(body(&received, 8).is_err());
        assert!(body(&[0xff, 0xff, 0xff, 0], 0).is_err());
    }
}
