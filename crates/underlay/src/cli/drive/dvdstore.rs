//! The web shop on a database of the user's.

use clap::Args;
use serde_json::{Map, Value, json};
use underlay_core::Bytes;
use underlay_database::dvdstore::{DvdStoreError, describe, drop_tables};
use underlay_database::schema_ownership::WorkloadTables;
use underlay_study::{DvdstorePlan, WorkloadKind};
use underlay_workload::dvdstore::{Behaviour, Changes, DvdStore, Parameters, SHAPE, Size};

use super::command::Command;
use super::external::{Dropped, External};
use super::noop::run_noop;
use super::options::{Common, Loading, Mixes, NOT_LOADED, NOT_RUN, Problems, UserLoad};
use super::shown::Added;
use super::steps::carry_out;
use super::users;
use crate::lab::external::{Checks, Finished};
use crate::lab::workload::{Access, DvdStoreSubject, Loadable, Loaded, stopped};
use crate::stop::Stop;

/// What is loaded unless something else is asked for.
const SIZE: &str = "10MB";

/// Steps that search for products.
const SEARCHES: [&str; 8] = [
    "browse_category",
    "browse_actor",
    "browse_title",
    "reviews_by_actor",
    "reviews_by_title",
    "product_reviews",
    "reviews_by_stars",
    "reviews_by_date",
];

/// Arguments of `underlay drive dvdstore`; names and defaults are the kit's.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    users: UserLoad,
    /// Nominal size to load: S (10MB), M (1GB), L (100GB), or a number with MB, GB or TB. "10MB" takes some
    /// 460 MB [default: 10MB].
    #[arg(long, value_name = "SIZE")]
    db_size: Option<Size>,
    /// Visits of new customers, in percent [default: 20].
    #[arg(long, value_name = "PERCENT")]
    pct_newcustomers: Option<u32>,
    /// Visits with a new member, in percent [default: 1].
    #[arg(long, value_name = "PERCENT")]
    pct_newmember: Option<u32>,
    /// Searches per visit on average [default: 3].
    #[arg(long, value_name = "N")]
    n_searches: Option<u32>,
    /// Rows that a search asks for on average [default: 5].
    #[arg(long, value_name = "N")]
    search_batch_size: Option<u32>,
    /// Reviews that a search for reviews looks at, at most [default: 500].
    #[arg(long, value_name = "N")]
    search_depth: Option<u32>,
    /// Searches for reviews, and products whose reviews are read, per visit on average [default: 3].
    #[arg(long, value_name = "N")]
    n_reviews: Option<u32>,
    /// Visits with a new review, in percent [default: 5].
    #[arg(long, value_name = "PERCENT")]
    pct_newreviews: Option<u32>,
    /// Visits in which a review is rated, in percent [default: 10].
    #[arg(long, value_name = "PERCENT")]
    pct_newhelpfulness: Option<u32>,
    /// Lines of an order on average [default: 5].
    #[arg(long, value_name = "N")]
    n_line_items: Option<u32>,
    /// The flow of DVD Store 2: no members, no reviews.
    #[arg(long)]
    ds2_mode: bool,
}

impl Arguments {
    fn size(&self) -> Result<Size, Stop> {
        match self.db_size {
            Some(size) => Ok(size),
            None => SIZE.parse().map_err(|error| Stop::bad_input(format!("{error}"))),
        }
    }

    fn behaviour(&self) -> Behaviour {
        let default = Behaviour::default();
        Behaviour {
            pct_newcustomers: self.pct_newcustomers.unwrap_or(default.pct_newcustomers),
            pct_newmember: self.pct_newmember.unwrap_or(default.pct_newmember),
            n_searches: self.n_searches.unwrap_or(default.n_searches),
            search_batch_size: self.search_batch_size.unwrap_or(default.search_batch_size),
            search_depth: self.search_depth.unwrap_or(default.search_depth),
            n_reviews: self.n_reviews.unwrap_or(default.n_reviews),
            pct_newreviews: self.pct_newreviews.unwrap_or(default.pct_newreviews),
            pct_newhelpfulness: self.pct_newhelpfulness.unwrap_or(default.pct_newhelpfulness),
            n_line_items: self.n_line_items.unwrap_or(default.n_line_items),
            ds2_mode: self.ds2_mode,
        }
    }

    fn problems(&self, command: &Command<'_>, mixes: Option<&Mixes>) -> Problems {
        let mut problems = Problems::default();
        let invalid = self.behaviour().problems();
        problems.0.extend(invalid.iter().map(ToString::to_string));
        // About what the old flow lacks.
        let of_members = [
            ("--pct-newmember", self.pct_newmember.is_some()),
            ("--n-reviews", self.n_reviews.is_some()),
            ("--pct-newreviews", self.pct_newreviews.is_some()),
            ("--pct-newhelpfulness", self.pct_newhelpfulness.is_some()),
        ];
        // About whole visits.
        let of_visits = [
            ("--pct-newcustomers", self.pct_newcustomers.is_some()),
            ("--n-searches", self.n_searches.is_some()),
            ("--ds2-mode", self.ds2_mode),
        ];
        // About steps.
        let batch_size = ("--search-batch-size", self.search_batch_size.is_some());
        let depth = ("--search-depth", self.search_depth.is_some());
        let lines = ("--n-line-items", self.n_line_items.is_some());
        if command.is_noop() {
            return problems;
        }
        if !self.loading.load {
            problems.refuse(&[("--db-size", self.db_size.is_some())], NOT_LOADED);
        }
        if !command.runs() {
            problems.refuse(&of_visits, NOT_RUN);
            problems.refuse(&of_members, NOT_RUN);
            problems.refuse(&[batch_size, depth, lines], NOT_RUN);
            return problems;
        }
        let Some(mixes) = mixes else { return problems };
        let visits = mixes.first.is_none();
        if !visits {
            let why = "has an effect on visits only, and with --weights there are none";
            problems.refuse(&of_visits, why);
            problems.refuse(&of_members, why);
        } else if self.ds2_mode {
            let why = "has no effect with --ds2-mode, which has neither members nor reviews";
            problems.refuse(&of_members, why);
        }
        let weights = mixes.first.iter().chain(mixes.later.iter().map(|change| &change.weights));
        let weighted: Vec<&str> = weights
            .flat_map(|weights| SHAPE.types.iter().zip(weights.values()))
            .filter_map(|(name, weight)| (weight > 0).then_some(*name))
            .collect();
        let by_reviews = ["reviews_by_actor", "reviews_by_title"];
        for (option, steps, in_visits) in [
            (batch_size, &SEARCHES[..], visits),
            (depth, &by_reviews, visits && !self.ds2_mode),
            (lines, &["prices", "purchase"], visits),
        ] {
            if !in_visits && !steps.iter().any(|step| weighted.contains(step)) {
                let why = format!("has an effect on {} only: none of them runs", steps.join(", "));
                problems.refuse(&[option], &why);
            }
        }
        problems
    }
}

/// Carries out the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), Stop> {
    let command = Command {
        common: &arguments.common,
        loading: &arguments.loading,
        users: Some(&arguments.users),
        name: "dvdstore",
        tables: WorkloadTables::Dvdstore,
        foreign_tables: false,
        foreign_size: (None, None),
        inserts_in_bulk: false,
    };
    let mixes = arguments.users.mixes(&SHAPE);
    let mut problems = arguments.problems(&command, mixes.as_ref().ok());
    problems.0.extend(mixes.err().unwrap_or_default());
    Command::refuse(problems, &command)?;
    let behaviour = arguments.behaviour();
    let parameters =
        Parameters { behaviour, ..Parameters::new(arguments.size()?, command.common.seed()) };
    if command.is_noop() {
        return run_noop(&command, DvdStore::new(parameters));
    }
    carry_out(&command, DvdStoreSubject { parameters })
}

impl External for DvdStoreSubject {
    fn adopt(&mut self, _: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
        let described = access.runtime.block_on(describe(access.target));
        let there = described.map_err(|error| stopped("read what is loaded", error))?.parameters;
        self.parameters = Parameters { behaviour: self.parameters.behaviour, ..there };
        Ok(())
    }

    fn drop_population(&self, access: Access<'_>) -> Result<Dropped, Stop> {
        match access.runtime.block_on(drop_tables(access.target)) {
            Ok(()) => Ok(Dropped::Done("the population".to_string())),
            Err(error) => {
                let is_absent = matches!(error, DvdStoreError::NotLoaded);
                let stop = stopped("drop the population", error);
                if is_absent { Ok(Dropped::Nothing(stop)) } else { Err(stop) }
            }
        }
    }

    fn describe_load(&self, loaded: &Loaded) -> (String, Value) {
        let size = self.parameters.size;
        let stored_bytes = loaded.stored_bytes.unwrap_or(0);
        let text = format!(
            "the shop {size}: {} customers, {} products, {} reviews, {} rows in all, {} in the database,",
            size.customers(),
            size.products(),
            size.reviews(),
            loaded.report.rows,
            Bytes(stored_bytes)
        );
        let members = json!({
            "size": size.to_string(),
            "customers": size.customers(),
            "products": size.products(),
            "orders": size.orders(),
            "reviews": size.reviews(),
            "stored_bytes": stored_bytes,
        });
        (text, members)
    }

    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let Parameters { size, behaviour, .. } = self.parameters;
        let kind = WorkloadKind::Dvdstore(DvdstorePlan { size, behaviour });
        users::run_users(self, command, access, kind, &|| Ok(None), |finished| {
            Ok(self.conclude(access, finished))
        })
    }
}

impl DvdStoreSubject {
    fn conclude(&self, access: Access<'_>, finished: &Finished<DvdStoreSubject>) -> Added {
        let Parameters { size, seed, .. } = self.parameters;
        let accounting = &finished.summary.accounting;
        let acknowledged = &accounting.acknowledged;
        let none = Checks::default();
        let after = finished.checked_after.as_ref().unwrap_or(&none);
        let identity = self.identity(access.target.engine);
        let shortages = accounting.shortages;
        let purchases = acknowledged.orders + shortages;
        let short_percent = shortages as f64 * 100.0 / purchases.max(1) as f64;
        let members = json!({
            "identity": identity,
            "size": size.to_string(),
            "seed": seed.0,
            "acknowledged": changes_json(acknowledged),
            "unknown": changes_json(&accounting.perhaps),
            "shortages": shortages,
            "names_taken": accounting.names_taken,
            "members_already": accounting.members_already,
            "checks": self.checks_json(after),
        });
        Added {
            said: vec![
                format!(
                    "purchases of the whole run: {} orders of {} lines, {shortages} rolled back for lack of stock \
                     ({short_percent:.2} %), {} of unknown outcome",
                    acknowledged.orders, acknowledged.lines, accounting.perhaps.orders
                ),
                format!(
                    "also: {} new customers, {} members, {} reviews, {} ratings",
                    acknowledged.customers,
                    acknowledged.members,
                    acknowledged.reviews,
                    acknowledged.ratings
                ),
            ],
            ended: vec![format!(
                "checks: {} made, {} failed; workload {identity}, size {size}, seed {}",
                after.results.len(),
                after.failed().count(),
                seed.0
            )],
            members: members.as_object().cloned().unwrap_or_else(Map::new),
        }
    }
}

fn changes_json(changes: &Changes) -> Value {
    let members = Changes::NAMES.iter().zip(changes.values());
    Value::Object(members.map(|(name, count)| ((*name).to_string(), json!(count))).collect())
}
