//! Clients of the library for PostgreSQL, for statements that are not measured. How TLS is agreed on is in `tls`.

use tokio_postgres::Client;

use super::tls;
use crate::error::{CommitState, SessionError};
use crate::target::Target;

impl Target {
    /// Connects to a PostgreSQL. The connection is driven by a task on the current runtime until the client is
    /// dropped; an error it meets surfaces in the client's next call.
    pub async fn connect(&self) -> Result<Client, SessionError> {
        let (client, connection) = tls::connect(self, &self.config())
            .await
            .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        });
        Ok(client)
    }
}
