//! URLs of PostgreSQL: `postgres://user:password@host:port/database?options`, or `key=value` pairs.
//!
//! The client library parses them; options of libpq that it does not know are removed first. No error quotes the text
//! around the password.

use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslNegotiation};

use crate::Engine;
use crate::error::TargetError;
use crate::percent::{decoded, quotable};
use crate::stop::StopWhen;
use crate::target::{
    Address, DEFAULT_APPLICATION_NAME, DEFAULT_CONNECT_TIMEOUT, Secret, Target, home,
};
use crate::tls::{POSTGRES_WORDS, Tls, TlsMode, TlsOptions};

/// The port when none is given.
const DEFAULT_PORT: u16 = 5432;
/// Options that the client library does not know, or knows less of.
const TAKEN: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "passfile"];
/// Options that the client library reads and a target keeps. It reads others too, which would be forgotten without a word.
const KEPT: [&str; 10] = [
    "user",
    "password",
    "dbname",
    "host",
    "port",
    "application_name",
    "connect_timeout",
    "options",
    "channel_binding",
    "sslnegotiation",
];

/// From a URL or from pairs.
pub(crate) fn parse(text: &str) -> Result<Target, TargetError> {
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let (rest, taken) = if is_url { take_from_url(text)? } else { take_from_pairs(text)? };
    // The parser's own messages can quote the text around the password; only its source is kept.
    let config = Config::from_str(&rest).map_err(|error| TargetError::Malformed {
        reason: std::error::Error::source(&error)
            .map_or_else(|| "it cannot be parsed".to_string(), ToString::to_string),
    })?;
    let address = match config.get_hosts() {
        [] => return Err(TargetError::NoHost),
        [Host::Tcp(host)] => Address::Tcp(host.clone()),
        [Host::Unix(directory)] => Address::UnixSocket(directory.clone()),
        [_, _, ..] => return Err(TargetError::SeveralHosts),
    };
    let user = config.get_user().ok_or(TargetError::NoUser)?.to_string();
    let password = config
        .get_password()
        .map(|bytes| String::from_utf8(bytes.to_vec()).map(Secret::new))
        .transpose()
        .map_err(|_| TargetError::PasswordNotText)?;
    let is_socket = matches!(address, Address::UnixSocket(_));
    let options = TlsOptions::read(&POSTGRES_WORDS, &taken, is_socket)?;
    demand_what_can_be(&config, options.mode)?;
    Ok(Target {
        engine: Engine::Postgresql,
        address,
        port: config.get_ports().first().copied().unwrap_or(DEFAULT_PORT),
        database: config.get_dbname().unwrap_or(&user).to_string(),
        user,
        password,
        password_file: taken
            .iter()
            .find(|(name, _)| name == "passfile")
            .map(|(_, path)| path.into()),
        application_name: config
            .get_application_name()
            .unwrap_or(DEFAULT_APPLICATION_NAME)
            .to_string(),
        connect_timeout: config.get_connect_timeout().copied().unwrap_or(DEFAULT_CONNECT_TIMEOUT),
        statement_timeout: None,
        session_options: config.get_options().map(str::to_string),
        channel_binding: config.get_channel_binding(),
        negotiation: config.get_ssl_negotiation(),
        tls: Tls::new(options, &POSTGRES_WORDS, home().as_deref())?,
        stop: StopWhen::default(),
    })
}

/// Refuses what the mode of TLS rules out, which the library would say only when it connects.
fn demand_what_can_be(config: &Config, mode: TlsMode) -> Result<(), TargetError> {
    let may_be_plain = matches!(mode, TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer);
    if config.get_ssl_negotiation() == SslNegotiation::Direct && may_be_plain {
        return Err(TargetError::Tls {
            reason: "`sslnegotiation=direct` starts TLS immediately: it needs `sslmode=require` or a stronger mode"
                .to_string(),
        });
    }
    Ok(())
}

/// What is left, and what was taken.
type Split = (String, Vec<(String, String)>);

fn take_from_url(url: &str) -> Result<Split, TargetError> {
    // A password may hold a question mark; it ends at the first `@`, as for the client library.
    let login_end = url.find('@').unwrap_or(0);
    let Some(at) = url[login_end..].find('?').map(|at| login_end + at) else {
        return Ok((url.to_string(), Vec::new()));
    };
    let query = &url[at + 1..];
    let mut seen = Seen::default();
    let mut taken = Vec::new();
    let mut left = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        seen.add(name, || quotable(name, query))?;
        match TAKEN.contains(&name) {
            true => {
                let value = decoded(value).map_err(|()| malformed("an option is not UTF-8"))?;
                taken.push((name.to_string(), value));
            }
            false => left.push(option),
        }
    }
    let question = if left.is_empty() { "" } else { "?" };
    Ok((format!("{}{question}{}", &url[..at], left.join("&")), taken))
}

/// Pairs are separated by spaces; a value may be quoted, and `\` takes the next character as it is.
fn take_from_pairs(text: &str) -> Result<Split, TargetError> {
    let mut seen = Seen::default();
    let mut taken = Vec::new();
    let mut left = String::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let equals = rest.find('=').ok_or_else(|| malformed("an option has no value"))?;
        let name = rest[..equals].trim();
        let after = rest[equals + 1..].trim_start();
        let (value, length) = value(after)?;
        let end = rest.len() - after.len() + length;
        // A password with a space in it, and no quotes, would be a name here.
        seen.add(name, || None)?;
        match TAKEN.contains(&name) {
            true => taken.push((name.to_string(), value)),
            false => {
                left.push_str(&rest[..end]);
                left.push(' ');
            }
        }
        rest = rest[end..].trim_start();
    }
    Ok((left, taken))
}

/// Options that were met.
#[derive(Default)]
struct Seen(Vec<&'static str>);

impl Seen {
    /// Refuses an option that would have no effect: an unknown one, which is called as `quoted` says, and one that is there
    /// already.
    fn add(
        &mut self,
        name: &str,
        quoted: impl FnOnce() -> Option<String>,
    ) -> Result<(), TargetError> {
        let known = KEPT.into_iter().chain(TAKEN).find(|known| *known == name);
        let name = known.ok_or_else(|| TargetError::UnknownOption {
            name: quoted(),
            known: [&KEPT[4..], &TAKEN[..]].concat(),
        })?;
        if self.0.contains(&name) {
            return Err(TargetError::RepeatedOption { name });
        }
        self.0.push(name);
        Ok(())
    }
}

/// A value without its quotes, and how many bytes it takes with them.
fn value(text: &str) -> Result<(String, usize), TargetError> {
    let is_quoted = text.starts_with('\'');
    let mut plain = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next().map(|(_, taken)| taken)),
            '\'' if is_quoted => return Ok((plain, at + 1)),
            space if space.is_whitespace() && !is_quoted => return Ok((plain, at)),
            other => plain.push(other),
        }
    }
    match is_quoted {
        true => Err(malformed("a quote is not closed")),
        false => Ok((plain, text.len())),
    }
}

fn malformed(reason: &str) -> TargetError {
    TargetError::Malformed { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::{take_from_pairs, take_from_url};
    use crate::error::TargetError;

    fn taken(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn options_of_tls_are_taken_out_of_urls() {
        let url = "postgres://ann:a?sslmode=x@h/db?sslmode=verify-full&options=-c%20a&sslrootcert=%2Fa%20b";
        let (left, found) = take_from_url(url).unwrap();
        assert_eq!(left, "postgres://ann:a?sslmode=x@h/db?options=-c%20a");
        assert_eq!(found, taken(&[("sslmode", "verify-full"), ("sslrootcert", "/a b")]));
        let forgotten = take_from_url("postgres://ann@h/db?keepalives_idle=3").unwrap_err();
        assert!(forgotten.to_string().contains("`keepalives_idle`"), "{forgotten}");
        // What comes before an `@` may be a password's.
        let hidden = take_from_url("postgres://ann:a@b?s3cret@h/db").unwrap_err();
        assert!(!hidden.to_string().contains("s3cret"), "{hidden}");
        let twice = take_from_url("postgres://ann@h/db?sslmode=verify-full&sslmode=disable");
        assert_eq!(twice, Err(TargetError::RepeatedOption { name: "sslmode" }));
        assert!(take_from_pairs("host=h sslmode=require sslmode=disable").is_err());
        assert_eq!(take_from_url("postgres://ann@h/db?").unwrap().0, "postgres://ann@h/db");
        assert!(take_from_pairs("host=h user=ann hostaddr=10.0.0.1").is_err());
        let direct =
            |mode: &str| super::parse(&format!("postgres://ann@h/db?sslnegotiation=direct{mode}"));
        assert!(direct("").unwrap_err().to_string().contains("sslmode=require"));
        assert!(direct("&sslmode=require").is_ok());
        let (left, found) = take_from_url("postgres://ann@h/db?sslmode=prefer").unwrap();
        assert_eq!((left.as_str(), found.len()), ("postgres://ann@h/db", 1));
    }

    #[test]
    fn options_of_tls_are_taken_out_of_pairs() {
        let text = r"host=h password='it\'s = x' sslrootcert = '/a b' sslmode=allow dbname=\ d";
        let (left, found) = take_from_pairs(text).unwrap();
        assert_eq!(left, r"host=h password='it\'s = x' dbname=\ d ");
        assert_eq!(found, taken(&[("sslrootcert", "/a b"), ("sslmode", "allow")]));
        assert!(take_from_pairs("host='h").is_err());
        assert!(take_from_pairs("host").is_err());
    }
}
