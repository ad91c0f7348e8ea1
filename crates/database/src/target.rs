//! Where a database is and as whom to log in.
//!
//! A target never shows its password: neither `Display` nor `Debug` prints it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, SslNegotiation};

use crate::Engine;
use crate::stop::StopWhen;
use crate::tls::Tls;

const DEFAULT_DATABASE: &str = "postgres";
pub(crate) const DEFAULT_APPLICATION_NAME: &str = "underlay";
pub(crate) const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How the server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host name or address.
    Tcp(String),
    /// A Unix socket: of PostgreSQL its directory, of MariaDB the socket itself.
    UnixSocket(PathBuf),
}

/// Text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A database to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What the server speaks.
    pub engine: Engine,
    /// How the server is reached.
    pub address: Address,
    /// The TCP port; also part of the name of a Unix socket.
    pub port: u16,
    /// The role to log in as.
    pub user: String,
    /// Its password, where the server asks for one.
    pub password: Option<Secret>,
    /// PostgreSQL's: the file of passwords that the URL names, instead of the usual one.
    pub password_file: Option<PathBuf>,
    /// The database. Empty where MariaDB is to choose none.
    pub database: String,
    /// Shown in `pg_stat_activity` and in MariaDB's connection attributes, so that telemetry can tell the driver from the samplers.
    pub application_name: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// After how long the server shall cancel a statement; none leaves it to the server's setting.
    pub statement_timeout: Option<Duration>,
    /// Settings of its sessions as the server's command line would have them (libpq's `options`), PostgreSQL only.
    pub session_options: Option<String>,
    /// PostgreSQL's: whether the exchange of the password is bound to the session of TLS.
    pub channel_binding: ChannelBinding,
    /// PostgreSQL's: whether TLS is asked for first, or begun with at once.
    pub negotiation: SslNegotiation,
    /// What its sessions do about TLS.
    pub tls: Tls,
    /// When loads, checks and removals are given up.
    pub stop: StopWhen,
}

/// The home directory, where clients keep private files.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Target {
    /// A server's Unix socket, its maintenance database, no password.
    pub fn unix_socket(directory: PathBuf, port: u16, user: &str) -> Target {
        Target {
            engine: Engine::Postgresql,
            address: Address::UnixSocket(directory),
            port,
            user: user.to_string(),
            password: None,
            password_file: None,
            database: DEFAULT_DATABASE.to_string(),
            application_name: DEFAULT_APPLICATION_NAME.to_string(),
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            statement_timeout: None,
            session_options: None,
            channel_binding: ChannelBinding::Prefer,
            negotiation: SslNegotiation::Postgres,
            tls: Tls::disabled(),
            stop: StopWhen::default(),
        }
    }

    /// The same server, another database.
    pub fn with_database(&self, database: &str) -> Target {
        Target { database: database.to_string(), ..self.clone() }
    }

    /// The same database, another name in `pg_stat_activity`.
    pub fn with_application_name(&self, application_name: &str) -> Target {
        Target { application_name: application_name.to_string(), ..self.clone() }
    }

    /// The same database, with statements that the server cancels after `limit`.
    pub fn with_statement_timeout(&self, limit: Duration) -> Target {
        Target { statement_timeout: Some(limit), ..self.clone() }
    }

    /// The same database, where loads and checks end early, with an error, soon after `asked` says so. What was loaded is then
    /// not marked complete.
    pub fn with_stop(&self, asked: fn() -> bool) -> Target {
        Target { stop: StopWhen::new(asked), ..self.clone() }
    }

    /// PostgreSQL's client library's view of this target, for those who need further parameters and connect with
    /// [`crate::postgres::tls::connect`]: by itself it uses no TLS.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        match &self.address {
            Address::Tcp(host) => config.host(host),
            Address::UnixSocket(directory) => config.host_path(directory),
        };
        config
            .port(self.port)
            .user(&self.user)
            .dbname(&self.database)
            .application_name(&self.application_name)
            .connect_timeout(self.connect_timeout)
            .ssl_mode(SslMode::Disable)
            .ssl_negotiation(self.negotiation)
            .channel_binding(self.channel_binding);
        if let Some(password) = &self.password {
            config.password(password.reveal());
        }
        // Whole milliseconds; zero would mean no limit. Of two values of a setting the last one holds.
        let limit = self
            .statement_timeout
            .map(|limit| format!("-c statement_timeout={}", limit.as_millis().max(1)));
        let options: Vec<&str> =
            [self.session_options.as_deref(), limit.as_deref()].into_iter().flatten().collect();
        if !options.is_empty() {
            config.options(options.join(" "));
        }
        config
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

impl fmt::Display for Target {
    /// A URL without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.engine {
            Engine::Postgresql => "postgres",
            Engine::Mariadb => "mysql",
        };
        write!(f, "{scheme}://{}@", self.user)?;
        match &self.address {
            Address::Tcp(host) if host.contains(':') => write!(f, "[{host}]")?,
            Address::Tcp(host) => f.write_str(host)?,
            Address::UnixSocket(directory) => {
                f.write_str(&directory.to_string_lossy().replace('/', "%2F"))?;
            }
        }
        write!(f, ":{}/{}", self.port, self.database)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::Target;

    #[test]
    fn a_limit_on_statements_reaches_the_server() {
        let target = Target::from_url("postgres://ann@a/x").unwrap();
        assert_eq!(target.config().get_options(), None);
        let limited = target.with_statement_timeout(Duration::from_micros(1_500_300));
        assert_eq!(limited.config().get_options(), Some("-c statement_timeout=1500"));
        let own = Target::from_url("postgres://ann@a/x?options=-c%20work_mem%3D8MB").unwrap();
        assert_eq!(own.config().get_options(), Some("-c work_mem=8MB"));
        let both = own.with_statement_timeout(Duration::from_secs(1));
        assert_eq!(both.config().get_options(), Some("-c work_mem=8MB -c statement_timeout=1000"));
    }

    #[test]
    fn never_shows_the_password() {
        let target = Target::from_url("postgres://ann:s3cret@[::1]:6000/shop").unwrap();
        assert_eq!(target.to_string(), "postgres://ann@[::1]:6000/shop");
        assert!(!format!("{target:?}").contains("s3cret"));
        let error = Target::from_url("postgres://ann:s3cret@a:b:c/shop").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }

    #[test]
    fn a_shown_target_reads_back() {
        let target = Target::unix_socket(PathBuf::from("/run/u-1"), 5433, "underlay");
        let again = Target::from_url(&target.to_string()).unwrap();
        assert_eq!(again, target);
    }
}
