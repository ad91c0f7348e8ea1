//! The whole file.

use schemars::JsonSchema;

use crate::entry::{Entry, Section};
use crate::file::{
    Background, Design, Engine, Fault, IoProfile, Procedure, Published, Volumes, Weights, Workload,
};
use crate::limits::SEED;
use crate::reader::Keys;

/// One study: a question, storage designs that differ in what is being asked, one workload, one
/// procedure.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["name", "question", "design", "workload", "procedure"]))]
pub(crate) struct Study {
    /// Name of the study, used in file names: lower case letters, digits, `-`, `_` and `.`.
    pub name: Entry<String>,
    /// One line for people. The name, when left out.
    pub title: Entry<String>,
    /// What the study asks, in one sentence.
    pub question: Entry<String>,
    /// Everything random derives from this number: equal seeds give equal data and transactions.
    #[schemars(range(min = 0))]
    pub seed: Entry<u64>,
    /// The database server.
    pub engine: Section<Engine>,
    /// Volumes that all designs have, unless a design says otherwise.
    pub volumes: Section<Volumes>,
    /// The storage designs that are compared.
    pub design: Entry<Vec<Section<Design>>>,
    /// What the users do.
    pub workload: Section<Workload>,
    /// How it is measured.
    pub procedure: Section<Procedure>,
    /// The mix of transactions, changed while the load runs.
    pub weights: Entry<Vec<Section<Weights>>>,
    /// Work beside the users in every run.
    pub background: Entry<Vec<Section<Background>>>,
    /// Block loads of the study's own, for background work; the form is that of a file for `underlay io`.
    pub io_profile: Entry<Vec<Section<IoProfile>>>,
    /// What breaks, or changes, during every run.
    pub fault: Entry<Vec<Section<Fault>>>,
    /// Results that others published, shown beside the study's own.
    pub published: Entry<Vec<Section<Published>>>,
}

/// Reads the whole file.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Study {
    keys.alias("designs", "design");
    keys.alias("description", "question");
    keys.alias("users", "procedure");
    keys.alias("warehouses", "workload");
    keys.alias("faults", "fault");
    keys.alias("backgrounds", "background");
    keys.alias("mix", "weights");
    keys.alias("io-profiles", "io-profile");
    Study {
        name: keys.take("name", |item, report| item.text(report)),
        title: keys.take("title", |item, report| item.text(report)),
        question: keys.take("question", |item, report| item.text(report)),
        seed: keys.take("seed", |item, report| item.integer(report, SEED)),
        engine: keys.section("engine", super::engine::read),
        volumes: keys.section("volumes", super::design::read_volumes),
        design: keys.sections("design", super::design::read),
        workload: keys.section("workload", super::workload::read),
        procedure: keys.section("procedure", super::procedure::read),
        weights: keys.sections("weights", super::weights::read),
        background: keys.sections("background", super::background::read),
        io_profile: keys.sections("io-profile", super::io_profile::read),
        fault: keys.sections("fault", super::fault::read),
        published: keys.sections("published", super::published::read),
    }
}
