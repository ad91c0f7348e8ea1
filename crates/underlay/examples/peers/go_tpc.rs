//! go-tpc's TPC-C, where a user has installed it: statement by statement, in a database of its own. Its histogram
//! has one digit and nothing below 1 ms.

use std::process::Command;
use std::time::Duration;

use underlay_database::Engine;

use crate::Failure;
use crate::child;
use crate::compare::{Conditions, Generator};
use crate::place::Place;
use crate::population::Population;
use crate::run::Run;

const PROGRAM: &str = "go-tpc";
const DATABASE: &str = "gotpc";

/// A prepared database.
pub struct GoTpc {
    population: Population,
    /// How long preparing took, start-up included.
    pub prepared_in: Duration,
}

impl GoTpc {
    /// Makes and fills its database on `parallel` connections.
    pub fn prepare(place: &Place, warehouses: u32, parallel: usize) -> Result<GoTpc, Failure> {
        let population = Population { database: DATABASE, warehouses, orders: "orders" };
        // On MariaDB it makes the database itself.
        if place.engine == Engine::Postgresql {
            population.create_database(place)?;
        }
        let mut command = command(place, warehouses, "prepare");
        command.args(["--no-check", "--threads", &parallel.to_string()]);
        let ended = child::run(&mut command, "go-tpc prepare")?;
        Ok(GoTpc { population, prepared_in: ended.elapsed })
    }

    /// What it is judged by.
    pub fn population(&self) -> &Population {
        &self.population
    }
}

fn command(place: &Place, warehouses: u32, action: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["tpcc", action]);
    match place.engine {
        Engine::Postgresql => command.args(["-d", "postgres", "--conn-params", "sslmode=disable"]),
        Engine::Mariadb => command.args(["-d", "mysql"]),
    };
    command
        .args(["--warehouses", &warehouses.to_string(), "-D", DATABASE])
        .args(["-H", &place.host, "-P", &place.port.to_string()])
        // It takes a password from nowhere else; the server is a throwaway.
        .args(["-U", &place.user, "-p", &place.password]);
    command
}

impl Generator for GoTpc {
    fn name(&self) -> &str {
        PROGRAM
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let before = self.population.order_numbers(place)?;
        let mut command = command(place, self.population.warehouses, "run");
        command
            .args(["--threads", &conditions.users.to_string()])
            .args(["--time", &format!("{}s", conditions.seconds)]);
        let ended = child::run(&mut command, "go-tpc run")?;
        let orders = self.population.order_numbers(place)? - before;
        let new_order = new_order(&ended.stdout).ok_or_else(|| {
            format!("go-tpc reported no summary of NEW_ORDER\n{}", child::tail(&ended.stdout))
        })?;
        Ok(Run {
            seconds: new_order.seconds,
            // Not its own count: it takes rolled-back orders for successes.
            units: orders,
            whole_run: orders,
            cpu: ended.cpu,
            cpu_units: orders,
            quantiles_ms: new_order.quantiles_ms,
            tpm: None,
            verdict: Some(self.population.verdict(place)?),
        })
    }
}

/// The summary of New-Order.
#[derive(Debug, PartialEq)]
struct Summary {
    seconds: f64,
    quantiles_ms: [Option<f64>; 3],
}

/// Finds `[Summary] NEW_ORDER - Takes(s): 9.9, Count: 17, ...`. Those that failed have lines of their own.
fn new_order(output: &str) -> Option<Summary> {
    let values = output.lines().find_map(|line| line.strip_prefix("[Summary] NEW_ORDER - "))?;
    Some(Summary {
        seconds: number_of(values, "Takes(s)")?,
        quantiles_ms: ["50th(ms)", "95th(ms)", "99th(ms)"].map(|name| number_of(values, name)),
    })
}

/// The number after a name in `Takes(s): 9.9, Count: 17, ...`.
fn number_of(values: &str, name: &str) -> Option<f64> {
    values.split(", ").find_map(|pair| pair.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use underlay_database::Engine;
    use underlay_host::skip;

    use super::{GoTpc, PROGRAM, Summary, new_order};
    use crate::compare::{Conditions, Generator};
    use crate::is_installed;
    use crate::stand::Stand;

    const OUTPUT: &str = "\
[Current] NEW_ORDER - Takes(s): 10.0, Count: 3040, TPM: 18261.7, Sum(ms): 60310.1, Avg(ms): 19.8, 50th(ms): 18.9, \
90th(ms): 25.2, 95th(ms): 28.3, 99th(ms): 44.0, 99.9th(ms): 83.9, Max(ms): 104.9
Finished
[Summary] DELIVERY - Takes(s): 9.9, Count: 260, TPM: 1570.8, Sum(ms): 9101.5, Avg(ms): 35.0, 50th(ms): 33.6, \
90th(ms): 46.1, 95th(ms): 54.5, 99th(ms): 71.3, 99.9th(ms): 75.5, Max(ms): 75.5
[Summary] NEW_ORDER - Takes(s): 9.9, Count: 3050, TPM: 18390.7, Sum(ms): 60510.9, Avg(ms): 19.8, 50th(ms): 18.9, \
90th(ms): 25.2, 95th(ms): 29.4, 99th(ms): 46.1, 99.9th(ms): 83.9, Max(ms): 104.9
[Summary] NEW_ORDER_ERR - Takes(s): 9.9, Count: 1, TPM: 6.0, Sum(ms): 12.4, Avg(ms): 12.4, 50th(ms): 12.6, \
90th(ms): 12.6, 95th(ms): 12.6, 99th(ms): 12.6, 99.9th(ms): 12.6, Max(ms): 12.6
tpmC: 18390.7, tpmTotal: 40871.2, efficiency: 143004.1%
";

    #[test]
    fn the_summary_of_new_order_is_read() {
        let expected = Summary { seconds: 9.9, quantiles_ms: [Some(18.9), Some(29.4), Some(46.1)] };
        assert_eq!(new_order(OUTPUT), Some(expected));
        assert_eq!(new_order("Finished\n"), None);
        assert_eq!(new_order("[Summary] NEW_ORDER_ERR - Takes(s): 9.9, Count: 1"), None);
    }

    #[test]
    fn a_real_go_tpc_is_driven_and_judged() {
        if !is_installed(PROGRAM) {
            skip!("no {PROGRAM} on PATH");
        }
        for engine in Engine::ALL {
            let Ok(stand) = Stand::start(engine) else {
                eprintln!("skip: no {engine} server programs on this host");
                continue;
            };
            let place = stand.place();
            let peer = GoTpc::prepare(&place, 1, 2).unwrap();
            let loaded = peer.population().verdict(&place).unwrap();
            assert_eq!((loaded.violated, loaded.unmade), (vec![], vec![]), "{engine}");
            let run = peer.run(&place, &Conditions { seconds: 3, users: 2 }).unwrap();
            assert!(run.units > 0 && !run.cpu.is_zero() && run.seconds > 0.0, "{run:?}");
            assert!(run.quantiles_ms.iter().all(Option::is_some), "{run:?}");
            assert_eq!(run.verdict.unwrap().unmade, [], "{engine}");
        }
    }
}
