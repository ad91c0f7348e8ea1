//! BenchBase's TPC-C, where a user has installed it: `BENCHBASE_HOME` names the folder with `benchbase.jar`, its
//! `lib` and its `config`; `java` is on PATH.
//!
//! A build of BenchBase brings the JDBC driver of one engine; whose driver is not in `lib` cannot be driven. It
//! is configured as its own sample is: serializable transactions, its weights, as fast as answers come. The start
//! of its virtual machine and the compilation within it are part of its CPU time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use underlay_database::Engine;

use crate::Failure;
use crate::benchbase_output::{latencies_us, measured_seconds, quantile};
use crate::child::{self, Ended, tail};
use crate::compare::{Conditions, Generator};
use crate::is_installed;
use crate::place::Place;
use crate::population::Population;
use crate::run::{QUANTILES, Run};

const DATABASE: &str = "benchbase";

/// An installation.
#[derive(Clone, Debug)]
pub struct Installation {
    folder: PathBuf,
}

impl Installation {
    /// What the environment names, if it can drive the engine.
    ///
    /// # Errors
    /// Why there is none, for a line that says what is skipped.
    pub fn find(engine: Engine) -> Result<Installation, String> {
        let Some(home) = std::env::var_os("BENCHBASE_HOME") else {
            return Err("no BENCHBASE_HOME with benchbase.jar".to_string());
        };
        let folder = PathBuf::from(home);
        if !folder.join("benchbase.jar").is_file() {
            return Err(format!("no benchbase.jar in BENCHBASE_HOME, {}", folder.display()));
        }
        if !is_installed("java") {
            return Err("no java on PATH for BenchBase".to_string());
        }
        let driver = driver_file(engine);
        let files = std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
        if files.map(|file| file.file_name()).any(|file| file.to_string_lossy().starts_with(driver))
        {
            Ok(Installation { folder })
        } else {
            Err(format!("no {driver}*.jar in lib of BENCHBASE_HOME"))
        }
    }

    /// Its program with a configuration and what it shall do.
    fn carry_out(
        &self,
        configuration: &str,
        work: &Path,
        actions: &[&str],
    ) -> Result<Ended, Failure> {
        let file = work.join("tpcc.xml");
        std::fs::write(&file, configuration)?;
        let what = format!("benchbase {}", actions.join(" "));
        let mut command = Command::new("java");
        command
            // By class path: the archive's own names the driver that it was built with alone.
            .args([
                "-cp",
                "benchbase.jar:lib/*",
                "com.oltpbenchmark.DBWorkload",
                "-b",
                "tpcc",
                "-c",
            ])
            .arg(&file)
            .arg("-d")
            .arg(work)
            .args(actions)
            .current_dir(&self.folder);
        child::run(&mut command, &what)
    }
}

/// How the file of an engine's JDBC driver begins.
fn driver_file(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "postgresql-",
        Engine::Mariadb => "mariadb-java-client-",
    }
}

/// A loaded database.
pub struct BenchBase {
    installation: Installation,
    population: Population,
    /// How long creating and loading took, start-up included.
    pub loaded_in: Duration,
}

impl BenchBase {
    /// Makes and fills its database with `parallel` loaders.
    pub fn prepare(
        installation: Installation,
        place: &Place,
        warehouses: u32,
        parallel: usize,
    ) -> Result<BenchBase, Failure> {
        let population = Population { database: DATABASE, warehouses, orders: "oorder" };
        population.create_database(place)?;
        let work = tempfile::tempdir()?;
        let load = Load { warehouses, users: 1, seconds: 1, loaders: parallel };
        let ended = installation.carry_out(
            &configuration(place, &load),
            work.path(),
            &["--create=true", "--load=true", "--execute=false"],
        )?;
        match population.order_numbers(place) {
            Ok(1..) => Ok(BenchBase { installation, population, loaded_in: ended.elapsed }),
            Ok(0) => Err(format!("benchbase loaded nothing\n{}", tail(&ended.stdout)).into()),
            Err(error) => {
                Err(format!("benchbase loaded nothing: {error}\n{}", tail(&ended.stdout)).into())
            }
        }
    }

    /// What it is judged by.
    pub fn population(&self) -> &Population {
        &self.population
    }
}

impl Generator for BenchBase {
    fn name(&self) -> &str {
        "benchbase"
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let work = tempfile::tempdir()?;
        let load = Load {
            warehouses: self.population.warehouses,
            users: conditions.users,
            seconds: conditions.seconds,
            loaders: 1,
        };
        let before = self.population.order_numbers(place)?;
        let ended = self.installation.carry_out(
            &configuration(place, &load),
            work.path(),
            &["--create=false", "--load=false", "--execute=true"],
        )?;
        let orders = self.population.order_numbers(place)? - before;
        let told_nothing = || format!("benchbase left no results\n{}", tail(&ended.stdout));
        let seconds = measured_seconds(&file_ending_with(work.path(), ".summary.json")?)
            .ok_or_else(told_nothing)?;
        let raw = file_ending_with(work.path(), ".raw.csv")?;
        let latencies = latencies_us(&raw, "NewOrder").ok_or_else(told_nothing)?;
        Ok(Run {
            seconds,
            // It measures from its first to its last transaction, so these are all.
            units: orders,
            whole_run: orders,
            cpu: ended.cpu,
            cpu_units: orders,
            quantiles_ms: QUANTILES
                .map(|(_, share)| quantile(&latencies, share).map(|us| us as f64 / 1e3)),
            tpm: None,
            verdict: Some(self.population.verdict(place)?),
        })
    }
}

/// The text of the one file whose name ends so.
fn file_ending_with(folder: &Path, ending: &str) -> Result<String, Failure> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(ending) {
            return Ok(std::fs::read_to_string(path)?);
        }
    }
    Err(format!("benchbase left no file that ends with {ending}").into())
}

/// What differs from its sample.
struct Load {
    warehouses: u32,
    users: u32,
    seconds: u64,
    loaders: usize,
}

/// Its configuration.
fn configuration(place: &Place, load: &Load) -> String {
    let Place { host, port, .. } = place;
    let (kind, driver, url) = match place.engine {
        Engine::Postgresql => (
            "POSTGRES",
            "org.postgresql.Driver",
            format!(
                "jdbc:postgresql://{host}:{port}/{DATABASE}?sslmode=disable&reWriteBatchedInserts=true"
            ),
        ),
        Engine::Mariadb => (
            "MARIADB",
            "org.mariadb.jdbc.Driver",
            format!("jdbc:mariadb://{host}:{port}/{DATABASE}?useServerPrepStmts"),
        ),
    };
    let Load { warehouses, users, seconds, loaders } = load;
    let types = ["NewOrder", "Payment", "OrderStatus", "Delivery", "StockLevel"];
    let types: String = types
        .iter()
        .map(|name| format!("<transactiontype><name>{name}</name></transactiontype>"))
        .collect();
    let (url, user, password) = (escaped(&url), escaped(&place.user), escaped(&place.password));
    format!(
        "<?xml version=\"1.0\"?>\n<parameters>\n\
         <type>{kind}</type>\n<driver>{driver}</driver>\n<url>{url}</url>\n\
         <username>{user}</username>\n<password>{password}</password>\n\
         <reconnectOnConnectionFailure>true</reconnectOnConnectionFailure>\n\
         <isolation>TRANSACTION_SERIALIZABLE</isolation>\n<batchsize>128</batchsize>\n\
         <scalefactor>{warehouses}</scalefactor>\n<loaderThreads>{loaders}</loaderThreads>\n\
         <terminals>{users}</terminals>\n\
         <works><work><time>{seconds}</time><rate>unlimited</rate><weights>45,43,4,4,4</weights></work></works>\n\
         <transactiontypes>{types}</transactiontypes>\n</parameters>\n"
    )
}

/// A text within an element of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use underlay_database::Engine;

    use super::{BenchBase, Installation, Load, configuration};
    use crate::compare::{Conditions, Generator};
    use crate::place::Place;
    use crate::stand::Stand;

    #[test]
    fn a_configuration_says_what_the_pair_has_in_common() {
        let place = Place {
            engine: Engine::Postgresql,
            host: "127.0.0.1".to_string(),
            port: 5433,
            user: "me".to_string(),
            password: "<&>".to_string(),
            database: "postgres".to_string(),
        };
        let load = Load { warehouses: 3, users: 8, seconds: 10, loaders: 2 };
        let text = configuration(&place, &load);
        for part in [
            "<type>POSTGRES</type>",
            "jdbc:postgresql://127.0.0.1:5433/benchbase?sslmode=disable&amp;reWrite",
            "<password>&lt;&amp;&gt;</password>",
            "<scalefactor>3</scalefactor>",
            "<terminals>8</terminals>",
            "<time>10</time>",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let text = configuration(&Place { engine: Engine::Mariadb, ..place }, &load);
        assert!(text.contains("jdbc:mariadb://127.0.0.1:5433/benchbase?useServerPrepStmts"));
    }

    #[test]
    fn a_real_benchbase_is_driven_and_judged() {
        for engine in Engine::ALL {
            let installation = match Installation::find(engine) {
                Ok(installation) => installation,
                Err(reason) => {
                    eprintln!("skip: {reason}");
                    continue;
                }
            };
            let Ok(stand) = Stand::start(engine) else {
                eprintln!("skip: no {engine} server programs on this host");
                continue;
            };
            let place = stand.place();
            let peer = BenchBase::prepare(installation, &place, 1, 2).unwrap();
            let run = peer.run(&place, &Conditions { seconds: 4, users: 2 }).unwrap();
            assert!(run.units > 0 && !run.cpu.is_zero() && run.seconds > 0.0, "{run:?}");
            assert!(run.quantiles_ms.iter().all(Option::is_some), "{run:?}");
            // Its tables have all columns that the checks read.
            assert_eq!(run.verdict.unwrap().unmade, [], "{engine}");
        }
    }
}
