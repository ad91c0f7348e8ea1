//! go-tpc's TPC-C, where a user has installed it: statement by statement, in a database of its own. Its histogram
//! has one digit and nothing below 1 ms. Judged by Underlay's own conditions, as ours is.

use std::process::Command;

use underlay_database::Engine;
use underlay_database::tpcc::{CheckMoment, CheckOptions, TableNames, check};

use crate::Failure;
use crate::compare::{Conditions, Generator, Run, children_cpu};
use crate::place::Place;

const DATABASE: &str = "gotpc";

/// A prepared database.
pub struct GoTpc {
    warehouses: u32,
}

impl GoTpc {
    /// Makes and fills its database.
    pub fn prepare(place: &Place, warehouses: u32) -> Result<GoTpc, Failure> {
        // On MariaDB it makes the database itself.
        if place.engine == Engine::Postgresql {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(async {
                let client = place.target()?.connect().await?;
                client.batch_execute(&format!("CREATE DATABASE {DATABASE}")).await?;
                Ok::<_, Failure>(())
            })?;
        }
        let made = GoTpc { warehouses };
        let threads = std::thread::available_parallelism()?.to_string();
        let output =
            made.command(place, "prepare").args(["--no-check", "--threads", &threads]).output()?;
        if !output.status.success() {
            return Err(
                format!("go-tpc prepare: {}", String::from_utf8_lossy(&output.stderr)).into()
            );
        }
        Ok(made)
    }

    fn command(&self, place: &Place, action: &str) -> Command {
        let mut command = Command::new("go-tpc");
        command.args(["tpcc", action]);
        match place.engine {
            Engine::Postgresql => {
                command.args(["-d", "postgres", "--conn-params", "sslmode=disable"])
            }
            Engine::Mariadb => command.args(["-d", "mysql"]),
        };
        command
            .args(["--warehouses", &self.warehouses.to_string(), "-D", DATABASE])
            .args(["-H", &place.host, "-P", &place.port.to_string()])
            // It takes a password from nowhere else; the server is a throwaway.
            .args(["-U", &place.user, "-p", &place.password]);
        command
    }

    fn violations(&self, place: &Place) -> Result<u64, Failure> {
        let options = CheckOptions {
            warehouses: self.warehouses,
            parallel: 2,
            moment: CheckMoment::AfterRun,
            ledger: None,
            tables: &TableNames::mapped(str::to_string),
        };
        let target = place.with_database(DATABASE).target()?;
        let runtime = tokio::runtime::Runtime::new()?;
        let report = runtime.block_on(check(&target, options))?;
        Ok(report.failures().count() as u64)
    }
}

impl Generator for GoTpc {
    fn name(&self) -> &str {
        "go-tpc"
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let before = children_cpu();
        let output = self
            .command(place, "run")
            .args(["--threads", &conditions.users.to_string()])
            .args(["--time", &format!("{}s", conditions.seconds)])
            .output()?;
        let cpu = children_cpu() - before;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(
                format!("go-tpc run: {text}{}", String::from_utf8_lossy(&output.stderr)).into()
            );
        }
        let (mut transactions, mut new_order) = (0, None);
        for line in text.lines() {
            let Some((kind, values)) =
                line.strip_prefix("[Summary] ").and_then(|line| line.split_once(" - "))
            else {
                continue;
            };
            // Those that failed have lines of their own.
            if kind.ends_with("_ERR") {
                continue;
            }
            transactions += number_of(values, "Count").unwrap_or(0.0) as u64;
            if kind == "NEW_ORDER" {
                new_order = Some(values);
            }
        }
        let new_order = new_order.ok_or("go-tpc told no summary of NEW_ORDER")?;
        Ok(Run {
            seconds: number_of(new_order, "Takes(s)").ok_or("go-tpc told no time")?,
            transactions,
            whole_run: transactions,
            cpu,
            quantiles_ms: ["50th(ms)", "95th(ms)", "99th(ms)"]
                .map(|name| number_of(new_order, name)),
            violations: Some(self.violations(place)?),
        })
    }
}

/// The number after a name in `Takes(s): 9.9, Count: 17, ...`.
fn number_of(values: &str, name: &str) -> Option<f64> {
    values.split(", ").find_map(|pair| pair.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
}
