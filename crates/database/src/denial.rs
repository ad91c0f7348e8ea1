//! Whether a server refused something because its user lacks a right. Which rights a command needs is in `rights`.

use tokio_postgres::error::SqlState;

use crate::error::SessionError;
use crate::mariadb;

impl SessionError {
    /// Whether the server refused it because its user lacks a right. Trying again is of no use.
    ///
    /// PostgreSQL has a code for it, `insufficient_privilege`. MariaDB has one code for this and for what it cannot parse: there its
    /// numbers tell, with which its messages begin here.
    pub fn is_denial(&self) -> bool {
        self.sqlstate.as_deref() == Some(SqlState::INSUFFICIENT_PRIVILEGE.code())
            || mariadb::DENIALS
                .iter()
                .any(|number| self.message.starts_with(&format!("error {number}:")))
    }
}
