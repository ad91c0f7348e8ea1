//! The web shop, as `underlay drive` sees it.

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use underlay_core::{Bytes, RootSeed};
use underlay_database::Target;
use underlay_database::dvdstore::{
    CheckResult, DvdStoreConnector, DvdStoreError, ShopLoad, Tally, check, describe, drop_tables,
    identity, load, tally,
};
use underlay_driver::DriveSummary;
use underlay_workload::dvdstore::{
    Behaviour, Changes, DvdStore, DvdStoreAccounting, Parameters, Size,
};

use super::page::After;
use super::{Arguments, Reading, Subject, loaded, rights};
use crate::stop::{Stop, chain};

/// Arguments of the web shop; names and defaults are the kit's.
#[derive(Debug, Args)]
pub(super) struct DvdStoreArguments {
    /// Nominal size to load: S (10MB), M (1GB), L (100GB), or a number with MB, GB or TB. "10MB" takes some
    /// 460 MB (dvdstore).
    #[arg(long, value_name = "SIZE", default_value = "10MB")]
    db_size: Size,
    /// Visits of new customers, in percent (dvdstore).
    #[arg(long, value_name = "PERCENT", default_value_t = 20)]
    pct_newcustomers: u32,
    /// Visits with a new member, in percent (dvdstore).
    #[arg(long, value_name = "PERCENT", default_value_t = 1)]
    pct_newmember: u32,
    /// Searches per visit on average (dvdstore).
    #[arg(long, value_name = "N", default_value_t = 3)]
    n_searches: u32,
    /// Rows that a search asks for on average (dvdstore).
    #[arg(long, value_name = "N", default_value_t = 5)]
    search_batch_size: u32,
    /// Reviews that a search for reviews looks at, at most (dvdstore).
    #[arg(long, value_name = "N", default_value_t = 500)]
    search_depth: u32,
    /// Searches for reviews, and products whose reviews are read, per visit on average (dvdstore).
    #[arg(long, value_name = "N", default_value_t = 3)]
    n_reviews: u32,
    /// Visits with a new review, in percent (dvdstore).
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    pct_newreviews: u32,
    /// Visits in which a review is rated, in percent (dvdstore).
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    pct_newhelpfulness: u32,
    /// Lines of an order on average (dvdstore).
    #[arg(long, value_name = "N", default_value_t = 5)]
    n_line_items: u32,
    /// The old flow: no members, no reviews (dvdstore).
    #[arg(long)]
    ds2_mode: bool,
}

impl DvdStoreArguments {
    fn behaviour(&self) -> Result<Behaviour, Stop> {
        let behaviour = Behaviour {
            pct_newcustomers: self.pct_newcustomers,
            pct_newmember: self.pct_newmember,
            n_searches: self.n_searches,
            search_batch_size: self.search_batch_size,
            search_depth: self.search_depth,
            n_reviews: self.n_reviews,
            pct_newreviews: self.pct_newreviews,
            pct_newhelpfulness: self.pct_newhelpfulness,
            n_line_items: self.n_line_items,
            ds2_mode: self.ds2_mode,
        };
        let problems: Vec<String> = behaviour.problems().iter().map(ToString::to_string).collect();
        if problems.is_empty() { Ok(behaviour) } else { Err(Stop::bad_input(problems.join("\n"))) }
    }

    /// Whether visits follow the old flow.
    pub(super) fn is_ds2(&self) -> bool {
        self.ds2_mode
    }

    /// The workload as it would be loaded.
    pub(super) fn workload(&self, seed: RootSeed) -> Result<DvdStore, Stop> {
        let behaviour = self.behaviour()?;
        Ok(DvdStore::new(Parameters { behaviour, ..Parameters::new(self.db_size, seed) }))
    }
}

/// The shop in the database of the command.
pub(super) struct DvdStoreSubject<'a> {
    arguments: &'a Arguments,
    behaviour: Behaviour,
    target: Target,
    runtime: Runtime,
}

/// What is known before a run.
pub(super) struct Before {
    parameters: Parameters,
    tally: Tally,
}

impl<'a> DvdStoreSubject<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        target: Target,
    ) -> Result<DvdStoreSubject<'a>, Stop> {
        // Wrong numbers are refused before anything is touched.
        let behaviour = arguments.dvdstore.behaviour()?;
        let runtime = Runtime::new()
            .map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
        Ok(DvdStoreSubject { arguments, behaviour, target, runtime })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, DvdStoreError>>) -> Result<T, Stop> {
        self.runtime.block_on(work).map_err(stopped)
    }

    /// Size and seed of what is there; behaviour of the command.
    fn described(&self) -> Result<Parameters, Stop> {
        let there = self.wait(describe(&self.target))?.parameters;
        Ok(Parameters { behaviour: self.behaviour, ..there })
    }
}

impl Subject for DvdStoreSubject<'_> {
    type Connector = DvdStoreConnector;
    type Accounting = DvdStoreAccounting;
    type Before = Before;

    fn target(&self) -> &Target {
        &self.target
    }

    fn load(&self) -> Result<Value, Stop> {
        let size = self.arguments.dvdstore.db_size;
        let parameters = Parameters::new(size, RootSeed(self.arguments.seed));
        let ShopLoad { report, stored_bytes } =
            load(&self.target, &parameters, self.arguments.loaders()).map_err(stopped)?;
        self.arguments.say(&format!(
            "loaded the shop {size}: {} customers, {} products, {} reviews, {} rows in all, {} in the database, in {}",
            size.customers(),
            size.products(),
            size.reviews(),
            report.rows,
            Bytes(stored_bytes),
            loaded::in_words(&report),
        ));
        let own = json!({
            "size": size.to_string(),
            "customers": size.customers(),
            "products": size.products(),
            "orders": size.orders(),
            "reviews": size.reviews(),
            "stored_bytes": stored_bytes,
        });
        Ok(loaded::json(&report, own))
    }

    fn drop(&self) -> Result<String, Stop> {
        self.wait(drop_tables(&self.target))?;
        Ok("the population".to_string())
    }

    fn drop_if_there(&self) -> Result<(), Stop> {
        match self.runtime.block_on(drop_tables(&self.target)) {
            Ok(()) | Err(DvdStoreError::NotLoaded) => Ok(()),
            Err(error) => Err(stopped(error)),
        }
    }

    fn check(&self) -> Result<(Value, Result<(), Stop>), Stop> {
        let parameters = self.described()?;
        let results = self.wait(check(&self.target, &parameters, None))?;
        for result in &results {
            let found = result
                .violation
                .as_deref()
                .map_or("ok".to_string(), |violation| format!("VIOLATED: {violation}"));
            self.arguments.say(&format!("  {}: {}: {found}", result.id, result.title));
        }
        Ok((results_json(&results), verdict_of("", &results)))
    }

    fn before(&self) -> Result<Before, Stop> {
        let parameters = self.described()?;
        let results = self.wait(check(&self.target, &parameters, None))?;
        // What is wrong already cannot be told apart from what the run breaks.
        verdict_of(" before the run", &results)?;
        let tally = self.wait(tally(&self.target))?;
        Ok(Before { parameters, tally })
    }

    fn connector(&self, before: &Before) -> DvdStoreConnector {
        let target = self.target.with_application_name("underlay-drive");
        let first_new_customer = before.tally.last_customer + 1;
        let workload = DvdStore { parameters: before.parameters, first_new_customer };
        DvdStoreConnector::new(target, workload)
    }

    fn reading(&self) -> Result<Reading, Stop> {
        super::reading(&self.runtime, &self.target, None)
    }

    fn after(
        &self,
        before: Before,
        summary: &DriveSummary<DvdStoreAccounting>,
    ) -> Result<After, Stop> {
        let Before { parameters, tally } = before;
        let accounting = &summary.accounting;
        let results = self.wait(check(&self.target, &parameters, Some((&tally, accounting))))?;
        let identity = identity(self.target.engine, &parameters);
        let failed = results.iter().filter(|result| result.violation.is_some()).count();
        let told = &accounting.acknowledged;
        let purchases = told.orders + accounting.shortages;
        let short_percent = accounting.shortages as f64 * 100.0 / purchases.max(1) as f64;
        let members = json!({
            "identity": identity,
            "size": parameters.size.to_string(),
            "seed": parameters.seed.0,
            "acknowledged": changes_json(told),
            "unknown": changes_json(&accounting.perhaps),
            "shortages": accounting.shortages,
            "names_taken": accounting.names_taken,
            "members_already": accounting.members_already,
            "checks": results_json(&results),
        });
        Ok(After {
            said: vec![
                format!(
                    "purchases of the whole run: {} orders of {} lines, {} rolled back for lack of stock \
                     ({short_percent:.2} %), {} of unknown outcome",
                    told.orders, told.lines, accounting.shortages, accounting.perhaps.orders
                ),
                format!(
                    "besides: {} new customers, {} members, {} reviews, {} ratings",
                    told.customers, told.members, told.reviews, told.ratings
                ),
            ],
            ended: vec![format!(
                "checks: {} made, {failed} failed; workload {identity}, size {}, seed {}",
                results.len(),
                parameters.size,
                parameters.seed.0
            )],
            members: members.as_object().cloned().unwrap_or_else(Map::new),
            verdict: verdict_of(" after the run", &results),
        })
    }
}

/// What the user can mend is bad input; a database that does not answer is not.
fn stopped(error: DvdStoreError) -> Stop {
    match &error {
        DvdStoreError::Session(session) => rights::session_failed(session, chain(&error)),
        DvdStoreError::Thread(_) => Stop::run_failed(chain(&error)),
        error => Stop::bad_input(chain(error)),
    }
}

fn verdict_of(when: &str, results: &[CheckResult]) -> Result<(), Stop> {
    let violated = results
        .iter()
        .find_map(|result| result.violation.as_ref().map(|violation| (result, violation)));
    match violated {
        None => Ok(()),
        Some((result, violation)) => Err(Stop::check_violated(format!(
            "consistency{when}: {} ({}): {violation}",
            result.id, result.title
        ))),
    }
}

fn changes_json(changes: &Changes) -> Value {
    let members = Changes::NAMES.iter().zip(changes.values());
    Value::Object(members.map(|(name, count)| ((*name).to_string(), json!(count))).collect())
}

fn results_json(results: &[CheckResult]) -> Value {
    results
        .iter()
        .map(|result| {
            json!({
                "id": result.id,
                "title": result.title,
                "outcome": if result.violation.is_none() { "ok" } else { "violated" },
                "detail": result.violation,
            })
        })
        .collect()
}
