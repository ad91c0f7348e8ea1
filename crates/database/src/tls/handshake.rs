//! A handshake over any stream.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::failure::TlsFailure;
use super::material::Material;

/// Makes `stream` one with TLS, with the server that the URL calls `host`.
pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    material: &Material,
    host: &str,
    stream: S,
) -> Result<TlsStream<S>, TlsFailure> {
    let name = ServerName::try_from(host.to_string()).map_err(|_| {
        TlsFailure::Refused(format!("`{host}` is not a name that a certificate can have"))
    })?;
    TlsConnector::from(Arc::clone(&material.config))
        .connect(name, stream)
        .await
        .map_err(|error| TlsFailure::of(error, host))
}
