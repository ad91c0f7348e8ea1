//! The whole file.

use crate::entry::{Entry, Section};
use crate::file::{
    Axis, Background, Client, Database, Design, Engine, Fault, IoProfile, Laptop, Procedure,
    Published, Start, Volumes, Weights, Workload,
};
use crate::limits::SEED;
use crate::section::*;

section! {
    /// One study: a question, storage designs that differ in what is being asked, one workload, one
    /// procedure.
    pub(crate) struct Study as "Study" {
        /// Name of the study, used in file names: lower case letters, digits, `-`, `_` and `.`.
        "name" name: Entry<String> = One(text());
        /// One line for people. The name, when left out.
        "title" title: Entry<String> = One(text());
        /// What the study asks, in one sentence.
        "question" question: Entry<String> = One(text());
        /// Of a study that repeats a publication: what differs from it, one sentence each.
        "deviations" deviations: Entry<Vec<String>> = One(list("sentences", text()));
        /// Everything random derives from this number: equal seeds give equal data and
        /// transactions.
        "seed" seed: Entry<u64> = One(whole(SEED));
        /// The database server.
        "engine" engine: Section<Engine> = table::<Engine>();
        /// Where the load generator runs, and how it reaches the server.
        "client" client: Section<Client> = table::<Client>();
        /// Volumes that all designs have, unless a design says otherwise.
        "volumes" volumes: Section<Volumes> = table::<Volumes>();
        /// The databases under test, where a study has several at once. What they leave out is as
        /// `[engine]`, `[client]`, `[volumes]` and `[workload]` say.
        "database" database: Entry<Vec<Section<Database>>> = tables::<Database>();
        /// The storage designs that are compared.
        "design" design: Entry<Vec<Section<Design>>> = tables::<Design>();
        /// What is varied besides designs and users.
        "axis" axis: Entry<Vec<Section<Axis>>> = tables::<Axis>();
        /// What the users do.
        "workload" workload: Section<Workload> = table::<Workload>();
        /// What every run begins with, in addition to the database.
        "start" start: Section<Start> = table::<Start>();
        /// How it is measured.
        "procedure" procedure: Section<Procedure> = table::<Procedure>();
        /// The mix of transactions, changed while the load runs.
        "weights" weights: Entry<Vec<Section<Weights>>> = tables::<Weights>();
        /// Work alongside the users in every run.
        "background" background: Entry<Vec<Section<Background>>> = tables::<Background>();
        /// Block loads of the study's own, for background work; the form is that of a file for
        /// `underlay io`.
        "io-profile" io_profile: Entry<Vec<Section<IoProfile>>> = tables::<IoProfile>();
        /// What breaks, or changes, during every run.
        "fault" fault: Entry<Vec<Section<Fault>>> = tables::<Fault>();
        /// What is smaller in a run on a laptop (`--laptop`).
        "laptop" laptop: Section<Laptop> = table::<Laptop>();
        /// Results that others published, shown next to the study's own.
        "published" published: Entry<Vec<Section<Published>>> = tables::<Published>();
    }
    written_for {
        "designs" => "design", "description" => "question", "users" => "procedure",
        "warehouses" => "workload", "faults" => "fault", "backgrounds" => "background",
        "mix" => "weights", "databases" => "database", "axes" => "axis", "io-profiles" => "io-profile",
    }
    limits {
        "required": ["name", "question", "design", "procedure"],
        "anyOf": [{ "required": ["workload"] }, { "required": ["database"] }]
    }
}
