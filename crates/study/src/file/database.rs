//! `[[database]]`: several databases under test at once.

use crate::entry::{Entry, Section};
use crate::file::{Client, Engine, Volumes, Workload};
use crate::limits::DATABASES;
use crate::section::*;

section! {
    /// A database under test, or several equal ones. All databases of a study are loaded and measured
    /// together in every run.
    pub(crate) struct Database as "Database" {
        /// Name, unique in the study, by which results and volumes are called. With a count, `-1`, `-2`
        /// and so on are appended.
        "name" name: Entry<String> = One(text());
        /// How many equal databases. 1, when left out.
        "count" count: Entry<u64> = One(whole(DATABASES));
        /// How many equal databases on each host of a design's cluster, instead of `count`. 1, when
        /// only `hosts` is given. 0 leaves them out, at a point of an axis.
        "per-host" per_host: Entry<u64> = One(whole(0..=16));
        /// Names of the hosts that they are placed on. All hosts, when left out.
        "hosts" hosts: Entry<Vec<String>> = One(list("names of hosts", text()));
        /// What differs from the study's `[engine]`.
        "engine" engine: Section<Engine> = table::<Engine>();
        /// What differs from the study's `[client]`.
        "client" client: Section<Client> = table::<Client>();
        /// The volumes, as far as they differ from the study's `[volumes]`.
        "volumes" volumes: Section<Volumes> = table::<Volumes>();
        /// What differs from the study's `[workload]`.
        "workload" workload: Section<Workload> = table::<Workload>();
    }
    written_for {
        "number" => "count", "instances" => "count", "settings" => "engine", "memory-limit" => "engine",
        "cpus" => "engine", "volume" => "volumes", "warehouses" => "workload",
    }
    limits { "required": ["name"] }
}
