//! Sysbench 1.0 on the tables that Underlay loaded. Its CPU time is that of its whole life; start-up is
//! some milliseconds.

use std::process::Command;

use underlay_core::RootSeed;
use underlay_database::{Engine, sysbench};
use underlay_workload::sysbench::{Distribution, Parameters, Script};

use crate::Failure;
use crate::child;
use crate::compare::{Conditions, Generator};
use crate::place::Place;
use crate::run::{QUANTILES, Run, Verdict};

/// A script on tables of a size.
pub struct Sysbench {
    pub script: Script,
    pub tables: u32,
    pub table_size: u32,
}

impl Generator for Sysbench {
    fn name(&self) -> &str {
        "sysbench"
    }

    fn run(&self, place: &Place, conditions: &Conditions) -> Result<Run, Failure> {
        let mut command = Command::new("sysbench");
        command
            .arg(format!("oltp_{}", self.script))
            .args(["--rand-type=uniform", "--histogram=on"])
            .arg(format!("--tables={}", self.tables))
            .arg(format!("--table-size={}", self.table_size))
            .arg(format!("--threads={}", conditions.users))
            .arg(format!("--time={}", conditions.seconds))
            .args(server(place))
            .arg("run");
        let ended = child::run(&mut command, "sysbench")?;
        let text = &ended.stdout;
        let histogram = histogram(text);
        let transactions =
            number_after(text, "transactions:").ok_or("sysbench reported no transactions")? as u64;
        Ok(Run {
            seconds: number_after(text, "total time:").ok_or("sysbench reported no total time")?,
            units: transactions,
            whole_run: transactions,
            cpu: ended.cpu,
            cpu_units: transactions,
            quantiles_ms: QUANTILES.map(|(_, share)| quantile(&histogram, share)),
            tpm: None,
            verdict: Some(self.verdict(place)?),
        })
    }
}

impl Sysbench {
    /// Underlay's checks of the tables as sysbench left them.
    fn verdict(&self, place: &Place) -> Result<Verdict, Failure> {
        let parameters = Parameters::new(
            self.tables,
            self.table_size,
            RootSeed(1),
            Distribution::Uniform,
            self.script,
        )?;
        let runtime = tokio::runtime::Runtime::new()?;
        let results = runtime.block_on(sysbench::check(&place.target()?, &parameters, None))?;
        let violated = results
            .iter()
            .filter_map(|result| Some((result.check.id().to_string(), result.violation.clone()?)))
            .collect();
        Ok(Verdict { made: results.len(), violated, unmade: Vec::new() })
    }
}

/// The server in sysbench's options. It takes a password from nowhere else; the server is a throwaway.
fn server(place: &Place) -> Vec<String> {
    let (driver, prefix) = match place.engine {
        Engine::Postgresql => ("pgsql", "pgsql"),
        Engine::Mariadb => ("mysql", "mysql"),
    };
    vec![
        format!("--db-driver={driver}"),
        format!("--{prefix}-host={}", place.host),
        format!("--{prefix}-port={}", place.port),
        format!("--{prefix}-user={}", place.user),
        format!("--{prefix}-password={}", place.password),
        format!("--{prefix}-db={}", place.database),
    ]
}

/// The number that follows a label.
fn number_after(text: &str, label: &str) -> Option<f64> {
    let rest = text.split_once(label)?.1.trim_start();
    rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
}

/// Latency in ms and count per line of the histogram, ascending: `   1.234 |*****   17`. Its buckets are 1.8 % wide.
fn histogram(text: &str) -> Vec<(f64, u64)> {
    text.lines()
        .filter_map(|line| line.split_once('|'))
        .filter_map(|(value, bar)| {
            let count = bar.split_whitespace().next_back()?.trim_start_matches('*');
            Some((value.trim().parse().ok()?, count.parse().ok()?))
        })
        .collect()
}

fn quantile(histogram: &[(f64, u64)], share: f64) -> Option<f64> {
    let all: u64 = histogram.iter().map(|(_, count)| count).sum();
    let wanted = (all as f64 * share).ceil() as u64;
    let mut seen = 0;
    histogram.iter().find_map(|(value, count)| {
        seen += count;
        (seen >= wanted && all > 0).then_some(*value)
    })
}

#[cfg(test)]
mod tests {
    use super::{histogram, number_after, quantile};

    const OUTPUT: &str = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.032 |                                         1
       2.106 |**********                               250
       2.143 |**************************************** 1000
      11.244 |                                         9
\u{20}
SQL statistics:
    transactions:                        1260   (125.93 per sec.)
    queries:                             25200  (2518.60 per sec.)
General statistics:
    total time:                          10.0053s
";

    #[test]
    fn a_report_is_read() {
        assert_eq!(number_after(OUTPUT, "transactions:"), Some(1260.0));
        assert_eq!(number_after(OUTPUT, "total time:"), Some(10.0053));
        assert_eq!(number_after(OUTPUT, "reconnects:"), None);
        let histogram = histogram(OUTPUT);
        assert_eq!(histogram, [(1.032, 1), (2.106, 250), (2.143, 1000), (11.244, 9)]);
        assert_eq!(
            [0.0, 0.5, 1.0].map(|share| quantile(&histogram, share)),
            [1.032, 2.143, 11.244].map(Some)
        );
        assert_eq!(quantile(&[], 0.5), None);
    }
}
