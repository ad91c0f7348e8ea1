//! PostgreSQL's pgbench with its select-only script. Its percentiles are made from its log of every tenth
//! transaction; it has none of its own.

use std::process::Command;

use crate::Failure;
use crate::compare::{Conditions, Generator, QUANTILES, Run, children_cpu};
use crate::place::Place;

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
        let output = pgbench(place).args(["-i", "-q", "-s", &scale.to_string()]).output()?;
        if !output.status.success() {
            return Err(format!("pgbench -i: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
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
        let before = children_cpu();
        let output = pgbench(place)
            .args(["-n", "-S", "-M", "prepared", "-l", "--sampling-rate", LOGGED_SHARE])
            .args(["-c", &conditions.users.to_string(), "-j", &threads.to_string()])
            .args(["-T", &conditions.seconds.to_string()])
            .arg(format!("--log-prefix={}", self.log.path().join("log").display()))
            .output()?;
        let cpu = children_cpu() - before;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(
                format!("pgbench: {text}{}", String::from_utf8_lossy(&output.stderr)).into()
            );
        }
        let processed = text
            .split_once("actually processed: ")
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
        let transactions = processed.ok_or("pgbench told no transactions")?;
        let latencies = self.take_latencies()?;
        Ok(Run {
            seconds: conditions.seconds as f64,
            transactions,
            whole_run: transactions,
            cpu,
            quantiles_ms: QUANTILES.map(|(_, share)| {
                let place = (latencies.len() as f64 * share) as usize;
                latencies.get(place).map(|us| *us as f64 / 1e3)
            }),
            // Nothing is written.
            violations: None,
        })
    }
}

impl Pgbench {
    /// The third field of each line of the logs, in us, ascending; the logs are removed.
    fn take_latencies(&self) -> Result<Vec<u64>, Failure> {
        let mut latencies = Vec::new();
        for entry in std::fs::read_dir(self.log.path())? {
            let path = entry?.path();
            let text = std::fs::read_to_string(&path)?;
            latencies.extend(
                text.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<u64>().ok()),
            );
            std::fs::remove_file(path)?;
        }
        latencies.sort_unstable();
        Ok(latencies)
    }
}
