//! How a connection is opened: greeting, TLS as the target says, and a proof of the password.
//!
//! The proof is that of `mysql_native_password`; for whoever needs another plugin there is the client library.

use std::collections::HashMap;

use mysql_async::Error;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities, UTF8MB4_GENERAL_CI};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::MySerialize;

use super::answer::{Agreed, Answer};
use super::packet::{broken, protocol, refused};
use super::{Direct, PACKET_BYTES_MAX};
use crate::mariadb::tls::NOT_OFFERED;
use crate::target::{Address, Target};
use crate::tls::{Material, TlsFailure};
use crate::transport::Transport;

/// What both sides can do.
#[derive(Clone, Copy, Debug)]
struct Capabilities {
    all: CapabilityFlags,
    /// Those that only MariaDB knows.
    own: MariadbCapabilities,
}

impl Capabilities {
    fn of(handshake: &HandshakePacket<'_>) -> Capabilities {
        let offered = handshake.capabilities();
        let all = offered & wanted();
        // A MySQL has this bit, and zeros or something else where MariaDB has more capabilities.
        let mut own = match offered.contains(CapabilityFlags::CLIENT_LONG_PASSWORD) {
            true => MariadbCapabilities::empty(),
            false => handshake.mariadb_ext_capabilities() & wanted_of_mariadb(),
        };
        // Of ended definitions there is no need to speak when they are not sent.
        if !all.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF) {
            own.remove(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA);
        }
        Capabilities { all, own }
    }

    fn agreed(self) -> Agreed {
        Agreed {
            has_eof: !self.all.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            keeps_columns: self.own.contains(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA),
        }
    }
}

impl Direct {
    /// Itself when the server let us in; none when it wants to be answered in a way that is not known here.
    pub(super) async fn greet(mut self, target: &Target) -> Result<Option<Direct>, Error> {
        let greeting = self.packet().await?;
        refused(&greeting)?;
        let handshake: HandshakePacket<'_> = ParseBuf(&greeting)
            .parse(())
            .map_err(|_| protocol("a greeting of an unknown protocol"))?;
        let mut capabilities = Capabilities::of(&handshake);
        // The server reads the response by what the request for TLS announced, if there is one: both
        // must agree on whether a database is named.
        if target.database.is_empty() {
            capabilities.all.remove(CapabilityFlags::CLIENT_CONNECT_WITH_DB);
        }
        if let (Some(material), Address::Tcp(host)) = (target.tls.material(), &target.address) {
            if handshake.capabilities().contains(CapabilityFlags::CLIENT_SSL) {
                capabilities.all |= CapabilityFlags::CLIENT_SSL;
                self = self.encrypt(capabilities, material, host).await?;
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
        let has_attributes = capabilities.all.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS);
        let response = HandshakeResponse::new(
            proof.as_deref(),
            (10, 2, 0),
            Some(target.user.as_bytes()),
            Some(target.database.as_bytes()).filter(|name| !name.is_empty()),
            Some(plugin.clone()),
            capabilities.all,
            has_attributes.then_some(attributes),
            PACKET_BYTES_MAX as u32,
        )
        .with_mariadb_ext_capabilities(capabilities.own);
        capabilities.all = response.capabilities();
        self.begin_packet();
        response.serialize(&mut self.output);
        self.send_packet().await?;
        let mut answer = self.packet().await?;
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
            self.send_packet().await?;
            answer = self.packet().await?;
        }
        refused(&answer)?;
        self.answer = Answer::new(capabilities.agreed());
        self.takes_arrays =
            capabilities.own.contains(MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS);
        Ok((answer.first() == Some(&0)).then_some(self))
    }

    /// Asks for TLS, and makes the handshake. Our own verifier judges the server's certificate.
    async fn encrypt(
        mut self,
        capabilities: Capabilities,
        material: &Material,
        host: &str,
    ) -> Result<Direct, Error> {
        self.begin_packet();
        let request =
            SslRequest::new(capabilities.all, PACKET_BYTES_MAX as u32, UTF8MB4_GENERAL_CI as u8);
        request.with_mariadb_capabilities(capabilities.own).serialize(&mut self.output);
        self.send_packet().await?;
        // An attacker in between could have inserted it.
        if !self.transport.received().is_empty() {
            return Err(protocol("a reply before any request"));
        }
        let socket = self.transport.into_stream().encrypt(material, host).await;
        let socket = socket.map_err(|failure| match failure {
            TlsFailure::Lost(error) => broken(error),
            failure => Error::Other(failure.to_string().into()),
        })?;
        Ok(Direct { transport: Transport::new(socket), ..self })
    }
}

/// What is asked of the server. It finds rows and does not say how many it changed: an UPDATE that sets what was set has
/// found its row. Calls may return rows. A request for a local file is answered with generated rows, and only where a
/// statement of ours asked for it: no file is ever read.
fn wanted() -> CapabilityFlags {
    CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_FOUND_ROWS
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_CONNECT_ATTRS
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_LOCAL_FILES
}

/// What is asked of a MariaDB besides.
fn wanted_of_mariadb() -> MariadbCapabilities {
    MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA
        | MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS
}
