//! The workload of a record, as far as reports understand it: its types, and what its headline counts.
//!
//! Plans carry both. Those of before they did are all of TPC-C.

use serde_json::Value;

use crate::analysis::Workload;
use crate::transaction_types::NEW_ORDER;
use crate::wording::count;

/// The name of a load of block I/O by the command, in the place of a database's workload: one run, which is never repeated.
const BLOCK_COMMAND: &str = "io";
/// The name of a block load of a study.
const BLOCK_STUDY: &str = "block";
/// The name of backup and restore cycles.
const BACKUP: &str = "backup";
/// Everything that a block load counts, as one.
pub(crate) const ALL_REQUESTS: &str = "reads and writes";

impl Workload {
    /// Whether requests to storage are counted, not transactions of a database.
    pub(crate) fn is_block_load(&self) -> bool {
        is_block_load(&self.name)
    }

    /// Whether the record is of one run that is never repeated, and whose rounds are parts of it.
    pub(crate) fn is_one_run(&self) -> bool {
        self.name == BLOCK_COMMAND
    }
}

fn is_block_load(name: &str) -> bool {
    [BLOCK_COMMAND, BLOCK_STUDY].contains(&name)
}

/// What the headline of a job is in records that do not say so.
const JOB: &str = "the job's result, as its workload defines it";

/// The types that the headline counts, and how its number is named.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkloadView {
    /// The word of the file format: `tpcc`.
    pub(crate) name: String,
    /// What is counted, in the plural: `new orders`.
    pub(crate) counted: String,
    /// The unit as it is printed: `NOPM`.
    pub(crate) unit: String,
    /// The types that are counted.
    pub(crate) types: Vec<String>,
    /// The unit's period, seconds: 60 or 1.
    pub(crate) period_s: f64,
    /// The notice that every page with a result must show.
    pub(crate) notice: String,
    /// What this plan's users deviate in from the standard, beyond what every plan of the workload does.
    pub(crate) deviations: Vec<String>,
    /// How the headline of a run is obtained.
    pub(crate) headline: HeadlineKind,
}

/// How the headline of a run is obtained, and what a number of users means with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadlineKind {
    /// Counted in the measured window of each rung.
    Counted,
    /// The highest rate that a search found under this condition (`within p99 <= 10 ms`).
    Searched { condition: String },
    /// The result of a job, with this definition.
    Job { definition: String },
}

impl WorkloadView {
    /// Of the plan in a record.
    pub(crate) fn of(plan: &Value) -> WorkloadView {
        let kinds = plan["workload"].as_object();
        let described = kinds
            .and_then(|kinds| kinds.iter().find_map(|(name, kind)| WorkloadView::read(name, kind)));
        described.unwrap_or_else(WorkloadView::tpcc).concluded(&plan["outcome"])
    }

    fn read(name: &str, kind: &Value) -> Option<WorkloadView> {
        let shape = kind.get("shape")?;
        let headline = &shape["headline"];
        Some(WorkloadView {
            name: name.to_string(),
            counted: headline["counted"].as_str()?.to_string(),
            unit: headline["unit"].as_str()?.to_string(),
            types: texts(&headline["types"])?,
            period_s: headline["period_ns"].as_u64()? as f64 / 1e9,
            notice: shape["notice"].as_str().unwrap_or_default().to_string(),
            deviations: texts(&kind["deviations"]).unwrap_or_default(),
            headline: HeadlineKind::Counted,
        })
    }

    /// The same where each run's headline is concluded as the plan's `outcome` says.
    fn concluded(self, outcome: &Value) -> WorkloadView {
        let Some(counted) = outcome["counted"].as_str() else { return self };
        WorkloadView {
            counted: counted.to_string(),
            unit: outcome["unit"].as_str().unwrap_or(&self.unit).to_string(),
            types: texts(&outcome["types"]).unwrap_or(self.types),
            period_s: outcome["period_ns"].as_u64().map_or(self.period_s, |ns| ns as f64 / 1e9),
            headline: match outcome["kind"].as_str() {
                Some("job") => HeadlineKind::Job {
                    definition: outcome["definition"].as_str().unwrap_or(JOB).to_string(),
                },
                _ => HeadlineKind::Searched {
                    condition: outcome["condition"].as_str().unwrap_or_default().to_string(),
                },
            },
            ..self
        }
    }

    /// TPC-C.
    pub(crate) fn tpcc() -> WorkloadView {
        WorkloadView {
            name: "tpcc".to_string(),
            counted: "new orders".to_string(),
            unit: "NOPM".to_string(),
            types: vec![NEW_ORDER.to_string()],
            period_s: 60.0,
            notice: String::new(),
            deviations: Vec::new(),
            headline: HeadlineKind::Counted,
        }
    }

    /// Whether requests to storage are counted, not transactions of a database: what is counted as users are then
    /// requests in flight, and there are no sessions whose time could be divided.
    pub(crate) fn is_block_load(&self) -> bool {
        is_block_load(&self.name)
    }

    /// Whether the record is of one run that is never repeated, and whose rounds are parts of it.
    pub(crate) fn is_one_run(&self) -> bool {
        self.name == BLOCK_COMMAND
    }

    /// What requests in flight are counted on: volumes may differ in number between the designs of a study.
    pub(crate) fn in_flight_where(&self) -> &'static str {
        if self.name == BLOCK_STUDY { " per volume" } else { "" }
    }

    /// Whether backups and restores are taken: by programs of the engine, not by sessions that ask something.
    pub(crate) fn is_backup(&self) -> bool {
        self.name == BACKUP
    }

    /// Whether sessions of a database do the work.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.is_block_load() && !self.is_backup()
    }

    /// Whether the headlines of both are the same quantity in the same unit, so that one can be divided by the other.
    pub(crate) fn counts_the_same_as(&self, other: &WorkloadView) -> bool {
        let measure = |view: &WorkloadView| (view.rate_words(), view.unit.clone());
        measure(self) == measure(other) && self.is_job() == other.is_job()
    }

    /// Whether the headline counts this type.
    pub(crate) fn counts(&self, transaction: &str) -> bool {
        self.types.iter().any(|counted| counted == transaction)
    }

    /// The type among these that represents what is counted: of a block load with reads and writes both together, as its
    /// headline counts both.
    pub(crate) fn main_type<'a>(
        &self,
        types: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<&'a str> {
        let together = types.clone().find(|name| self.is_block_load() && *name == ALL_REQUESTS);
        together.or_else(|| types.into_iter().find(|name| self.counts(name)))
    }

    /// `new orders per minute`.
    pub(crate) fn rate_words(&self) -> String {
        let rate = format!("{} per {}", self.counted, self.period_word());
        match &self.headline {
            HeadlineKind::Searched { condition } => format!("{rate} {condition}"),
            HeadlineKind::Counted | HeadlineKind::Job { .. } => rate,
        }
    }

    /// Whether it runs until it is done, without users.
    pub(crate) fn is_job(&self) -> bool {
        matches!(self.headline, HeadlineKind::Job { .. })
    }

    /// What a time line of what is counted draws, by the second: the title, the unit, and the period that a count is of. Neither
    /// a search's headline nor a job's is anything that happens in a second.
    pub(crate) fn counted_by_the_second(&self) -> (String, &'static str, f64) {
        if self.is_backup() {
            return ("MB written by backups and restores per second".to_string(), "1/s", 1.0);
        }
        if self.is_job() {
            return (format!("{} done per second", self.counted), "1/s", 1.0);
        }
        (format!("{} per {}", self.counted, self.period_word()), self.rate_unit(), self.period_s)
    }

    /// Where a headline was taken, with a space before it: ` at 16 users`; nothing of a job, which has none.
    pub(crate) fn at(&self, users: u32) -> String {
        if self.is_block_load() {
            let requests = count(u64::from(users), "request");
            return format!(" with {requests} in flight{}", self.in_flight_where());
        }
        let users = count(u64::from(users), "user");
        match self.headline {
            HeadlineKind::Searched { .. } => format!(" with at most {users} busy"),
            HeadlineKind::Counted => format!(" at {users}"),
            HeadlineKind::Job { .. } => String::new(),
        }
    }

    /// `hour`, `minute` or `second`.
    pub(crate) fn period_word(&self) -> &'static str {
        self.period().0
    }

    /// The period in words and as a unit.
    fn period(&self) -> (&'static str, &'static str) {
        match self.period_s {
            3600.0 => ("hour", "1/h"),
            60.0 => ("minute", "1/min"),
            _ => ("second", "1/s"),
        }
    }

    /// The unit in tables: `1/min`.
    pub(crate) fn rate_unit(&self) -> &'static str {
        self.period().1
    }

    /// As pages need it.
    pub(crate) fn serialisable(&self) -> Workload {
        Workload {
            name: self.name.clone(),
            counted: self.counted.clone(),
            unit: self.unit.clone(),
            types: self.types.clone(),
            rate: self.rate_words(),
            rate_unit: self.rate_unit().to_string(),
            notice: self.notice.clone(),
            is_job: self.is_job(),
        }
    }
}

/// A list of texts.
fn texts(list: &Value) -> Option<Vec<String>> {
    let texts = list.as_array()?.iter();
    Some(texts.filter_map(|text| Some(text.as_str()?.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::{ALL_REQUESTS, WorkloadView};
    use serde_json::json;

    #[test]
    fn what_a_plan_says_is_read_and_older_ones_are_of_tpcc() {
        let shape = json!({
            "headline": {
                "types": ["read_write", "read_only"],
                "counted": "transactions",
                "unit": "TPS",
                "period_ns": 1_000_000_000u64,
            },
            "notice": "compatible",
        });
        let view = WorkloadView::of(&json!({ "workload": { "sysbench": { "shape": shape } } }));
        assert_eq!(view.rate_words(), "transactions per second");
        assert!(view.counts("read_only") && !view.counts("new_order"));
        assert_eq!(view.main_type(["other", "read_only"].into_iter()), Some("read_only"));
        let shape = json!({
            "headline": {
                "types": ["read"], "counted": "I/Os", "unit": "IOPS", "period_ns": 1_000_000_000u64,
            },
        });
        let blocks = WorkloadView::of(&json!({ "workload": { "io": { "shape": shape } } }));
        assert_eq!(blocks.rate_words(), "I/Os per second");
        assert_eq!(
            (blocks.at(1), blocks.at(32)),
            (" with 1 request in flight".to_string(), " with 32 requests in flight".to_string(),)
        );
        let study = json!({
            "headline": {
                "types": ["read", "write"], "counted": "I/Os", "unit": "IOPS", "period_ns": 1_000_000_000u64,
            },
        });
        let study = WorkloadView::of(&json!({ "workload": { "block": { "shape": study } } }));
        assert_eq!(study.at(8), " with 8 requests in flight per volume");
        assert!(study.is_block_load() && !study.is_one_run() && blocks.is_one_run());
        assert_eq!(
            study.main_type(["read", "write", ALL_REQUESTS].into_iter()),
            Some(ALL_REQUESTS)
        );
        assert_eq!(study.main_type(["write"].into_iter()), Some("write"));
        let older = json!({ "workload": { "tpcc": { "warehouses": 8 } } });
        for plan in [older, json!(null)] {
            assert_eq!(WorkloadView::of(&plan), WorkloadView::tpcc());
        }
        assert_eq!(WorkloadView::tpcc().rate_words(), "new orders per minute");
        let outcome = json!({
            "kind": "job", "definition": "a composition", "counted": "queries", "unit": "queries/h",
            "period_ns": 3_600_000_000_000u64,
        });
        let job = WorkloadView::of(&json!({ "outcome": outcome }));
        assert_eq!(job.at(2), "");
        assert_eq!(
            job.counted_by_the_second(),
            ("queries done per second".to_string(), "1/s", 1.0)
        );
    }
}
