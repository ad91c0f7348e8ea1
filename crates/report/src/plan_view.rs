//! The recorded plan as far as reports understand it.
//!
//! A record keeps the plan as the JSON it was given. Reports must be able to read the plans of older
//! and newer versions, so nothing in here fails: what is not understood is absent.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::volume_names::{is_data_volume, is_log_volume};
use crate::workload_view::WorkloadView;

/// The plan of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanView<'a> {
    plan: &'a Value,
    /// Which of several databases it is about; `None` = the whole, or its only one.
    database: Option<&'a str>,
}

/// What makes a user start the next transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pacing {
    /// The answer to the one before, after this multiple of the standard's keying and think times.
    Closed {
        /// The multiple; 0 = none.
        key_think: f64,
    },
    /// A schedule.
    Open,
    /// The plan does not say.
    Unknown,
}

/// One resolved value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedSetting {
    pub(crate) path: String,
    pub(crate) value: String,
    pub(crate) origin: String,
}

impl<'a> PlanView<'a> {
    pub(crate) fn new(plan: &'a Value) -> PlanView<'a> {
        PlanView { plan, database: None }
    }

    /// The same about one of several databases.
    pub(crate) fn of_database(self, name: &'a str) -> PlanView<'a> {
        PlanView { database: Some(name), ..self }
    }

    /// The names of the databases of a design; none where the study has one without a name.
    pub(crate) fn databases(&self, design: usize) -> Vec<String> {
        let here = |database: &'a Value| {
            let name = database["name"].as_str()?;
            // A plan that does not say where it is has it everywhere.
            let is_here =
                !database["designs"].is_array() || self.of_database(name).part(design).is_object();
            is_here.then(|| name.to_string())
        };
        self.described_databases(design).iter().filter_map(here).collect()
    }

    /// What one of several databases does; `None` where the plan does not say, or it does what the whole does.
    pub(crate) fn job_of(&self, design: usize, name: &str) -> Option<WorkloadView> {
        let mut databases = self.described_databases(design).iter();
        let described = databases.find(|database| database["name"] == name)?;
        described["outcome"].is_object().then(|| WorkloadView::of(described))
    }

    /// Of a variant those at its point, where they differ between the points.
    fn described_databases(&self, design: usize) -> &'a [Value] {
        let own = self.plan["designs"][design]["databases"].as_array();
        own.or_else(|| self.plan["databases"].as_array()).map_or(&[], Vec::as_slice)
    }

    /// What describes the server and the client of a design: the design, or the database that this is about.
    fn part(&self, design: usize) -> &'a Value {
        let whole = &self.plan["designs"][design];
        let Some(name) = self.database else { return whole };
        let of_design = whole["variant"]["design"].as_str().or_else(|| whole["name"].as_str());
        let databases = self.described_databases(design).iter();
        let mut databases = databases.filter(|database| database["name"] == name);
        let parts = databases.next().and_then(|database| database["designs"].as_array());
        let mut parts = parts.into_iter().flatten();
        parts.find(|part| part["design"].as_str() == of_design).unwrap_or(&Value::Null)
    }

    /// What makes a user of a design start the next transaction.
    pub(crate) fn pacing(&self, design: usize) -> Pacing {
        // Below the kind of workload: `workload.tpcc.pacing`. Variants may have workloads of their own.
        let own = self.plan["designs"][design]["workload"].as_object();
        let kinds = own.or_else(|| self.plan["workload"].as_object());
        let pacing = kinds
            .and_then(|kinds| kinds.values().find_map(|kind| kind.get("pacing")))
            .unwrap_or(&Value::Null);
        match pacing["closed"]["key_think"].as_f64() {
            Some(key_think) => Pacing::Closed { key_think },
            None if pacing["open"].is_object() => Pacing::Open,
            None => Pacing::Unknown,
        }
    }

    /// Processors given to the database server of a design; to all of them together where the study has several databases.
    /// Databases on a host with a limit have no more than that together.
    pub(crate) fn server_cpus(&self, design: usize) -> Option<f64> {
        let names = self.databases(design);
        if self.database.is_some() || names.is_empty() {
            return least(self.own_cpus(design), self.cpus_of_host(design));
        }
        let mut of_hosts: BTreeMap<&str, (Option<f64>, Option<f64>)> = BTreeMap::new();
        for name in &names {
            let view = PlanView { plan: self.plan, database: Some(name) };
            let host = view.part(design)["host"].as_str().unwrap_or_default();
            let (asked, limit) = (view.own_cpus(design), view.cpus_of_host(design));
            of_hosts
                .entry(host)
                .and_modify(|(all, _)| *all = all.zip(asked).map(|(all, own)| all + own))
                .or_insert((asked, limit));
        }
        of_hosts.into_values().map(|(asked, limit)| least(asked, limit)).sum()
    }

    /// The limit of the server itself.
    fn own_cpus(&self, design: usize) -> Option<f64> {
        let own = &self.part(design)["engine"];
        let engine = if own.is_object() { own } else { &self.plan["engine"] };
        engine["cpus"].as_f64()
    }

    /// What the host that the database is placed on gives all databases on it.
    fn cpus_of_host(&self, design: usize) -> Option<f64> {
        let host = self.part(design)["host"].as_str()?;
        let compute = &self.plan["designs"][design]["datastore"]["cluster"]["compute"];
        let mut hosts = compute.as_array().into_iter().flatten();
        hosts.find(|one| one["host"] == host)?["cpus"].as_f64()
    }

    /// Whether the load generator of a design works within the server's limits.
    pub(crate) fn has_local_client(&self, design: usize) -> bool {
        self.client(design)["place"] == "local"
    }

    /// Connections that the users of a design share; `None` where each has its own.
    pub(crate) fn connections(&self, design: usize) -> Option<f64> {
        self.client(design)["connections"].as_f64()
    }

    fn client(&self, design: usize) -> &'a Value {
        &self.part(design)["client"]
    }

    /// The modelled device that both log and data of a design lie on, of all its databases.
    pub(crate) fn device_of_log_and_data(&self, design: usize) -> Option<String> {
        let volumes = self.plan["designs"][design]["volumes"].as_array()?;
        let of = |is_one: fn(&str) -> bool| -> Option<Vec<&str>> {
            let volumes =
                volumes.iter().filter(|volume| volume["name"].as_str().is_some_and(is_one));
            volumes.map(|volume| volume["device"].as_str()).collect()
        };
        let (logs, data) = (of(is_log_volume)?, of(is_data_volume)?);
        let log = *logs.first()?;
        let is_shared = !data.is_empty() && logs.iter().chain(&data).all(|device| *device == log);
        is_shared.then(|| log.to_string())
    }

    /// The modelled devices of a design: each model, with its share of one where it is scaled, and how many there are.
    pub(crate) fn device_models(&self, design: usize) -> Vec<(String, u64)> {
        let mut models = BTreeMap::new();
        count_devices(&self.plan["designs"][design]["datastore"], 1, &mut models);
        models.into_iter().collect()
    }

    /// Size of the database in units of the memory given to the server.
    pub(crate) fn working_set_ratio(&self) -> Option<f64> {
        self.plan["estimates"]["working_set_ratio"].as_f64()
    }

    /// How narrow the interval of the main ratio had to become to end the repeats: 0.05 = within 5 % of the ratio. `None` where
    /// their number was fixed.
    pub(crate) fn repeats_until(&self) -> Option<f64> {
        self.plan["procedure"]["repeats_until"].as_f64()
    }

    /// Each resolved value with its origin.
    pub(crate) fn settings(&self) -> Vec<PlannedSetting> {
        let setting = |setting: &Value| {
            Some(PlannedSetting {
                path: setting["path"].as_str()?.to_string(),
                value: crate::flatten::plain(&setting["value"]),
                origin: origin(&setting["origin"]),
            })
        };
        self.list("provenance").iter().filter_map(setting).collect()
    }

    /// Results that others published for the designs.
    pub(crate) fn published(&self) -> &'a [Value] {
        self.list("published")
    }

    /// What differs from the publication that the study repeats.
    pub(crate) fn deviations(&self) -> Vec<String> {
        let texts = self.list("deviations").iter().filter_map(Value::as_str);
        texts.map(str::to_string).collect()
    }

    /// The similarity scale; full size where the plan says nothing.
    pub(crate) fn scale(&self) -> String {
        self.plan["scale"].as_str().unwrap_or("1/1").to_string()
    }

    fn list(&self, key: &str) -> &'a [Value] {
        self.plan[key].as_array().map_or(&[], Vec::as_slice)
    }
}

/// A device is whatever has a medium, wherever it stands in a datastore; `copies` beside its profile says how many there are of it.
fn count_devices(part: &Value, copies: u64, models: &mut BTreeMap<String, u64>) {
    match part {
        Value::Array(parts) => parts.iter().for_each(|part| count_devices(part, 1, models)),
        Value::Object(fields) => match (fields.get("medium"), fields.get("name")) {
            (Some(_), Some(name)) => {
                let share = part["divisor"].as_u64().filter(|divisor| *divisor > 1);
                let share = share.map_or_else(String::new, |divisor| format!("1/{divisor} "));
                let model = format!("{share}{}", name.as_str().unwrap_or_default());
                *models.entry(model).or_default() += copies;
            }
            _ => {
                let copies = part["copies"].as_u64().unwrap_or(1);
                fields.values().for_each(|part| count_devices(part, copies, models));
            }
        },
        _ => {}
    }
}

/// The smaller one of two limits that may not be there.
fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().reduce(f64::min)
}

/// Who decided a value, in words: `line 12`, `default`, `built-in nvme`.
fn origin(decided: &Value) -> String {
    let text = |key: &str, field: &str| {
        let value = decided.get(key)?.get(field)?;
        Some(crate::flatten::plain(value))
    };
    if let Some(line) = text("file", "line") {
        return format!("line {line}");
    }
    if let Some(name) = text("built-in", "name") {
        return format!("built-in {name}");
    }
    if let Some(option) = text("command-line", "option") {
        return format!("command line {option}");
    }
    if let Some(full) = text("scale", "full") {
        return format!("scaled from {full} ({})", origin(&decided["scale"]["of"]));
    }
    crate::flatten::plain(decided)
}

#[cfg(test)]
mod tests {
    use super::{Pacing, PlanView, origin};
    use serde_json::json;

    #[test]
    fn origins_are_words() {
        let scaled = json!({ "scale": { "full": "16", "of": { "file": { "line": 12 } } } });
        assert_eq!(origin(&scaled), "scaled from 16 (line 12)");
        assert_eq!(origin(&json!("default")), "default");
        assert_eq!(origin(&json!({ "built-in": { "name": "hdd" } })), "built-in hdd");
    }

    #[test]
    fn databases_have_what_their_hosts_give_them_and_are_not_everywhere() {
        let part = |design: &str, host: &str, cpus: Option<f64>| json!({ "design": design, "host": host, "engine": { "cpus": cpus } });
        let database =
            |name: &str, parts: &[serde_json::Value]| json!({ "name": name, "designs": parts });
        let on = |host: &str, cpus: f64| json!({ "cluster": { "compute": [{ "host": host, "cpus": cpus }] } });
        let plan = json!({
            "engine": { "cpus": 16.0 },
            "designs": [
                { "name": "wide", "datastore": on("node-1", 48.0) },
                { "name": "narrow", "datastore": on("node-1", 20.0) },
            ],
            "databases": [
                database("a", &[part("wide", "node-1", Some(16.0)), part("narrow", "node-1", Some(16.0))]),
                database("b", &[part("wide", "node-1", Some(16.0)), part("narrow", "node-1", Some(16.0))]),
                database("c", &[part("wide", "node-2", Some(16.0))]),
                database("free", &[part("narrow", "node-1", None)]),
            ],
        });
        let plan = PlanView::new(&plan);
        assert_eq!(plan.databases(0), ["a", "b", "c"]);
        assert_eq!(plan.databases(1), ["a", "b", "free"]);
        // Two on a host that has enough, one on a host without a limit; three on a host that has less than they may use.
        assert_eq!((plan.server_cpus(0), plan.server_cpus(1)), (Some(48.0), Some(20.0)));
        assert_eq!(plan.of_database("free").server_cpus(1), Some(20.0));
        assert_eq!(plan.of_database("a").server_cpus(1), Some(16.0));
    }

    #[test]
    fn a_device_of_all_logs_and_data_is_found() {
        let device = |devices: [&str; 4]| {
            let names = ["oltp-1-data", "oltp-1-wal", "large-data", "large-wal"];
            let volumes = names.iter().zip(devices);
            let volumes: Vec<_> =
                volumes.map(|(name, device)| json!({ "name": name, "device": device })).collect();
            let plan = json!({ "designs": [{ "volumes": volumes }] });
            PlanView::new(&plan).device_of_log_and_data(0)
        };
        assert_eq!(device(["a", "a", "a", "a"]).as_deref(), Some("a"));
        assert_eq!(device(["a", "b", "a", "b"]), None);
        assert_eq!(device(["a", "a", "b", "b"]), None);
    }

    #[test]
    fn devices_are_counted_wherever_they_stand() {
        let device =
            |name: &str, divisor: u64| json!({ "name": name, "divisor": divisor, "medium": {} });
        let datastore = json!({ "emulated": { "devices": [
            { "name": "data", "profile": device("flash", 16) },
            { "name": "log", "copies": 2, "profile": device("nvram", 1) },
        ] } });
        let group = json!({ "cache": device("flash", 1), "capacity": [device("disk", 1), device("disk", 1)] });
        let hosts = json!({ "cluster": { "hosts": [{ "disk_groups": [group] }, { "disk_groups": [group] }] } });
        let plan = json!({ "designs": [{ "datastore": datastore }, { "datastore": hosts }] });
        let models = |design| PlanView::new(&plan).device_models(design);
        let model = |name: &str, number| (name.to_string(), number);
        assert_eq!(models(0), [model("1/16 flash", 1), model("nvram", 2)]);
        assert_eq!(models(1), [model("disk", 4), model("flash", 2)]);
        assert_eq!(models(2), []);
    }

    #[test]
    fn pacing_is_understood_or_absent() {
        let cases = [
            (json!({ "closed": { "key_think": 0.5 } }), Pacing::Closed { key_think: 0.5 }),
            (json!({ "open": { "rate_per_second": 10 } }), Pacing::Open),
            (json!("closed"), Pacing::Unknown),
            (json!(null), Pacing::Unknown),
        ];
        for (pacing, expected) in cases {
            let plan = json!({ "workload": { "tpcc": { "pacing": pacing } } });
            assert_eq!(PlanView::new(&plan).pacing(0), expected, "{plan}");
        }
        assert_eq!(PlanView::new(&json!(null)).settings(), vec![]);
    }
}
