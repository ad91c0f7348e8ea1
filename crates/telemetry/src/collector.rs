//! The collector: starts the tiers, hands their items to one sink, and stops them.
//!
//! It decides only which sampler runs on which thread. The sink is unbounded by contract: at 1 Hz a
//! collector sends some tens of items per second, and a sampler must never wait for the record.

use crate::common::{Common, send};
use crate::item::Item;
use crate::of_database::of_database;
use crate::samplers;
use crate::samplers::process::ProcessRoot;
use crate::source::Sampler;
use crate::stop::StopSignal;
use crate::targets::{SamplingRates, Targets};
use crate::tier::{self, Account, Seat};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;
use underlay_core::Nanos;
use underlay_database::{Engine, Target};

/// A running collection. Dropping it stops it too, without a report.
#[derive(Debug)]
pub struct Collector {
    stop: Arc<StopSignal>,
    threads: Vec<JoinHandle<()>>,
    accounts: Vec<Arc<Account>>,
    processes: Vec<Arc<ProcessRoot>>,
}

/// What a collection cost and missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorReport {
    /// One entry per thread, in the order of their start.
    pub tiers: Vec<TierReport>,
}

/// What one thread of a collector cost and missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierReport {
    /// `proc`, `postgres` or `mariadb`, `waits`, the same of several databases with their names before, or the name of an extra
    /// sampler.
    pub name: String,
    /// Ticks taken.
    pub ticks: u64,
    /// Ticks missed because the one before took too long.
    pub missed: u64,
    /// CPU time of the thread.
    pub cpu: Nanos,
}

impl CollectorReport {
    /// CPU time of all threads of the collector.
    pub fn cpu(&self) -> Nanos {
        self.tiers.iter().map(|tier| tier.cpu).sum()
    }

    /// Ticks missed by all tiers.
    pub fn missed(&self) -> u64 {
        self.tiers.iter().map(|tier| tier.missed).sum()
    }
}

impl Collector {
    /// Starts collecting at the default rates ([`SamplingRates::every`]); the first tick is the next whole
    /// multiple of `interval` since the origin.
    ///
    /// Never fails: what cannot be read is an `Absent` source with the reason.
    pub fn start(targets: Targets, interval: Duration, sink: Sender<Item>) -> Collector {
        Collector::start_with(targets, &SamplingRates::every(interval), sink)
    }

    /// Starts collecting at given rates.
    pub fn start_with(targets: Targets, rates: &SamplingRates, sink: Sender<Item>) -> Collector {
        let stop = Arc::new(StopSignal::default());
        let common =
            Common { origin: targets.origin, interval: rates.interval, stop: stop.clone(), sink };
        let processes: Vec<Arc<ProcessRoot>> =
            targets.processes.iter().map(|(name, pid)| ProcessRoot::new(name, *pid)).collect();
        let mut collector =
            Collector { stop, threads: Vec::new(), accounts: Vec::new(), processes };
        collector.start_tiers(targets, rates, &common);
        collector
    }

    fn start_tiers(&mut self, targets: Targets, rates: &SamplingRates, common: &Common) {
        let mut seats = Numbering::default();
        let mut tiers: Vec<(Arc<Account>, TierBody)> = Vec::new();
        for sampler in targets.extra {
            let account = Account::new(sampler.name());
            tiers.push((account, TierBody::Samplers(vec![seats.seat(sampler)])));
        }
        for (name, target, cgroup) in &targets.databases {
            for sampler in of_database(name, target, cgroup.as_ref()) {
                let account = Account::new(sampler.name());
                tiers.push((account, TierBody::Samplers(vec![seats.seat(sampler)])));
            }
            let waits = samplers::waits::Waits::of_database(name, target, rates);
            let account = Account::new(format!("{name}/waits"));
            tiers.push((account, TierBody::Waits(seats.number(), Box::new(waits))));
        }
        if targets.databases.is_empty() {
            tiers.extend(of_only_database(targets.database.as_ref(), &mut seats, rates));
        }

        let proc_account = Account::new("proc");
        self.accounts.push(proc_account.clone());
        self.accounts.extend(tiers.iter().map(|(account, _)| account.clone()));
        let volumes = &targets.volumes;
        let mut host = samplers::host(rates, volumes, targets.cgroup.as_ref(), &self.processes);
        if !targets.databases.is_empty() {
            // Each has one of its own.
            host.retain(|sampler| sampler.name() != samplers::cgroup::DOC.name);
        }
        host.push(samplers::underlay::sampler(&rates.roots, &self.accounts));
        let host = host.into_iter().map(|sampler| seats.seat(sampler)).collect();
        self.spawn(proc_account, TierBody::Samplers(host), common);
        for (account, body) in tiers {
            self.spawn(account, body, common);
        }
    }

    /// Starts a thread; a host that cannot start one more loses that tier and says so.
    fn spawn(&mut self, account: Arc<Account>, body: TierBody, common: &Common) {
        let name = account.name.clone();
        let of_thread = common.clone();
        let spawned = std::thread::Builder::new()
            .name(format!("telemetry-{name}"))
            .spawn(move || body.run(&of_thread, &account));
        match spawned {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                let text = format!("could not start thread telemetry-{name}: {error}");
                tracing::warn!("{text}");
                let note = Item::Note { at: common.now(), source: None, text };
                // The send fails only if the receiver is gone.
                let _closed = send(common, note);
            }
        }
    }

    /// Names another root for a process tree, after its process was restarted. Counters go on from
    /// the sums of the old tree. Returns whether a tree of that name is observed.
    pub fn set_process(&self, name: &str, pid: u32) -> bool {
        let root = self.processes.iter().find(|root| root.name() == name);
        if let Some(root) = root {
            root.set_pid(pid);
        }
        root.is_some()
    }

    /// Stops all threads and waits for them: at most as long as one query may take (2 s).
    pub fn stop(mut self) -> CollectorReport {
        self.join();
        let tiers = self.accounts.iter().map(|account| TierReport {
            name: account.name.clone(),
            ticks: account.ticks.load(Ordering::Relaxed),
            missed: account.missed.load(Ordering::Relaxed),
            cpu: Nanos(account.cpu_ns.load(Ordering::Relaxed)),
        });
        CollectorReport { tiers: tiers.collect() }
    }

    fn join(&mut self) {
        self.stop.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a telemetry thread panicked");
            }
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.join();
    }
}

/// The statistics and sessions of a run's only database, or why there are none.
fn of_only_database(
    database: Option<&Target>,
    seats: &mut Numbering,
    rates: &SamplingRates,
) -> [(Arc<Account>, TierBody); 2] {
    let (name, statistics) = match database.map(|target| (target.engine, target)) {
        Some((Engine::Mariadb, target)) => ("mariadb", samplers::mariadb::status_counters(target)),
        _ => ("postgres", samplers::postgres::statistics(database)),
    };
    let statistics = TierBody::Samplers(vec![seats.seat(statistics)]);
    let waits = Box::new(samplers::waits::Waits::new(database, rates));
    let waits = TierBody::Waits(seats.number(), waits);
    [(Account::new(name), statistics), (Account::new("waits"), waits)]
}

/// Hands out source numbers.
#[derive(Debug, Default)]
struct Numbering {
    next: usize,
}

impl Numbering {
    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn seat(&mut self, sampler: Box<dyn Sampler>) -> Seat {
        Seat::new(self.number(), sampler)
    }
}

/// What a thread runs.
enum TierBody {
    Samplers(Vec<Seat>),
    Waits(usize, Box<samplers::waits::Waits>),
}

impl TierBody {
    fn run(self, common: &Common, account: &Account) {
        match self {
            TierBody::Samplers(seats) => tier::run(common, account, seats),
            TierBody::Waits(number, waits) => waits.run(number, common, account),
        }
    }
}
