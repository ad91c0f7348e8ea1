//! Users who lack rights: they are told so, not that nothing is there, and what they are told to ask for is enough.

use underlay_database::Engine;

use super::{Stranger, WORKLOADS, size};
use crate::common::Ended;

/// A user without any right of his own, with the administrator's password.
struct Novice<'a> {
    stranger: &'a Stranger,
    url: String,
}

impl<'a> Novice<'a> {
    fn new(stranger: &'a Stranger, name: &str) -> Novice<'a> {
        let administrator = stranger.host.server.tcp_target().unwrap().user;
        let password = stranger.password();
        stranger.execute(
            "",
            &match stranger.host.server.target().engine {
                Engine::Postgresql => format!("CREATE ROLE {name} LOGIN PASSWORD '{password}'"),
                Engine::Mariadb => format!("CREATE USER {name}@'%' IDENTIFIED BY '{password}'"),
            },
        );
        let url = stranger.url().replacen(&format!("{administrator}@"), &format!("{name}@"), 1);
        Novice { stranger, url }
    }

    fn drive(&self, workload: &str, arguments: &[&str]) -> Ended {
        self.stranger.drive_at(&self.url, workload, arguments)
    }

    /// Is refused, asks for what is proposed, gets it, and is refused nothing more.
    fn asks_once(&self, workload: &str, arguments: &[&str]) {
        let ended = self.drive(workload, arguments);
        let said = &ended.stderr;
        assert_eq!(ended.code, Some(4), "{workload} {arguments:?}: {said}");
        assert!(said.contains("denied") || said.contains("must be owner"), "{workload}: {said}");
        assert!(!said.contains("load it first"), "{workload} {arguments:?}: {said}");
        let grants: Vec<&str> =
            said.lines().map(str::trim).filter(|line| line.starts_with("GRANT ")).collect();
        assert!(!grants.is_empty(), "{workload} {arguments:?}: {said}");
        grants.iter().for_each(|sql| self.stranger.execute("", sql));
        let ended = self.drive(workload, arguments);
        assert_eq!(
            ended.code,
            Some(0),
            "{workload} {arguments:?} after {grants:?}: {}{}",
            ended.stdout,
            ended.stderr
        );
    }
}

pub fn who_lacks_rights_is_told_which(stranger: &Stranger) {
    const BRIEFLY: [&str; 7] = ["--run", "--users", "2", "--warm-up", "0s", "--duration", "1s"];
    let engine = stranger.host.server.target().engine;
    for workload in WORKLOADS {
        let load = [&[if workload == "batch" { "--run" } else { "--load" }][..], size(workload)];
        let load = load.concat();
        Novice::new(stranger, &format!("{workload}_loader")).asks_once(workload, &load);
        Novice::new(stranger, &format!("{workload}_reader")).asks_once(workload, &["--check"]);
        if workload != "batch" {
            let run: &[&str] =
                if workload == "warehouse" { &["--run", "--streams", "0"] } else { &BRIEFLY };
            Novice::new(stranger, &format!("{workload}_user")).asks_once(workload, run);
        }
        Novice::new(stranger, &format!("{workload}_remover")).asks_once(workload, &["--drop"]);
        // There is nothing now, which one without rights cannot know on MariaDB.
        let nobody = Novice::new(stranger, &format!("{workload}_nobody"));
        let ended = nobody.drive(workload, &["--check"]);
        match engine {
            Engine::Postgresql => assert_eq!(ended.code, Some(2), "{workload}: {}", ended.stderr),
            Engine::Mariadb => assert_eq!(ended.code, Some(4), "{workload}: {}", ended.stderr),
        }
    }
}

/// Rights that end while the load runs: it ends with them, says so, and what was done is still checked.
pub fn a_run_that_is_not_allowed_is_no_result(stranger: &Stranger) {
    stranger.succeed("sysbench", &[&["--load"][..], size("sysbench")].concat());
    let reader = Novice::new(stranger, "only_reads");
    let reading = match stranger.host.server.target().engine {
        Engine::Postgresql => "GRANT SELECT ON ALL TABLES IN SCHEMA public TO only_reads",
        Engine::Mariadb => "GRANT SELECT ON sbtest.* TO only_reads@'%'",
    };
    stranger.execute("", reading);
    let brief = ["--run", "--users", "2", "--warm-up", "0s", "--duration", "600s"];
    let ended = reader.drive("sysbench", &[&brief[..], &["--script", "update_index"]].concat());
    assert_eq!(ended.code, Some(4), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("not allowed") && ended.stderr.contains("sbtest"),
        "{}",
        ended.stderr
    );
    assert!(ended.stdout.contains("errors: other"), "{}", ended.stdout);
    assert!(ended.stdout.contains("checks: 4 made, 0 failed"), "{}", ended.stdout);
    // Reading is allowed.
    let brief = ["--run", "--users", "2", "--warm-up", "0s", "--duration", "1s"];
    reader.drive("sysbench", &[&brief[..], &["--script", "read_only"]].concat()).expect(0);
    stranger.succeed("sysbench", &["--drop"]);
}
