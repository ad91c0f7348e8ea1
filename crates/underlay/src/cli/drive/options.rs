//! Options that several workloads share, and what is wrong with them: numbers out of their range, and options that would
//! have no effect together with the others. All of it is reported at once, before anything is touched.
//!
//! Each workload has the options that mean something for it and no others. An option without a value was not given; its
//! default is filled in where it is read. What a number may be follows the study format, where it has the same one.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use underlay_core::{Nanos, RootSeed};
use underlay_driver::{Objective, Weights};
use underlay_study::{Arrivals, FaultPhase, Pacing, ProcedurePlan, SearchPlan, WeightsPlan};
use underlay_workload::transactional::Shape;

use crate::cli::arrival_process::arrival_process;
use crate::cli::whole_number::whole_number;

/// Environment variable with the database's URL.
pub(super) const URL_VARIABLE: &str = "UNDERLAY_URL";

/// Users of a closed loop, and those that an open loop may keep busy at once.
const USERS_CLOSED: u32 = 8;
const USERS_OPEN: u32 = 64;
/// Where a search begins, transactions per second.
const FIRST_RATE: f64 = 100.0;
/// How near the highest rate that holds and the lowest that fails come, as a share of the former.
const RESOLUTION: f64 = 0.05;

const USERS: RangeInclusive<u32> = 1..=100_000;
pub(super) const THREADS: RangeInclusive<usize> = 1..=1024;
const RATE_PER_SECOND: RangeInclusive<f64> = 0.001..=10_000_000.0;
const KEY_THINK: RangeInclusive<f64> = 0.0..=100.0;
const LONGEST: Nanos = Nanos::from_secs(7 * 86_400);
const DURATION: RangeInclusive<Nanos> = Nanos::from_secs(1)..=LONGEST;
const UNMEASURED: RangeInclusive<Nanos> = Nanos::ZERO..=LONGEST;

/// Options of every workload.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// The database: postgres://user@host:port/database or mysql://user@host:port/database (also mariadb://); TLS
    /// by sslmode, sslrootcert, sslcert and sslkey, or ssl-mode, ssl-ca, ssl-cert and ssl-key. The password comes
    /// from --password-file, PGPASSWORD, ~/.pgpass (or PGPASSFILE) or MYSQL_PWD: every user of this host can read a
    /// command line.
    #[arg(long, env = URL_VARIABLE, hide_env_values = true)]
    pub(super) url: Option<String>,
    /// A file whose first line is the password.
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<PathBuf>,
    /// Run the load (the default when nothing else is asked for).
    #[arg(long)]
    pub(super) run: bool,
    /// Verify the consistency conditions and invariants.
    #[arg(long)]
    pub(super) check: bool,
    /// Drop the population at the end (with --load: an earlier one first).
    #[arg(long)]
    pub(super) drop: bool,
    /// Replace tables that Underlay did not create. NAME confirms where they are: database.schema on PostgreSQL, the
    /// database on MariaDB. Tables (and functions) of the workload's names are listed with their numbers of rows, then
    /// dropped; everything else there stays. With --drop nothing replaces them.
    #[arg(long, value_name = "NAME")]
    pub(super) replace_foreign: Option<String>,
    /// Seed of the population and of the transactions [default: 1].
    #[arg(long, value_name = "N", value_parser = whole_number, allow_negative_numbers = true)]
    pub(super) seed: Option<u64>,
    /// Keep the run as a record for `underlay show`, `report`, `compare` and `export`.
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of workloads whose population is loaded first.
#[derive(Debug, Default, Args)]
pub(super) struct Loading {
    /// Load the population first.
    #[arg(long)]
    pub(super) load: bool,
    /// Loader threads; by default one per processor.
    #[arg(long, value_name = "N")]
    pub(super) loaders: Option<usize>,
}

/// Options of the load of users.
#[derive(Debug, Args)]
pub(super) struct UserLoad {
    /// Virtual users: 8 by default, in an open loop 64 (which bound what can be in progress at once).
    #[arg(long, value_name = "N")]
    pub(super) users: Option<u32>,
    /// Length of the measured load; with --slo of each step [default: 60s].
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Unmeasured load before it; with --slo before each step [default: 5s].
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Nanos>,
    /// Open loop: this many transactions per second, whatever the database does. With --slo: the first rate.
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "key_think")]
    rate: Option<f64>,
    /// How the transactions of an open loop are spread [default: poisson].
    #[arg(long, value_parser = arrival_process())]
    arrivals: Option<Arrivals>,
    /// The rate rises linearly over this time (open loop) [default: 0s].
    #[arg(long, value_name = "TIME")]
    ramp: Option<Nanos>,
    /// Search for the highest rate that meets a latency target, such as p99=10ms; the result is then measured once more.
    #[arg(long, value_name = "TARGET", conflicts_with = "key_think")]
    pub(super) slo: Option<Objective>,
    /// Closed loop with this multiple of the workload's keying and think times [default: 0].
    #[arg(long, value_name = "FACTOR")]
    pub(super) key_think: Option<f64>,
    /// Weights of the types of transactions instead of the prescribed mix: new_order=45,payment=43,...
    #[arg(long, value_name = "WEIGHTS")]
    pub(super) weights: Option<String>,
    /// Change the weights while the load runs: 30s:new_order=10,payment=90 (from the beginning of the measured
    /// load; may be repeated).
    #[arg(long, value_name = "TIME:WEIGHTS", conflicts_with = "slo")]
    pub(super) weights_at: Vec<String>,
    /// At most this many connections, shared by the users.
    #[arg(long, value_name = "N")]
    pub(super) connections: Option<u32>,
    /// Driver threads; by default one per processor.
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    /// Send nothing: measures the generator's own ceiling.
    #[arg(long, conflicts_with_all = ["load", "check", "drop", "replace_foreign"])]
    pub(super) noop: bool,
}

/// The weights that a command sets.
pub(super) struct Mixes {
    /// From the beginning; `None` = the workload's own mix.
    pub(super) first: Option<Weights>,
    /// Later.
    pub(super) later: Vec<WeightsPlan>,
}

/// Problems of a command line, collected.
#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<String>);

impl Problems {
    /// Notes each of `options` that was given, with what is wrong with it.
    pub(super) fn refuse(&mut self, options: &[(&str, bool)], why: &str) {
        let given = options.iter().filter(|(_, is_given)| *is_given);
        self.0.extend(given.map(|(name, _)| format!("{name} {why}")));
    }

    /// Notes a number that is not in its range; what is no number is in none.
    pub(super) fn outside<T: PartialOrd + Display>(
        &mut self,
        option: &str,
        value: Option<T>,
        range: RangeInclusive<T>,
    ) {
        let value = value.filter(|value| !range.contains(value));
        self.0.extend(value.map(|value| {
            format!("{option} {value} is not between {} and {}", range.start(), range.end())
        }));
    }
}

impl Common {
    /// The seed that was given, or the default.
    pub(super) fn seed(&self) -> RootSeed {
        RootSeed(self.seed.unwrap_or(1))
    }
}

impl UserLoad {
    /// How long the load is measured.
    pub(super) fn duration(&self) -> Nanos {
        self.duration.unwrap_or(Nanos::from_secs(60))
    }

    fn warm_up(&self) -> Nanos {
        self.warm_up.unwrap_or(Nanos::from_secs(5))
    }

    /// How long the rate of an open loop rises.
    pub(super) fn ramp(&self) -> Nanos {
        self.ramp.unwrap_or(Nanos::ZERO)
    }

    fn key_think(&self) -> f64 {
        self.key_think.unwrap_or(0.0)
    }

    /// Whether users begin with thinking.
    pub(super) fn thinks(&self) -> bool {
        !self.is_open() && self.key_think() > 0.0
    }

    fn is_open(&self) -> bool {
        self.rate.is_some() || self.slo.is_some()
    }

    /// Users at once.
    pub(super) fn users(&self) -> u32 {
        self.users.unwrap_or(if self.is_open() { USERS_OPEN } else { USERS_CLOSED })
    }

    fn arrivals(&self) -> Arrivals {
        self.arrivals.unwrap_or(Arrivals::Poisson)
    }

    /// What makes users begin transactions.
    pub(super) fn pacing(&self) -> Pacing {
        match (self.slo, self.rate) {
            (None, None) => Pacing::Closed { key_think: self.key_think() },
            (_, rate) => Pacing::Open {
                rate_per_second: rate.unwrap_or(FIRST_RATE),
                arrivals: self.arrivals(),
            },
        }
    }

    /// How it is measured: one rung with all users, warmed up at full load.
    pub(super) fn procedure(&self) -> ProcedurePlan {
        let (settle, measure) = (self.warm_up(), self.duration());
        ProcedurePlan {
            users: vec![self.users()],
            ramp_up: settle,
            measure,
            search: self.slo.map(|objective| SearchPlan {
                objective,
                resolution: RESOLUTION,
                settle,
                measure,
            }),
            ..ProcedurePlan::empty()
        }
    }

    /// What distinguishes this run from another one of the same workload.
    pub(super) fn asked(&self) -> Value {
        json!({
            "users": self.users(),
            "connections": self.connections,
            "threads": self.threads,
            "duration_ns": self.duration().0,
            "warm_up_ns": self.warm_up().0,
            "rate_per_second": self.rate,
            "arrivals": self.is_open().then(|| self.arrivals().as_str()),
            "ramp_ns": self.ramp().0,
            "key_think": (!self.is_open()).then(|| self.key_think()),
        })
    }

    /// The weights that it sets.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn mixes(&self, shape: &'static Shape) -> Result<Mixes, Vec<String>> {
        let mut wrong = Vec::new();
        let mut keep =
            |parsed: Result<Weights, String>| parsed.map_err(|problem| wrong.push(problem)).ok();
        let parse = |text: &str| Weights::parse(text, shape).map_err(|error| error.to_string());
        let first = self.weights.as_deref().and_then(|text| keep(parse(text)));
        let mut later = Vec::new();
        for text in &self.weights_at {
            let change = text.split_once(':').ok_or_else(|| {
                format!(
                    "`{text}` is not a weight change; write for example 30s:{}=10",
                    shape.types.first().unwrap_or(&"type")
                )
            });
            let parsed = change.and_then(|(at, weights)| {
                let time = at.parse::<Nanos>();
                let time =
                    time.map_err(|error| format!("`{at}` in `{text}` is not a time: {error}"))?;
                Ok((time, weights, parse(weights)?))
            });
            match parsed {
                Ok((at, text, weights)) => later.push(WeightsPlan {
                    weights,
                    text: text.to_string(),
                    at,
                    phase: FaultPhase::Measure,
                    users: None,
                    lasts: None,
                    designs: vec![0],
                    line: 0,
                }),
                Err(problem) => {
                    keep(Err(problem));
                }
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        later.sort_by_key(|change| change.at);
        Ok(Mixes { first, later })
    }

    /// What is wrong with the options of the load; `runs` says whether it runs.
    pub(super) fn problems(&self, runs: bool, problems: &mut Problems) {
        problems.outside("--users", self.users, USERS);
        problems.outside("--connections", self.connections, USERS);
        problems.outside("--threads", self.threads, THREADS);
        problems.outside("--rate", self.rate, RATE_PER_SECOND);
        problems.outside("--key-think", self.key_think, KEY_THINK);
        problems.outside("--duration", self.duration, DURATION);
        problems.outside("--warm-up", self.warm_up, UNMEASURED);
        problems.outside("--ramp", self.ramp, UNMEASURED);
        let paced = [
            ("--warm-up", self.warm_up.is_some()),
            ("--rate", self.rate.is_some()),
            ("--arrivals", self.arrivals.is_some()),
            ("--ramp", self.ramp.is_some()),
            ("--slo", self.slo.is_some()),
            ("--key-think", self.key_think.is_some()),
            ("--weights", self.weights.is_some()),
            ("--weights-at", !self.weights_at.is_empty()),
            ("--connections", self.connections.is_some()),
            ("--threads", self.threads.is_some()),
        ];
        if self.noop {
            problems.refuse(&paced, "has no effect with --noop, which drives nothing");
            return;
        }
        if !runs {
            let any = [("--users", self.users.is_some()), ("--duration", self.duration.is_some())];
            problems.refuse(&any, NOT_RUN);
            problems.refuse(&paced, NOT_RUN);
            return;
        }
        let arrivals = self.arrivals.is_some() && !self.is_open();
        problems.refuse(&[("--arrivals", arrivals)], "has no effect in a closed loop: add --rate");
        let ramp = self.ramp.is_some() && (self.rate.is_none() || self.slo.is_some());
        problems.refuse(&[("--ramp", ramp)], "has no effect without a --rate (without --slo)");
        if !ramp && self.ramp() > self.duration() {
            problems.0.push(format!(
                "--ramp {} is longer than the measured load of {}: the rate would never be reached",
                self.ramp(),
                self.duration()
            ));
        }
        // What is not a time is refused where it is read.
        let is_late = |text: &&String| {
            let at = text.split_once(':').and_then(|(at, _)| at.parse::<Nanos>().ok());
            at.is_some_and(|at| at >= self.duration())
        };
        problems.0.extend(self.weights_at.iter().filter(is_late).map(|text| {
            format!(
                "--weights-at {text} comes after the measured load of {}: make --duration longer than {}",
                self.duration(),
                text.split_once(':').map_or("that", |(at, _)| at)
            )
        }));
    }
}

/// Why an option of a run is refused.
pub(super) const NOT_RUN: &str = "has no effect without --run, and no load runs";
/// Why an option of a load is refused.
pub(super) const NOT_LOADED: &str =
    "has no effect without --load: the existing population has its own";
