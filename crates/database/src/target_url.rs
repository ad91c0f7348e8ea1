//! URLs of targets, of any engine. What a URL of one engine may hold is in the folder of that engine.

use crate::error::TargetError;
use crate::target::Target;
use crate::{mariadb, postgres};

impl Target {
    /// From `postgres://user:password@host:port/database?options` (or `key=value` pairs), or
    /// `mysql://` or `mariadb://` likewise. A host that starts with `/` (percent-encoded in a URL) is the
    /// directory of PostgreSQL's Unix socket, or MariaDB's Unix socket. Certificates and keys that it names are read now.
    pub fn from_url(url: &str) -> Result<Target, TargetError> {
        if let Some((scheme @ ("mysql" | "mariadb"), rest)) = url.split_once("://") {
            return mariadb::url::parse(scheme, rest);
        }
        // Pairs may have a `://` too, in a value.
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        let is_scheme = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        let is_other_url = scheme.is_some_and(|scheme| {
            is_scheme(scheme) && !matches!(scheme, "postgres" | "postgresql")
        });
        if is_other_url || !(scheme.is_some() || url.contains('=')) {
            return Err(TargetError::Malformed {
                reason: "it is not a postgres:// or mysql:// URL".to_string(),
            });
        }
        postgres::url::parse(url)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::error::TargetError;
    use crate::target::{Address, Target};

    #[test]
    fn reads_urls() {
        let target =
            Target::from_url("postgres://ann:s3cret@db.example:6000/shop?application_name=me")
                .unwrap();
        assert_eq!(target.address, Address::Tcp("db.example".to_string()));
        assert_eq!((target.port, target.user.as_str()), (6000, "ann"));
        assert_eq!(target.database, "shop");
        assert_eq!(target.application_name, "me");
        assert_eq!(target.password.as_ref().unwrap().reveal(), "s3cret");

        let target = Target::from_url("postgresql://ann@%2Frun%2Fpg/").unwrap();
        assert_eq!(target.address, Address::UnixSocket(PathBuf::from("/run/pg")));
        assert_eq!((target.port, target.database.as_str()), (5432, "ann"));
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        let check = |url: &str| Target::from_url(url).unwrap_err();
        assert!(matches!(check("postgres://ann@a,b/x"), TargetError::SeveralHosts));
        assert!(matches!(check("postgres://a/x"), TargetError::NoUser));
        for option in
            ["sslmode=on", "sslmode=verify-ca", "sslrootcert=/nowhere", "sslcert=/nowhere"]
        {
            let error = check(&format!("postgres://ann:s3cret@a/x?{option}"));
            assert!(matches!(error, TargetError::Tls { .. }), "{option}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        assert!(matches!(check("user=ann dbname=x"), TargetError::NoHost));
        for other in ["oracle://ann@a/x", "oracle://x/y", "localhost", ""] {
            assert!(check(other).to_string().contains("not a postgres:// or mysql:// URL"));
        }
        assert!(Target::from_url("host=a user=ann password=x://y").is_ok());
        assert!(matches!(check("postgres://ann@a:port/x"), TargetError::Malformed { .. }));
    }
}
