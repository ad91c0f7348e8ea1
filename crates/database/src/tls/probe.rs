//! Finds out whether the sessions of a target are encrypted, and how. Nothing is measured here.

use mysql_async::prelude::Queryable;

use super::encryption::Encryption;
use super::options::Verification;
use crate::error::{CommitState, SessionError};
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Opens a session as all others of `target` are opened, and says how it is encrypted; none: not at all.
///
/// # Errors
/// What any session would meet: it is opened first where nothing shall be touched before TLS and login are known to work.
pub async fn encryption(target: &Target) -> Result<Option<Encryption>, SessionError> {
    match target.engine {
        Engine::Postgresql => postgres::tls::encryption(target).await,
        Engine::Mariadb => {
            let not_sent = |error: mysql_async::Error| {
                SessionError::from_mariadb(&error, CommitState::NotSent)
            };
            let mut conn = mariadb::connect(target).await?;
            // The client's library does not say what it agreed on; the server does.
            let rows: Vec<(String, String)> = conn
                .query("SHOW SESSION STATUS WHERE Variable_name IN ('Ssl_version', 'Ssl_cipher')")
                .await
                .map_err(not_sent)?;
            conn.disconnect().await.map_err(not_sent)?;
            let value = |name: &str| {
                rows.iter()
                    .find(|(found, _)| found.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.clone())
                    .filter(|value| !value.is_empty())
            };
            let verified = target
                .tls
                .material()
                .map_or(Verification::Nothing, |material| material.verification);
            Ok(value("Ssl_cipher").map(|cipher| Encryption {
                protocol: value("Ssl_version").unwrap_or_default(),
                cipher,
                verified,
            }))
        }
    }
}
