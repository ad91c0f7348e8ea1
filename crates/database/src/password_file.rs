//! PostgreSQL's file of passwords, as libpq reads it: <https://www.postgresql.org/docs/current/libpq-pgpass.html>.
//!
//! No error or value shown here contains anything from the file.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use underlay_host::read_small_text;

use crate::target::{Address, Secret, Target};

/// The directories in which a server listens by default: such a socket is called `localhost` in the file.
const DEFAULT_SOCKET_DIRECTORIES: [&str; 3] = ["/tmp", "/var/run/postgresql", "/run/postgresql"];

/// The password of the first line that fits; none when no line does or there is no file.
///
/// # Errors
/// Why the file is not used, for people: it can be read by others, or cannot be read at all.
pub fn look_up(path: &Path, target: &Target) -> Result<Option<Secret>, String> {
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the password file {shown} cannot be read: {error}")),
        Ok(metadata) => metadata,
    };
    if !metadata.is_file() {
        return Err(format!("the password file {shown} is not a regular file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "the password file {shown} can be read by other users and is not used: run chmod 0600 on it"
        ));
    }
    let text = read_small_text(path)
        .map_err(|error| format!("the password file {shown} cannot be read: {error}"))?;
    Ok(find(&text, target))
}

fn find(text: &str, target: &Target) -> Option<Secret> {
    let port = target.port.to_string();
    let hosts = match &target.address {
        Address::Tcp(host) => vec![host.clone()],
        Address::UnixSocket(directory) => {
            let is_default = DEFAULT_SOCKET_DIRECTORIES
                .iter()
                .any(|default| PathBuf::from(default) == *directory);
            let named = directory.to_string_lossy().into_owned();
            if is_default { vec![named, "localhost".to_string()] } else { vec![named] }
        }
    };
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let [host, at, database, user, password] = <[String; 5]>::try_from(fields(line)).ok()?;
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let is_it = hosts.iter().any(|name| fits(&host, name))
            && fits(&at, &port)
            && fits(&database, &target.database)
            && fits(&user, &target.user);
        is_it.then(|| Secret::new(password))
    })
}

/// Five fields between colons; a backslash takes the next character as it is. What follows a fifth colon is ignored.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is always one");
        match character {
            '\\' => field.extend(characters.next()),
            ':' => fields.push(String::new()),
            other => field.push(other),
        }
    }
    fields.truncate(5);
    fields
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::{find, look_up};
    use crate::target::Target;

    const FILE: &str = "# host:port:database:user:password\n\
                        db.example:5433:*:ann:first\n\
                        *:*:shop:ann:with\\:colon\\\\\n\
                        /run/mine:5432:*:*:socket\n\
                        localhost:*:*:*:local\n\
                        broken\n";

    fn found(target: &Target) -> Option<String> {
        find(FILE, target).map(|secret| secret.reveal().to_string())
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        let of = |url: &str| found(&Target::from_url(url).unwrap());
        assert_eq!(of("postgres://ann@db.example:5433/shop").as_deref(), Some("first"));
        assert_eq!(of("postgres://ann@db.example/shop").as_deref(), Some("with:colon\\"));
        assert_eq!(of("postgres://bob@db.example:5433/shop"), None);
        assert_eq!(of("postgres://bob@localhost/x").as_deref(), Some("local"));
        let socket = |directory: &str| Target::unix_socket(PathBuf::from(directory), 5432, "bob");
        assert_eq!(found(&socket("/run/mine")).as_deref(), Some("socket"));
        assert_eq!(found(&socket("/tmp")).as_deref(), Some("local"));
        assert_eq!(found(&socket("/run/other")), None);
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgpass");
        let target = Target::from_url("postgres://ann@db.example:5433/shop").unwrap();
        assert!(look_up(&path, &target).unwrap().is_none());
        fs::write(&path, FILE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = look_up(&path, &target).unwrap_err();
        assert!(refused.contains("0600") && !refused.contains("first"), "{refused}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(look_up(&path, &target).unwrap().unwrap().reveal(), "first");
    }
}
