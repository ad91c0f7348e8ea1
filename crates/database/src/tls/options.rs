//! The TLS options of a URL, as named by its engine.
//!
//! Only text is parsed here; files are read in [`material`](super::material).

use std::path::PathBuf;

use crate::error::TargetError;

/// How much TLS there must be. The names are libpq's; MariaDB and MySQL know all but `Allow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// None.
    #[default]
    Disable,
    /// Only when the server refuses a session without.
    Allow,
    /// When the server offers it.
    Prefer,
    /// Always.
    Require,
    /// Always, with a certificate that the roots vouch for.
    VerifyCa,
    /// Always, with a certificate that the roots vouch for and that names the host of the URL.
    VerifyFull,
}

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The certificates in a PEM file.
    File(PathBuf),
    /// What the system trusts.
    System,
}

/// What is verified of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Nothing: an attacker in between can read everything.
    Nothing,
    /// That a trusted root vouches for it.
    Issuer,
    /// That, and that it names the host.
    Name,
}

/// What a URL asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// How much TLS there must be.
    pub mode: TlsMode,
    /// Whom to trust.
    pub roots: Option<Roots>,
    /// The client's certificate, with its chain.
    pub certificate: Option<PathBuf>,
    /// The private key of the client's certificate.
    pub key: Option<PathBuf>,
}

/// How an engine's URL says it.
#[derive(Debug)]
pub(crate) struct Words {
    pub mode: &'static str,
    pub roots: &'static str,
    pub certificate: &'static str,
    pub key: &'static str,
    /// From the weakest to the strongest.
    pub modes: &'static [(&'static str, TlsMode)],
    /// The mode when none is given, without and with roots.
    pub unsaid: (TlsMode, TlsMode),
    /// Where the engine's own client looks for roots, certificate and key below the home directory.
    pub at_home: Option<[&'static str; 3]>,
    /// Whether a key that others may read is refused.
    pub private_keys: bool,
    /// What the server and the client agree to speak, where the engine's protocol says so.
    pub protocols: &'static [&'static str],
}

/// libpq's: <https://www.postgresql.org/docs/current/libpq-ssl.html>.
pub(crate) const POSTGRES_WORDS: Words = Words {
    mode: "sslmode",
    roots: "sslrootcert",
    certificate: "sslcert",
    key: "sslkey",
    modes: &[
        ("disable", TlsMode::Disable),
        ("allow", TlsMode::Allow),
        ("prefer", TlsMode::Prefer),
        ("require", TlsMode::Require),
        ("verify-ca", TlsMode::VerifyCa),
        ("verify-full", TlsMode::VerifyFull),
    ],
    unsaid: (TlsMode::Prefer, TlsMode::Prefer),
    at_home: Some([
        ".postgresql/root.crt",
        ".postgresql/postgresql.crt",
        ".postgresql/postgresql.key",
    ]),
    private_keys: true,
    protocols: &["postgresql"],
};

/// MySQL's: <https://dev.mysql.com/doc/refman/8.4/en/connection-options.html>. Roots alone mean that they are used.
pub(crate) const MARIADB_WORDS: Words = Words {
    mode: "ssl-mode",
    roots: "ssl-ca",
    certificate: "ssl-cert",
    key: "ssl-key",
    modes: &[
        ("disabled", TlsMode::Disable),
        ("preferred", TlsMode::Prefer),
        ("required", TlsMode::Require),
        ("verify_ca", TlsMode::VerifyCa),
        ("verify_identity", TlsMode::VerifyFull),
    ],
    unsaid: (TlsMode::Prefer, TlsMode::VerifyCa),
    at_home: None,
    private_keys: false,
    protocols: &[],
};

impl TlsMode {
    /// Whether a session without TLS is refused.
    pub fn demands(self) -> bool {
        matches!(self, TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull)
    }
}

impl Verification {
    /// The word used in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verification::Nothing => "nothing",
            Verification::Issuer => "issuer",
            Verification::Name => "name",
        }
    }
}

impl TlsOptions {
    /// What is verified when `has_roots` says whether there is anybody to trust: roots that are there are used,
    /// whatever the mode, as in libpq.
    pub(super) fn verification(&self, has_roots: bool) -> Verification {
        match self.mode {
            TlsMode::VerifyFull => Verification::Name,
            TlsMode::VerifyCa => Verification::Issuer,
            _ if has_roots => Verification::Issuer,
            _ => Verification::Nothing,
        }
    }

    /// From the options of a URL, each with its value; `is_socket` when the URL names a Unix socket.
    pub(crate) fn read(
        words: &Words,
        given: &[(String, String)],
        is_socket: bool,
    ) -> Result<TlsOptions, TargetError> {
        let value = |name: &str| {
            let matches = |key: &str| key.replace('_', "-").eq_ignore_ascii_case(name);
            given.iter().rev().find(|(key, _)| matches(key)).map(|(_, value)| value.as_str())
        };
        let path = |name| value(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        let roots = path(words.roots).map(|path| match path.to_str() {
            Some("system") => Roots::System,
            _ => Roots::File(path),
        });
        let said = value(words.mode).or_else(|| value("sslmode")).map(|word| mode(words, word));
        let mode = match (said.transpose()?, &roots) {
            (Some(mode), _) => mode,
            (None, Some(Roots::System)) => TlsMode::VerifyFull,
            (None, Some(Roots::File(_))) => words.unsaid.1,
            (None, None) => words.unsaid.0,
        };
        let strongest = words.modes.last().map_or("", |(word, _)| word);
        if is_socket {
            if mode.demands() {
                return Err(unsatisfiable(format!(
                    "`{}` demands TLS, but a Unix socket has none (its data never leaves the host): omit the option, \
                     or name a host",
                    words.mode
                )));
            }
            return Ok(TlsOptions::default());
        }
        // Anybody can have a certificate from a public authority: it says nothing without the name.
        if roots == Some(Roots::System) && !matches!(mode, TlsMode::VerifyFull | TlsMode::Disable) {
            return Err(unsatisfiable(format!(
                "`{}=system` trusts public authorities, which issue certificates to anyone: use it with \
                 `{}={strongest}`",
                words.roots, words.mode
            )));
        }
        let (certificate, key) = (path(words.certificate), path(words.key));
        if certificate.is_some() != key.is_some() && words.at_home.is_none() {
            return Err(unsatisfiable(format!(
                "`{}` and `{}` must be used together: name both",
                words.certificate, words.key
            )));
        }
        Ok(TlsOptions { mode, roots, certificate, key })
    }
}

fn mode(words: &Words, word: &str) -> Result<TlsMode, TargetError> {
    // libpq's words name the same things, and are taken for the other engines too.
    let word = word.to_ascii_lowercase();
    let known = words.modes.iter().chain(POSTGRES_WORDS.modes.iter());
    let is_known = |mode: TlsMode| words.modes.iter().any(|(_, known)| *known == mode);
    known
        .filter(|(_, mode)| is_known(*mode))
        .find(|(known, _)| *known == word)
        .map(|(_, mode)| *mode)
        .ok_or_else(|| {
            let allowed: Vec<&str> = words.modes.iter().map(|(word, _)| *word).collect();
            unsatisfiable(format!("`{}` is one of {}", words.mode, allowed.join(", ")))
        })
}

pub(super) fn unsatisfiable(reason: String) -> TargetError {
    TargetError::Tls { reason }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{MARIADB_WORDS, POSTGRES_WORDS, Roots, TlsMode, TlsOptions, Words};

    fn read(words: &Words, text: &str, is_socket: bool) -> Result<TlsOptions, String> {
        let given: Vec<(String, String)> = text
            .split('&')
            .filter_map(|option| option.split_once('='))
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        TlsOptions::read(words, &given, is_socket).map_err(|error| error.to_string())
    }

    #[test]
    fn each_engine_has_its_words() {
        let mode = |words, text: &str| read(words, text, false).map(|options| options.mode);
        for (text, expected) in POSTGRES_WORDS.modes {
            assert_eq!(mode(&POSTGRES_WORDS, &format!("sslmode={text}")), Ok(*expected), "{text}");
        }
        for (text, expected) in MARIADB_WORDS.modes {
            let written = format!("ssl_mode={}", text.to_uppercase());
            assert_eq!(mode(&MARIADB_WORDS, &written), Ok(*expected), "{text}");
        }
        assert_eq!(mode(&MARIADB_WORDS, "sslmode=verify-full"), Ok(TlsMode::VerifyFull));
        for (words, text) in [
            (&POSTGRES_WORDS, "sslmode=verify_identity"),
            (&MARIADB_WORDS, "ssl-mode=allow"),
            (&MARIADB_WORDS, "ssl-mode="),
        ] {
            let error = mode(words, text).unwrap_err();
            for (word, _) in words.modes {
                assert!(error.contains(word), "{error}");
            }
        }
    }

    #[test]
    fn without_a_mode_it_is_the_clients_own() {
        let mode = |words, text: &str| read(words, text, false).unwrap().mode;
        assert_eq!(mode(&POSTGRES_WORDS, ""), TlsMode::Prefer);
        assert_eq!(mode(&POSTGRES_WORDS, "sslrootcert=/r"), TlsMode::Prefer);
        assert_eq!(mode(&POSTGRES_WORDS, "sslrootcert=system"), TlsMode::VerifyFull);
        assert_eq!(mode(&MARIADB_WORDS, ""), TlsMode::Prefer);
        assert_eq!(mode(&MARIADB_WORDS, "ssl-ca=/r"), TlsMode::VerifyCa);
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_the_remedy() {
        let refused = |words, text: &str, is_socket| read(words, text, is_socket).unwrap_err();
        let system = "sslmode=require&sslrootcert=system";
        assert!(refused(&POSTGRES_WORDS, system, false).contains("sslmode=verify-full"));
        let socket = refused(&POSTGRES_WORDS, "sslmode=require", true);
        assert!(socket.contains("Unix socket") && socket.contains("leave"), "{socket}");
        assert!(refused(&MARIADB_WORDS, "ssl-cert=/c", false).contains("ssl-key"));
        let quiet = read(&POSTGRES_WORDS, "sslmode=prefer", true).unwrap();
        assert_eq!(quiet, TlsOptions::default());
    }

    #[test]
    fn paths_are_taken_as_they_are() {
        let options =
            read(&POSTGRES_WORDS, "sslrootcert=/a b/r&sslcert=c&sslkey=k", false).unwrap();
        assert_eq!(options.roots, Some(Roots::File(PathBuf::from("/a b/r"))));
        assert_eq!(options.certificate, Some(PathBuf::from("c")));
        assert_eq!(options.key, Some(PathBuf::from("k")));
    }
}
