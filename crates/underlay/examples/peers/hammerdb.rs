//! HammerDB's TPROC-C, where a user has installed it: its command line is given scripts that build its schema and
//! make timed runs.
//!
//! It is found in `HAMMERDB_HOME`, or where `hammerdbcli` on PATH lies, and runs in that folder, as it wants.
//! Its databases of jobs and its logs go to a folder of our own. Its timed runs last whole minutes. Percentiles are
//! those of its time profiler, so the profiler is on, and its cost is part of HammerDB's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use underlay_database::Engine;

use crate::Failure;
use crate::child::{self, Ended, tail};
use crate::compare::{Conditions, Generator};
use crate::hammerdb_output::{summary, test_result, troubles};
use crate::place::Place;
use crate::population::Population;
use crate::run::{Run, Tpm};

const PROGRAM: &str = "hammerdbcli";
/// The database, and on PostgreSQL the role that owns it.
const DATABASE: &str = "hammerdb";

/// An installation.
#[derive(Clone, Debug)]
pub struct Installation {
    folder: PathBuf,
}

impl Installation {
    /// What the environment names.
    ///
    /// # Errors
    /// Why there is none, for a line that says what is skipped.
    pub fn find() -> Result<Installation, String> {
        if let Some(home) = std::env::var_os("HAMMERDB_HOME") {
            let folder = PathBuf::from(home);
            return if folder.join(PROGRAM).is_file() {
                Ok(Installation { folder })
            } else {
                Err(format!("no {PROGRAM} in HAMMERDB_HOME, {}", folder.display()))
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program =
            std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|it| it.is_file());
        let real = program.and_then(|program| program.canonicalize().ok());
        real.and_then(|program| Some(Installation { folder: program.parent()?.to_path_buf() }))
            .ok_or_else(|| format!("no {PROGRAM} on PATH and no HAMMERDB_HOME"))
    }

    /// Lets it carry out a script.
    fn carry_out(&self, script: &str, work: &Path, what: &str) -> Result<Ended, Failure> {
        let file = work.join("script.tcl");
        std::fs::write(&file, script)?;
        let ended = child::run(
            Command::new(self.folder.join(PROGRAM))
                .args(["tcl", "auto"])
                .arg(&file)
                .current_dir(&self.folder)
                .env("TMP", work),
            what,
        )?;
        match troubles(&ended.stdout).as_slice() {
            [] => Ok(ended),
            [first, ..] => Err(format!("{what}: {first}\n{}", tail(&ended.stdout)).into()),
        }
    }
}

/// A database that HammerDB built.
pub struct HammerDb {
    installation: Installation,
    population: Population,
    /// How long building took, start-up included.
    pub built_in: Duration,
}

impl HammerDb {
    /// Builds its schema with `parallel` virtual users.
    pub fn prepare(
        installation: Installation,
        place: &Place,
        warehouses: u32,
        parallel: usize,
    ) -> Result<HammerDb, Failure> {
        let work = tempfile::tempdir()?;
        let script = build_script(place, warehouses, parallel);
        let ended = installation.carry_out(&script, work.path(), "hammerdbcli buildschema")?;
        let population = Population { database: DATABASE, warehouses, orders: "orders" };
        // Its program ends well even if nothing was built.
        match population.order_numbers(place) {
            Ok(1..) => Ok(HammerDb { installation, population, built_in: ended.elapsed }),
            Ok(0) => Err(format!("hammerdbcli built no schema\n{}", tail(&ended.stdout)).into()),
            Err(error) => {
                Err(format!("hammerdbcli built no schema: {error}\n{}", tail(&ended.stdout)).into())
            }
        }
    }

    /// What it is judged by.
    pub fn population(&self) -> &Population {
        &self.population
    }
}

impl Generator for HammerDb {
    fn name(&self) -> &str {
        "hammerdb"
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let minutes = minutes(conditions.seconds);
        let work = tempfile::tempdir()?;
        let script = run_script(place, minutes, conditions.users);
        let before = self.population.order_numbers(place)?;
        let ended = self.installation.carry_out(&script, work.path(), "hammerdbcli vurun")?;
        let orders = self.population.order_numbers(place)? - before;
        let result = test_result(&ended.stdout)
            .ok_or_else(|| format!("hammerdbcli reported no result\n{}", tail(&ended.stdout)))?;
        let timings = summary(&profile(work.path())?);
        let new_order = timings.iter().find(|timing| timing.procedure == "NEWORD");
        Ok(Run {
            seconds: (minutes * 60) as f64,
            units: result.nopm * minutes,
            whole_run: orders,
            cpu: ended.cpu,
            cpu_units: orders,
            quantiles_ms: match new_order {
                Some(timing) => [timing.p50_ms, timing.p95_ms, timing.p99_ms].map(Some),
                None => [None; 3],
            },
            tpm: Some(Tpm {
                per_minute: result.tpm as f64,
                definition: format!(
                    "{}, as HammerDB counts: {}",
                    result.engine,
                    counted(place.engine)
                ),
            }),
            verdict: Some(self.population.verdict(place)?),
        })
    }
}

/// Its unit of time: seconds as whole minutes, at least one.
pub fn minutes(seconds: u64) -> u64 {
    seconds.div_ceil(60).max(1)
}

/// What its TPM are.
fn counted(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "commits and rollbacks of all databases of the server",
        Engine::Mariadb => "Com_commit and Com_rollback of the server",
    }
}

/// What the time profiler wrote; its file may have a unique name.
fn profile(work: &Path) -> Result<String, Failure> {
    for entry in std::fs::read_dir(work)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hdbxtprofile")) {
            return Ok(std::fs::read_to_string(path)?);
        }
    }
    Ok(String::new())
}

fn build_script(place: &Place, warehouses: u32, parallel: usize) -> String {
    let mut script = preamble(place);
    let prefix = prefix(place.engine);
    // A warehouse is built by one user, and there must not be more users than warehouses.
    let users = parallel.clamp(1, warehouses.max(1) as usize);
    script += &format!("diset tpcc {prefix}_count_ware {warehouses}\n");
    script += &format!("diset tpcc {prefix}_num_vu {users}\n");
    script += "buildschema\n";
    script
}

fn run_script(place: &Place, minutes: u64, users: u32) -> String {
    let mut script = preamble(place);
    let prefix = prefix(place.engine);
    for (name, value) in [
        ("driver", "timed".to_string()),
        ("total_iterations", "10000000".to_string()),
        // Nothing is warm before a peer's first run, and ramp-up would be in its percentiles all the same.
        ("rampup", "0".to_string()),
        ("duration", minutes.to_string()),
        ("keyandthink", "false".to_string()),
        ("allwarehouse", "false".to_string()),
        ("timeprofile", "true".to_string()),
    ] {
        script += &format!("diset tpcc {prefix}_{name} {value}\n");
    }
    script += "catch {giset timeprofile profiler xtprof}\n";
    script += &format!("loadscript\nvuset vu {users}\nvucreate\nvurun\nvudestroy\n");
    script
}

/// The engine, the server and who we are.
fn preamble(place: &Place) -> String {
    let mut script = String::new();
    let mut say = |dictionary: &str, name: &str, value: &str| {
        script += &format!("diset {dictionary} {name} {}\n", word(value));
    };
    let port = place.port.to_string();
    match place.engine {
        Engine::Postgresql => {
            say("connection", "pg_host", &place.host);
            say("connection", "pg_port", &port);
            say("connection", "pg_sslmode", "disable");
            say("tpcc", "pg_superuser", &place.user);
            say("tpcc", "pg_superuserpass", &place.password);
            say("tpcc", "pg_defaultdbase", "postgres");
            say("tpcc", "pg_user", DATABASE);
            say("tpcc", "pg_pass", &place.password);
            say("tpcc", "pg_dbase", DATABASE);
            say("tpcc", "pg_storedprocs", "true");
        }
        Engine::Mariadb => {
            say("connection", "maria_host", &place.host);
            say("connection", "maria_port", &port);
            // Or it takes 127.0.0.1 for a socket.
            say("connection", "maria_socket", "null");
            say("tpcc", "maria_user", &place.user);
            say("tpcc", "maria_pass", &place.password);
            say("tpcc", "maria_dbase", DATABASE);
        }
    }
    let engine = match place.engine {
        Engine::Postgresql => "pg",
        Engine::Mariadb => "maria",
    };
    format!("dbset db {engine}\ndbset bm TPC-C\n{script}")
}

fn prefix(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "pg",
        Engine::Mariadb => "maria",
    }
}

/// A text as one word of Tcl, in which nothing is substituted.
fn word(text: &str) -> String {
    text.chars().fold(String::new(), |mut word, character| {
        if !character.is_alphanumeric() {
            word.push('\\');
        }
        word.push(character);
        word
    })
}

#[cfg(test)]
mod tests {
    use underlay_database::Engine;
    use underlay_host::skip;

    use super::{HammerDb, Installation, build_script, minutes, run_script, word};
    use crate::compare::{Conditions, Generator};
    use crate::place::Place;
    use crate::stand::Stand;

    fn place(engine: Engine) -> Place {
        Place {
            engine,
            host: "127.0.0.1".to_string(),
            port: 5433,
            user: "me".to_string(),
            password: "a$b[c]".to_string(),
            database: "postgres".to_string(),
        }
    }

    #[test]
    fn runs_last_whole_minutes() {
        assert_eq!([0, 2, 60, 61, 300].map(minutes), [1, 1, 1, 2, 5]);
    }

    #[test]
    fn nothing_in_a_word_of_tcl_is_substituted() {
        assert_eq!(word("tpcc"), "tpcc");
        assert_eq!(word("a$b [c]{"), r"a\$b\ \[c\]\{");
    }

    #[test]
    fn scripts_say_what_the_pair_has_in_common() {
        let script = run_script(&place(Engine::Postgresql), 2, 8);
        for line in [
            "dbset db pg",
            "diset tpcc pg_storedprocs true",
            "diset tpcc pg_duration 2",
            "diset tpcc pg_superuserpass a\\$b\\[c\\]",
            "vuset vu 8",
        ] {
            assert!(script.lines().any(|other| other == line), "{line} in\n{script}");
        }
        // No more users than warehouses.
        let script = build_script(&place(Engine::Mariadb), 1, 4);
        assert!(script.contains("maria_num_vu 1\n") && script.contains("maria_socket null\n"));
        assert!(script.ends_with("buildschema\n"));
    }

    #[test]
    fn a_real_hammerdb_is_driven_and_judged() {
        let installation = match Installation::find() {
            Ok(installation) => installation,
            Err(reason) => skip!("{reason}"),
        };
        for engine in Engine::ALL {
            let Ok(stand) = Stand::start(engine) else {
                eprintln!("skip: no {engine} server programs on this host");
                continue;
            };
            let place = stand.place();
            let peer = HammerDb::prepare(installation.clone(), &place, 1, 2).unwrap();
            let run = peer.run(&place, &Conditions { seconds: 1, users: 2 }).unwrap();
            assert!(run.units > 0 && run.cpu_units > 0 && !run.cpu.is_zero(), "{run:?}");
            assert!(run.quantiles_ms.iter().all(Option::is_some), "{run:?}");
            assert!(run.tpm.as_ref().is_some_and(|tpm| tpm.per_minute > 0.0), "{run:?}");
            // Its tables have all columns that the checks read, and what they find is known for long.
            let verdict = run.verdict.unwrap();
            assert_eq!(verdict.unmade, [], "{engine}");
            let violated = |id: &str| verdict.violated.iter().any(|(other, _)| other == id);
            assert!(violated("c10") && !violated("c1"), "{engine}: {verdict:?}");
        }
    }
}
