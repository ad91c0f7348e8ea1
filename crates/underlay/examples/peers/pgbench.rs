//! PostgreSQL's pgbench with its select-only script. Its percentiles are made from its log of every tenth
//! transaction; it has none of its own.

use std::process::Command;

use crate::Failure;
use crate::child;
use crate::compare::{Conditions, Generator};
use crate::place::Place;
use crate::run::{QUANTILES, Run};

/// Rows of pgbench's table at scale 1.
const ROWS_PER_SCALE: u32 = 100_000;
/// A log of every transaction would cost more than the transactions.
const LOGGED_SHARE: &str = "0.1";

/// The select-only script on a database that was prepared for it.
pub struct Pgbench {
    log: tempfile::TempDir,
}

impl Pgbench {
    /// Makes its tables with about as many rows.
    pub fn prepare(place: &Place, rows: u32) -> Result<Pgbench, Failure> {
        let scale = rows.div_ceil(ROWS_PER_SCALE).max(1);
        let mut command = pgbench(place);
        child::run(command.args(["-i", "-q", "-s", &scale.to_string()]), "pgbench -i")?;
        Ok(Pgbench { log: tempfile::tempdir()? })
    }
}

fn pgbench(place: &Place) -> Command {
    let mut command = Command::new("pgbench");
    command
        .args(["-h", &place.host, "-p", &place.port.to_string(), "-U", &place.user])
        .env("PGPASSWORD", &place.password)
        .env("PGDATABASE", &place.database)
        // The server is known not to speak TLS: asking would be a round trip.
        .env("PGSSLMODE", "disable");
    command
}

impl Generator for Pgbench {
    fn name(&self) -> &str {
        "pgbench"
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let threads = std::thread::available_parallelism()?.get().min(conditions.users as usize);
        let mut command = pgbench(place);
        command
            .args(["-n", "-S", "-M", "prepared", "-l", "--sampling-rate", LOGGED_SHARE])
            .args(["-c", &conditions.users.to_string(), "-j", &threads.to_string()])
            .args(["-T", &conditions.seconds.to_string()])
            .arg(format!("--log-prefix={}", self.log.path().join("log").display()));
        let ended = child::run(&mut command, "pgbench")?;
        let transactions = processed(&ended.stdout).ok_or("pgbench reported no transactions")?;
        let latencies = self.take_latencies()?;
        Ok(Run {
            seconds: conditions.seconds as f64,
            units: transactions,
            whole_run: transactions,
            cpu: ended.cpu,
            cpu_units: transactions,
            quantiles_ms: QUANTILES.map(|(_, share)| {
                let place = (latencies.len() as f64 * share) as usize;
                latencies.get(place).map(|us| *us as f64 / 1e3)
            }),
            tpm: None,
            // Nothing is written.
            verdict: None,
        })
    }
}

impl Pgbench {
    /// Those of the logs, ascending; the logs are removed.
    fn take_latencies(&self) -> Result<Vec<u64>, Failure> {
        let mut latencies = Vec::new();
        for entry in std::fs::read_dir(self.log.path())? {
            let path = entry?.path();
            latencies.extend(latencies_us(&std::fs::read_to_string(&path)?));
            std::fs::remove_file(path)?;
        }
        latencies.sort_unstable();
        Ok(latencies)
    }
}

/// The number in `number of transactions actually processed: 12345`; some versions put `/` and the number wanted
/// behind it.
fn processed(output: &str) -> Option<u64> {
    let (_, rest) = output.split_once("actually processed: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The third field of each line of a log, in us.
fn latencies_us(log: &str) -> impl Iterator<Item = u64> {
    log.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{latencies_us, processed};

    #[test]
    fn a_report_and_a_log_are_read() {
        let report = "\
transaction type: <builtin: select only>
scaling factor: 4
number of transactions actually processed: 48210
number of failed transactions: 0 (0.000%)
";
        assert_eq!(processed(report), Some(48210));
        assert_eq!(processed("number of transactions actually processed: 17/1000\n"), Some(17));
        assert_eq!(processed("tps = 12"), None);
        let log = "0 199 2241 0 1175850568 995598\n1 200 79 0 1175850568 998079\nskipped\n";
        assert_eq!(latencies_us(log).collect::<Vec<_>>(), [2241, 79]);
    }
}
