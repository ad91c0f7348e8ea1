//! A connection whose requests and answers are handled here and not by the client library.
//!
//! What it speaks is the part of the client/server protocol (MariaDB Knowledge Base, "Client/Server Protocol") that
//! transactions of prepared statements need, with one request in flight: the library's buffers and states cost twice the
//! processor time in user space of a peer written in C. It returns counts of rows, not rows. It authenticates with
//! `mysql_native_password`; whoever needs another plugin uses the library ([`connect`](super::connection::connect)), and
//! [`Opened::NotHere`] says so.

mod packet;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use mysql_async::{Error, ServerError};
use mysql_common::constants::{CapabilityFlags, UTF8MB4_GENERAL_CI};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::MySerialize;
use tokio::time::timeout;

use packet::{First, broken, first_answer, protocol, refused, server_error, write_execution};
pub use packet::{Parameter, Prepared};

use super::tls::NOT_OFFERED;
use crate::target::{Address, Target};
use crate::tls::{Material, TlsFailure};
use crate::transport::{Socket, Transport};

/// Length (3 bytes) and number of a packet.
const HEADER_BYTES: usize = 4;
/// Longer requests and rows would be several packets.
const PACKET_BYTES_MAX: usize = (1 << 24) - 2;
const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

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

    /// Takes leave: the server would count and log a connection that just breaks off.
    pub fn quit(&mut self) {
        if !self.busy {
            self.transport.send_at_once(&[1, 0, 0, 0, COM_QUIT]);
            self.busy = true;
        }
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
