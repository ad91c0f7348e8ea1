//! Whether a number that a server gave as that of a process or thread means one of this host.
//!
//! Servers in containers have numbers of their own, which mean other processes here, or none. It reads no counters.

use std::path::Path;

use crate::target::{Address, Target};

/// How the command lines of database servers begin.
const SERVERS: [&str; 3] = ["postgres", "mariadb", "mysql"];

impl Target {
    /// Whether its address is of this host. A server in a container may have such an address, too.
    pub fn is_on_this_host(&self) -> bool {
        match &self.address {
            Address::UnixSocket(_) => true,
            Address::Tcp(host) => matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1"),
        }
    }
}

/// Whether a process or thread of this host belongs to a database server. `proc` is where the kernel shows processes.
pub fn is_server_task(proc: &Path, task: u32) -> bool {
    let Ok(command) = std::fs::read(proc.join(task.to_string()).join("cmdline")) else {
        return false;
    };
    let program = command.split(|byte| matches!(byte, 0 | b' ')).next();
    let name = program.and_then(|program| program.rsplit(|byte| *byte == b'/').next());
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    name.is_some_and(|name| SERVERS.iter().any(|server| name.starts_with(server)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_server_task;
    use crate::target::Target;

    #[test]
    fn addresses_of_this_host_are_known() {
        let is_here = |url: &str| Target::from_url(url).unwrap().is_on_this_host();
        assert!(is_here("postgresql://me@127.0.0.1/x") && is_here("mysql://me@localhost/x"));
        assert!(Target::unix_socket("/run/x".into(), 5432, "me").is_on_this_host());
        assert!(!is_here("postgresql://me@db.example.net/x"));
        assert!(!is_here("postgresql://me@10.1.2.3/x"));
    }

    #[test]
    fn a_process_is_a_servers_by_the_name_of_its_program() {
        let proc = tempfile::tempdir().unwrap();
        let is_server = |command: &str| {
            std::fs::create_dir_all(proc.path().join("7")).unwrap();
            std::fs::write(proc.path().join("7/cmdline"), command).unwrap();
            is_server_task(proc.path(), 7)
        };
        assert!(is_server("postgres: me shop [local] idle"));
        assert!(is_server("/usr/sbin/mariadbd\0--datadir=/x\0"));
        assert!(!is_server("/usr/bin/bash\0postgres\0") && !is_server(""));
        assert!(!is_server_task(proc.path(), 8), "there is none");
        assert!(!is_server_task(Path::new("/proc"), std::process::id()), "this test");
    }
}
