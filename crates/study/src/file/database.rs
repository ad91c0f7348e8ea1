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

impl Database {
    /// Whether one of these databases can have that name. How many hosts they are placed on is not known here.
    pub(crate) fn names(&self, database: &str) -> bool {
        let Some(name) = self.name.get() else { return false };
        let Some(rest) = database.strip_prefix(name.as_str()) else { return false };
        let most = match self.is_numbered() {
            false => return rest.is_empty(),
            true => self.count.get().copied().unwrap_or(*DATABASES.end()),
        };
        let number = rest.strip_prefix('-').filter(|number| !number.starts_with(['0', '+']));
        let number = number.and_then(|number| number.parse::<u64>().ok());
        number.is_some_and(|number| (1..=most).contains(&number))
    }

    /// The name of the first of them.
    pub(crate) fn first_name(&self) -> Option<String> {
        let name = self.name.get()?;
        Some(if self.is_numbered() { format!("{name}-1") } else { name.clone() })
    }

    /// Whether their names end in a number.
    pub(crate) fn is_numbered(&self) -> bool {
        !self.count.is_absent() || self.is_placed()
    }

    /// Whether they are placed on hosts of a cluster.
    pub(crate) fn is_placed(&self) -> bool {
        !self.per_host.is_absent() || !self.hosts.is_absent()
    }
}
