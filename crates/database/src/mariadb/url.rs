//! URLs of MariaDB and MySQL: `mysql://user:password@host:port/database?options`.
//!
//! No error quotes the text around the password.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::{ChannelBinding, SslNegotiation};

use crate::Engine;
use crate::error::TargetError;
use crate::mariadb::connection::DEFAULT_PORT;
use crate::percent::{decoded, quotable};
use crate::stop::StopWhen;
use crate::target::{Address, DEFAULT_APPLICATION_NAME, DEFAULT_CONNECT_TIMEOUT, Secret, Target};
use crate::tls::{MARIADB_WORDS, Tls, TlsOptions};

/// All that an option can be.
const OPTIONS: [&str; 7] =
    ["socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "connect_timeout", "application_name"];

/// What follows `mysql://` or `mariadb://`. Options: `socket`, `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key`,
/// `connect_timeout` in seconds, `application_name`.
pub(crate) fn parse(scheme: &str, rest: &str) -> Result<Target, TargetError> {
    debug_assert!(matches!(scheme, "mysql" | "mariadb"));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = authority.rsplit_once('@').ok_or(TargetError::NoUser)?;
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let user = decoded(user).map_err(|()| malformed("the user is not UTF-8"))?;
    if user.is_empty() {
        return Err(TargetError::NoUser);
    }
    let password = password
        .map(|text| decoded(text).map(Secret::new))
        .transpose()
        .map_err(|()| TargetError::PasswordNotText)?;
    if place.contains(',') {
        return Err(TargetError::SeveralHosts);
    }
    let (host, port) = host_and_port(place)?;
    let mut target = Target {
        engine: Engine::Mariadb,
        address: match host.starts_with('/') {
            true => Address::UnixSocket(PathBuf::from(host)),
            false => Address::Tcp(host),
        },
        port,
        user,
        password,
        password_file: None,
        database: decoded(database).map_err(|()| malformed("the database is not UTF-8"))?,
        application_name: DEFAULT_APPLICATION_NAME.to_string(),
        connect_timeout: DEFAULT_CONNECT_TIMEOUT,
        statement_timeout: None,
        session_options: None,
        channel_binding: ChannelBinding::Prefer,
        negotiation: SslNegotiation::Postgres,
        tls: Tls::disabled(),
        stop: StopWhen::default(),
    };
    let mut of_tls = Vec::new();
    let mut seen = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let name = known(name).ok_or_else(|| TargetError::UnknownOption {
            name: quotable(name, query),
            known: OPTIONS.to_vec(),
        })?;
        if seen.contains(&name) {
            return Err(TargetError::RepeatedOption { name });
        }
        seen.push(name);
        let value = decoded(value).map_err(|()| malformed("an option is not UTF-8"))?;
        match name {
            "socket" => target.address = Address::UnixSocket(PathBuf::from(value)),
            "application_name" => target.application_name = value,
            "connect_timeout" => {
                let seconds =
                    value.parse().map_err(|_| malformed("connect_timeout is not a number"))?;
                target.connect_timeout = Duration::from_secs(seconds);
            }
            of_tls_only => of_tls.push((of_tls_only.to_string(), value)),
        }
    }
    if target.address == Address::Tcp(String::new()) {
        return Err(TargetError::NoHost);
    }
    let is_socket = matches!(target.address, Address::UnixSocket(_));
    let options = TlsOptions::read(&MARIADB_WORDS, &of_tls, is_socket)?;
    target.tls = Tls::new(options, &MARIADB_WORDS, None)?;
    Ok(target)
}

/// The one name of an option; those of TLS are written in several ways, also as PostgreSQL has them.
fn known(name: &str) -> Option<&'static str> {
    let of_tls = name.replace('_', "-").to_ascii_lowercase();
    let of_tls = if of_tls == "sslmode" { "ssl-mode" } else { &of_tls };
    OPTIONS.into_iter().find(|option| *option == name || *option == of_tls)
}

fn host_and_port(place: &str) -> Result<(String, u16), TargetError> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (
            host,
            Some(rest.strip_prefix(':').ok_or_else(|| malformed("the port is not a port number"))?),
        ),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| malformed("the port is not a port number"))?,
    };
    Ok((decoded(host).map_err(|()| malformed("the host is not UTF-8"))?, port))
}

fn malformed(reason: &str) -> TargetError {
    TargetError::Malformed { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::error::TargetError;
    use crate::target::{Address, Target};

    #[test]
    fn reads_urls() {
        let target =
            Target::from_url("mysql://ann:s%40:cret@db.example:3307/shop?connect_timeout=3")
                .unwrap();
        assert_eq!(target.address, Address::Tcp("db.example".to_string()));
        assert_eq!((target.port, target.user.as_str()), (3307, "ann"));
        assert_eq!(target.password.as_ref().unwrap().reveal(), "s@:cret");
        assert_eq!((target.database.as_str(), target.connect_timeout.as_secs()), ("shop", 3));

        let target = Target::from_url("mariadb://ann@[::1]").unwrap();
        assert_eq!(target.address, Address::Tcp("::1".to_string()));
        assert_eq!((target.port, target.database.as_str()), (3306, ""));
        assert_eq!(target.to_string(), "mysql://ann@[::1]:3306/");

        for url in ["mysql://ann@%2Frun%2Fm.sock/x", "mysql://ann@localhost/x?socket=/run/m.sock"] {
            let target = Target::from_url(url).unwrap();
            assert_eq!(target.address, Address::UnixSocket(PathBuf::from("/run/m.sock")));
            assert_eq!(Target::from_url(&target.to_string()).unwrap(), target);
        }
    }

    #[test]
    fn refuses_what_it_cannot_do_without_quoting_it() {
        let check = |url: &str| {
            let error = Target::from_url(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
            error
        };
        assert!(matches!(check("mysql://a/x"), TargetError::NoUser));
        assert!(matches!(check("mysql://ann:s3cret@/x"), TargetError::NoHost));
        assert!(matches!(check("mysql://ann:s3cret@a,b/x"), TargetError::SeveralHosts));
        assert!(matches!(check("mysql://ann:s3cret@a:b:c/x"), TargetError::Malformed { .. }));
        for option in ["ssl-mode=s3cret", "ssl-ca=/nowhere", "ssl-cert=/c", "ssl-mode=verify_ca"] {
            let url = format!("mysql://ann:s3cret@a/x?{option}");
            assert!(matches!(check(&url), TargetError::Tls { .. }), "{option}");
        }
        // What comes before an `@` may be a password's.
        let unknown = check("mysql://ann:x@a/x?s3cret@b=1");
        assert!(matches!(unknown, TargetError::UnknownOption { name: None, .. }));
        let unknown = check("mysql://ann:s3cret@a/x?ssl-mood=1").to_string();
        assert!(
            unknown.contains("`ssl-mood`") && unknown.contains("ssl-mode, ssl-ca"),
            "{unknown}"
        );
        for twice in
            ["sslmode=verify-full&ssl-mode=disabled", "ssl_mode=required&ssl-mode=required"]
        {
            let error = check(&format!("mysql://ann:s3cret@a/x?{twice}"));
            assert_eq!(error, TargetError::RepeatedOption { name: "ssl-mode" });
        }
        assert!(matches!(check("mysql://ann:%ff@a/x"), TargetError::PasswordNotText));
    }
}
