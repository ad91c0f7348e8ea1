//! A connection whose requests and answers are handled here and not by the client library.
//!
//! What it speaks is the part of the client/server protocol (MariaDB Knowledge Base, "Client/Server Protocol") that
//! transactions of prepared statements need, with one request in flight: the library's buffers and states cost twice the
//! processor time per statement of a peer written in C. It returns counts of rows, not rows. It authenticates with
//! `mysql_native_password`; whoever needs another plugin uses the library ([`connect`](super::connection::connect)), and
//! [`Opened::NotHere`] says so.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use mysql_async::{Error, IoError, ServerError};
use mysql_common::constants::{CapabilityFlags, UTF8MB4_GENERAL_CI};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::MySerialize;
use tokio::time::timeout;

use super::tls::NOT_OFFERED;
use crate::target::{Address, Target};
use crate::tls::{Material, TlsFailure};
use crate::transport::{Socket, Transport};

/// Length (3 bytes) and number of a packet.
const HEADER_BYTES: usize = 4;
/// Longer requests and rows would be several packets.
const PACKET_BYTES_MAX: usize = (1 << 24) - 2;
/// The error number that the protocol gives to what has none.
const UNKNOWN_ERROR: u16 = 1105;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONG: u8 = 0x03;
const TYPE_VAR_STRING: u8 = 0xfd;

/// A connection.
#[derive(Debug)]
pub struct Direct {
    transport: Transport<Socket>,
    output: Vec<u8>,
    capabilities: CapabilityFlags,
    /// The number that the next packet of the server must have.
    sequence: u8,
    /// A request was sent whose answer nobody waited for.
    busy: bool,
}

/// What became of an attempt to open a connection.
#[derive(Debug)]
pub enum Opened {
    /// It is open.
    Here(Box<Direct>),
    /// The server asks for something that only the library can do.
    NotHere,
}

/// A statement that the server has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    number: u32,
    parameters: u16,
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Parameter<'a> {
    /// INTEGER.
    Int(i32),
    /// CHAR.
    Text(&'a str),
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
            capabilities: CapabilityFlags::empty(),
            sequence: 0,
            busy: false,
        };
        let greeted = timeout(limit, direct.greet(target)).await;
        let here = greeted.map_err(|_| broken(io::ErrorKind::TimedOut.into()))??;
        Ok(here.map_or(Opened::NotHere, |direct| Opened::Here(Box::new(direct))))
    }

    /// Itself when the server let us in; none when it wants to be answered in a way that is not known here.
    async fn greet(mut self, target: &Target) -> Result<Option<Direct>, Error> {
        let greeting = self.packet(|body| Ok(body.to_vec())).await?;
        refused(&greeting)?;
        let handshake: HandshakePacket<'_> = ParseBuf(&greeting)
            .parse(())
            .map_err(|_| protocol("a greeting of another protocol"))?;
        self.capabilities = handshake.capabilities() & wanted();
        if let (Some(material), Address::Tcp(host)) = (target.tls.material(), &target.address) {
            if handshake.capabilities().contains(CapabilityFlags::CLIENT_SSL) {
                self = self.encrypt(material, host).await?;
            } else if target.tls.options().mode.demands() {
                return Err(Error::Other(NOT_OFFERED.into()));
            }
        }
        let password = target.password.as_ref().map(|password| password.reveal());
        let plugin = AuthPlugin::MysqlNativePassword;
        let mut nonce = handshake.nonce();
        // A zero ends it, which is not part of it.
        nonce.truncate(20);
        let proof = plugin.gen_data(password, &nonce);
        let attributes =
            HashMap::from([("program_name".to_string(), target.application_name.clone())]);
        let response = HandshakeResponse::new(
            proof.as_deref(),
            (10, 2, 0),
            Some(target.user.as_bytes()),
            Some(target.database.as_bytes()).filter(|name| !name.is_empty()),
            Some(plugin.clone()),
            self.capabilities,
            self.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS).then_some(attributes),
            PACKET_BYTES_MAX as u32,
        );
        self.capabilities = response.capabilities();
        self.begin_packet();
        response.serialize(&mut self.output);
        self.send_packet(self.sequence).await?;
        let mut answer = self.packet(|body| Ok(body.to_vec())).await?;
        if answer.first() == Some(&0xfe) {
            let switch: Result<AuthSwitchRequest<'_>, _> = ParseBuf(&answer).parse(());
            let Ok(switch) = switch else { return Ok(None) };
            if switch.auth_plugin() != plugin {
                return Ok(None);
            }
            let proof = plugin.gen_data(password, switch.plugin_data());
            self.begin_packet();
            if let Some(proof) = proof {
                proof.serialize(&mut self.output);
            }
            self.send_packet(self.sequence).await?;
            answer = self.packet(|body| Ok(body.to_vec())).await?;
        }
        refused(&answer)?;
        self.busy = false;
        Ok((answer.first() == Some(&0)).then_some(self))
    }

    /// Asks for TLS, and makes the handshake. Our own verifier judges the server's certificate.
    async fn encrypt(mut self, material: &Material, host: &str) -> Result<Direct, Error> {
        self.capabilities |= CapabilityFlags::CLIENT_SSL;
        self.begin_packet();
        let request =
            SslRequest::new(self.capabilities, PACKET_BYTES_MAX as u32, UTF8MB4_GENERAL_CI as u8);
        request.serialize(&mut self.output);
        self.send_packet(self.sequence).await?;
        // Whoever sits in between could have put it there.
        if !self.transport.received().is_empty() {
            return Err(protocol("an answer to what was not asked yet"));
        }
        let socket = self.transport.into_stream().encrypt(material, host).await;
        let socket = socket.map_err(|failure| match failure {
            TlsFailure::Lost(error) => broken(error),
            failure => Error::Other(failure.to_string().into()),
        })?;
        Ok(Direct { transport: Transport::new(socket), ..self })
    }

    /// Prepares a statement.
    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, Error> {
        self.begin_request(COM_STMT_PREPARE)?;
        self.output.extend_from_slice(sql.as_bytes());
        self.send_packet(0).await?;
        let answer = self.packet(|body| Ok(body.to_vec())).await?;
        if let Err(error) = refused(&answer) {
            self.busy = false;
            return Err(error);
        }
        let [0, n0, n1, n2, n3, c0, c1, p0, p1, ..] = answer[..] else {
            return Err(protocol("an answer to PREPARE that is none"));
        };
        let columns = u16::from_le_bytes([c0, c1]);
        let parameters = u16::from_le_bytes([p0, p1]);
        self.skip_definitions(u64::from(parameters)).await?;
        self.skip_definitions(u64::from(columns)).await?;
        self.busy = false;
        Ok(Prepared { number: u32::from_le_bytes([n0, n1, n2, n3]), parameters })
    }

    /// Carries out a prepared statement; returns the number of rows that it changed or returned.
    pub async fn execute(
        &mut self,
        statement: Prepared,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, Error> {
        if parameters.len() != usize::from(statement.parameters) {
            return Err(protocol("another number of parameters than the statement has"));
        }
        self.begin_request(COM_STMT_EXECUTE)?;
        write_execution(&mut self.output, statement, parameters);
        self.send_packet(0).await?;
        self.rows().await
    }

    /// Carries out a statement without parameters; returns the number of rows that it changed or returned.
    pub async fn query(&mut self, sql: &str) -> Result<u64, Error> {
        self.begin_request(COM_QUERY)?;
        self.output.extend_from_slice(sql.as_bytes());
        self.send_packet(0).await?;
        self.rows().await
    }

    /// The answer to a statement.
    async fn rows(&mut self) -> Result<u64, Error> {
        let first = self.packet(first_answer).await?;
        let rows = match first {
            First::Done(affected) => Ok(affected),
            First::Refused(error) => Err(error),
            First::Columns(count) => {
                self.skip_definitions(count).await?;
                self.count_rows().await?
            }
        };
        self.busy = false;
        rows.map_err(Error::Server)
    }

    /// The definitions of columns or parameters, and the packet that ended them in older protocols.
    async fn skip_definitions(&mut self, count: u64) -> Result<(), Error> {
        let is_ended =
            count > 0 && !self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        for _ in 0..count + u64::from(is_ended) {
            self.packet(|_| Ok(())).await?;
        }
        Ok(())
    }

    async fn count_rows(&mut self) -> Result<Result<u64, ServerError>, Error> {
        let mut count = 0;
        loop {
            let next = self
                .packet(|body| {
                    Ok(match body {
                        // A row cannot begin so: its first column would be longer than a packet.
                        [0xfe, ..] => Some(Ok(())),
                        [0xff, ..] => Some(Err(server_error(body))),
                        _ => None,
                    })
                })
                .await?;
            match next {
                None => count += 1,
                Some(Ok(())) => return Ok(Ok(count)),
                Some(Err(error)) => return Ok(Err(error)),
            }
        }
    }

    fn begin_packet(&mut self) {
        self.output.clear();
        self.output.extend_from_slice(&[0; HEADER_BYTES]);
    }

    fn begin_request(&mut self, command: u8) -> Result<(), Error> {
        if self.busy {
            return Err(protocol("the answer to the request before was not waited for"));
        }
        self.begin_packet();
        self.output.push(command);
        Ok(())
    }

    /// Sends what was written since `begin_packet`.
    async fn send_packet(&mut self, sequence: u8) -> Result<(), Error> {
        let length = self.output.len() - HEADER_BYTES;
        if length > PACKET_BYTES_MAX {
            return Err(protocol("a request of more than 16 MiB"));
        }
        self.output[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.output[3] = sequence;
        self.sequence = sequence.wrapping_add(1);
        self.busy = true;
        self.transport.send(&self.output).await.map_err(broken)
    }

    /// Waits for the next packet, and lets `look` see it.
    async fn packet<T>(
        &mut self,
        look: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let received = self.transport.received();
            if let Some(header) = received.first_chunk::<HEADER_BYTES>() {
                let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
                if length > PACKET_BYTES_MAX {
                    return Err(protocol("an answer of more than 16 MiB"));
                }
                if let Some(body) = received.get(HEADER_BYTES..HEADER_BYTES + length) {
                    if header[3] != self.sequence {
                        return Err(protocol("a packet out of order"));
                    }
                    let seen = look(body);
                    self.sequence = self.sequence.wrapping_add(1);
                    self.transport.consume(HEADER_BYTES + length);
                    return seen;
                }
            }
            self.transport.receive().await.map_err(broken)?;
        }
    }
}

/// The first packet of an answer to a statement.
enum First {
    Done(u64),
    Refused(ServerError),
    Columns(u64),
}

fn first_answer(body: &[u8]) -> Result<First, Error> {
    match body {
        [0, rest @ ..] => length_encoded(rest).map(First::Done),
        [0xff, ..] => Ok(First::Refused(server_error(body))),
        [0xfb, ..] => Err(protocol("a request for a local file")),
        _ => length_encoded(body).map(First::Columns),
    }
}

/// What is asked of the server. It finds rows and does not say how many it changed: an UPDATE that sets what was set has
/// found its row.
fn wanted() -> CapabilityFlags {
    CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_FOUND_ROWS
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_CONNECT_ATTRS
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
}

/// The body of COM_STMT_EXECUTE: statement, no cursor, once; which values are NULL (none), types, values.
fn write_execution(output: &mut Vec<u8>, statement: Prepared, parameters: &[Parameter<'_>]) {
    output.extend_from_slice(&statement.number.to_le_bytes());
    output.push(0);
    output.extend_from_slice(&1u32.to_le_bytes());
    if parameters.is_empty() {
        return;
    }
    output.resize(output.len() + parameters.len().div_ceil(8), 0);
    output.push(1);
    for parameter in parameters {
        let kind = match parameter {
            Parameter::Int(_) => TYPE_LONG,
            Parameter::Text(_) => TYPE_VAR_STRING,
        };
        output.extend_from_slice(&[kind, 0]);
    }
    for parameter in parameters {
        match parameter {
            Parameter::Int(value) => output.extend_from_slice(&value.to_le_bytes()),
            Parameter::Text(text) => {
                write_length(output, text.len());
                output.extend_from_slice(text.as_bytes());
            }
        }
    }
}

fn write_length(output: &mut Vec<u8>, length: usize) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=250 => output.push(bytes[0]),
        251..=0xffff => {
            output.push(0xfc);
            output.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            output.push(0xfd);
            output.extend_from_slice(&bytes[..3]);
        }
        _ => {
            output.push(0xfe);
            output.extend_from_slice(&bytes);
        }
    }
}

/// A number of one to nine bytes.
fn length_encoded(bytes: &[u8]) -> Result<u64, Error> {
    let (first, rest) = bytes.split_first().ok_or_else(|| protocol("a packet that is cut"))?;
    let count = match first {
        0..=250 => return Ok(u64::from(*first)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return Err(protocol("a number that is none")),
    };
    let digits = rest.get(..count).ok_or_else(|| protocol("a packet that is cut"))?;
    Ok(digits.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// An error packet: a number, usually a state after `#`, and words.
fn server_error(body: &[u8]) -> ServerError {
    let number = body.get(1..3).and_then(|bytes| bytes.first_chunk());
    let code = number.map_or(UNKNOWN_ERROR, |bytes| u16::from_le_bytes(*bytes));
    let rest = body.get(3..).unwrap_or_default();
    let (state, words) = match rest.split_at_checked(6) {
        Some(([b'#', state @ ..], words)) => (state, words),
        _ => (&b"HY000"[..], rest),
    };
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    ServerError { code, message: text(words), state: text(state) }
}

fn refused(body: &[u8]) -> Result<(), Error> {
    match body {
        [0xff, ..] => Err(Error::Server(server_error(body))),
        _ => Ok(()),
    }
}

fn broken(error: io::Error) -> Error {
    Error::Io(IoError::Io(error))
}

fn protocol(what: &'static str) -> Error {
    broken(io::Error::new(io::ErrorKind::InvalidData, what))
}

#[cfg(test)]
mod tests {
    use super::{
        First, Parameter, Prepared, first_answer, length_encoded, server_error, write_execution,
        write_length,
    };

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 250, 251, 252, 65_535, 65_536, 0xff_ffff, 0x100_0000, 1 << 40] {
            let mut bytes = Vec::new();
            write_length(&mut bytes, number);
            assert_eq!(length_encoded(&bytes).unwrap(), number as u64);
            bytes.pop();
            assert!(length_encoded(&bytes).is_err(), "{number} is cut");
        }
        assert!(length_encoded(&[0xff]).is_err());
    }

    #[test]
    fn an_execution_has_its_types_before_its_values() {
        let mut bytes = Vec::new();
        let statement = Prepared { number: 0x0102, parameters: 2 };
        write_execution(&mut bytes, statement, &[Parameter::Text("ab"), Parameter::Int(-2)]);
        let expected = [
            2, 1, 0, 0, 0, 1, 0, 0, 0, // statement, cursor, times
            0, 1, 0xfd, 0, 3, 0, // no NULL, types follow
            2, b'a', b'b', 0xfe, 0xff, 0xff, 0xff,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(matches!(first_answer(&[0, 5, 0]), Ok(First::Done(5))));
        assert!(matches!(first_answer(&[3]), Ok(First::Columns(3))));
        assert!(first_answer(&[0xfb, b'x']).is_err());
        assert!(first_answer(&[]).is_err());
        let Ok(First::Refused(error)) = first_answer(b"\xff\x26\x04#23000Duplicate") else {
            panic!("an error");
        };
        assert_eq!((error.code, &*error.state, &*error.message), (1062, "23000", "Duplicate"));
        // Before the protocol is agreed on there is no state.
        let error = server_error(b"\xff\x10\x04Too many");
        assert_eq!((error.code, &*error.state, &*error.message), (1040, "HY000", "Too many"));
        assert_eq!(server_error(&[0xff]).code, 1105);
    }
}
