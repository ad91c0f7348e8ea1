//! The pairs on TPC-C's tables: go-tpc, HammerDB and BenchBase, each on a population of its own, compared with ours.
//!
//! They are counted in orders, by the districts' sequence, because programs differ in what they take for a
//! transaction and whether a rollback is one.

use std::time::Duration;

use serde_json::{Value, json};
use underlay_database::Engine;

use crate::compare::{Comparison, Conditions, Generator, in_words};
use crate::ours::{self, Ours};
use crate::place::Place;
use crate::population::Population;
use crate::run::Unit;
use crate::{Failure, Findings, Options, benchbase, go_tpc, hammerdb, is_installed, processors};

/// All of them that are found.
pub fn compare(options: &Options, place: &Place, findings: &mut Findings) -> Result<(), Failure> {
    let place = place.with_database(match place.engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "tpcc",
    });
    let mut pairs = Pairs { options, place, findings, loaded_in: None };
    if options.wants("go-tpc") {
        pairs.with_go_tpc()?;
    }
    if options.wants("hammerdb") {
        pairs.with_hammerdb()?;
    }
    if options.wants("benchbase") {
        pairs.with_benchbase()?;
    }
    Ok(())
}

struct Pairs<'a> {
    options: &'a Options,
    place: Place,
    findings: &'a mut Findings,
    /// How long our load took, once it was made.
    loaded_in: Option<Duration>,
}

/// What one pair is.
struct Pair<'a> {
    title: String,
    not_the_same: &'a str,
    arguments: &'a [&'a str],
    conditions: Conditions,
}

impl Pairs<'_> {
    fn with_go_tpc(&mut self) -> Result<(), Failure> {
        if !is_installed("go-tpc") {
            return self.skip("no go-tpc on PATH".to_string());
        }
        let ours = self.load()?;
        let peer = go_tpc::GoTpc::prepare(&self.place, self.options.warehouses, processors()?)?;
        let load = self.after_load("go-tpc", ours, peer.prepared_in, peer.population())?;
        for (mode, arguments) in
            [("procedures", &["tpcc"][..]), ("statements", &["tpcc", "--statements"])]
        {
            let pair = Pair {
                title: format!("go-tpc and tpcc by {mode}"),
                not_the_same: &format!(
                    "go-tpc sends statements and draws a warehouse per transaction, ours sends {mode} and has a home \
                     warehouse per user"
                ),
                arguments,
                conditions: self.options.conditions,
            };
            self.compare(&pair, &peer, &load)?;
        }
        Ok(())
    }

    fn with_hammerdb(&mut self) -> Result<(), Failure> {
        let installation = match hammerdb::Installation::find() {
            Ok(installation) => installation,
            Err(reason) => return self.skip(reason),
        };
        let ours = self.load()?;
        let (place, warehouses) = (&self.place, self.options.warehouses);
        let peer = hammerdb::HammerDb::prepare(installation, place, warehouses, processors()?)?;
        let load = self.after_load("hammerdb", ours, peer.built_in, peer.population())?;
        let Conditions { seconds, users } = self.options.conditions;
        let pair = Pair {
            title: "HammerDB TPROC-C by stored procedures and tpcc --profile hammerdb-like"
                .to_string(),
            not_the_same: "HammerDB runs whole minutes, so ours does; its population and its procedures differ from the \
                           specification in more than it declares (see the checks), its time profiler is on",
            arguments: &["tpcc", "--profile", "hammerdb-like"],
            conditions: Conditions { seconds: hammerdb::minutes(seconds) * 60, users },
        };
        self.compare(&pair, &peer, &load)
    }

    fn with_benchbase(&mut self) -> Result<(), Failure> {
        let installation = match benchbase::Installation::find(self.place.engine) {
            Ok(installation) => installation,
            Err(reason) => return self.skip(reason),
        };
        let ours = self.load()?;
        let (place, warehouses) = (&self.place, self.options.warehouses);
        let peer = benchbase::BenchBase::prepare(installation, place, warehouses, processors()?)?;
        let load = self.after_load("benchbase", ours, peer.loaded_in, peer.population())?;
        let pair = Pair {
            title: "BenchBase tpcc and tpcc by statements".to_string(),
            not_the_same: "BenchBase's transactions are serializable, as its sample has them, and its virtual machine \
                           starts and compiles within its CPU time",
            arguments: &["tpcc", "--statements"],
            conditions: self.options.conditions,
        };
        self.compare(&pair, &peer, &load)
    }

    fn skip(&mut self, reason: String) -> Result<(), Failure> {
        self.findings.skipped.push(reason);
        Ok(())
    }

    /// Ours, once for all pairs; how long it took.
    fn load(&mut self) -> Result<Duration, Failure> {
        if let Some(loaded_in) = self.loaded_in {
            return Ok(loaded_in);
        }
        let warehouses = self.options.warehouses.to_string();
        let arguments = ["tpcc", "--warehouses", &warehouses];
        let loaded_in = ours::load(&self.place, &arguments, processors()?)?;
        self.loaded_in = Some(loaded_in);
        Ok(loaded_in)
    }

    /// Says how long the loads took, and what the checks say of the peer's before anybody has run.
    fn after_load(
        &self,
        peer: &str,
        ours: Duration,
        theirs: Duration,
        population: &Population,
    ) -> Result<Value, Failure> {
        let (ours, theirs) = (ours.as_secs_f64(), theirs.as_secs_f64());
        let verdict = population.verdict(&self.place)?;
        println!(
            "\nload of {} warehouses on {} by {} connections: underlay {ours:.1} s, {peer} {theirs:.1} s: {:.2} x as \
             fast\n  as loaded, {}",
            self.options.warehouses,
            self.place.engine,
            processors()?,
            theirs / ours,
            in_words(peer, &verdict)
        );
        Ok(json!({
            "connections": processors()?,
            "underlay_s": ours,
            "peer_s": theirs,
            "ratio": theirs / ours,
            "checks_violated_as_the_peer_loaded": verdict.violated,
            "checks_that_could_not_be_made": verdict.unmade,
        }))
    }

    fn compare(&mut self, pair: &Pair, peer: &dyn Generator, load: &Value) -> Result<(), Failure> {
        let comparison = Comparison {
            title: format!("{} on {}", pair.title, self.place.engine),
            same: format!(
                "{} warehouses each in a database of its own, the standard mix, no think times, {} users, {} s; \
                 percentiles are those of New-Order; not the same: {}",
                self.options.warehouses,
                pair.conditions.users,
                pair.conditions.seconds,
                pair.not_the_same
            ),
            unit: Unit::Order,
            ours: &Ours::new(pair.arguments, Unit::Order),
            peer,
        };
        let mut done = comparison.carry_out(&pair.conditions, &self.place)?;
        done["load"] = load.clone();
        self.findings.comparisons.push(done);
        Ok(())
    }
}
