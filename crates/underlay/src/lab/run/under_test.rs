//! A database of a run once its server is there: where it is, and what the record calls it. It is made in
//! [`database`](super::database).

use std::path::PathBuf;

use underlay_database::managed::Server;
use underlay_database::{Engine, Target};
use underlay_host::Cgroup;
use underlay_study::DatabasePart;

use super::bench::DatabaseBench;
use crate::lab::faults::Serving;
use crate::lab::run_log::RunLog;

/// A database of a run, without its load.
pub struct UnderTest<'a> {
    /// What all runs share of it.
    pub bench: &'a DatabaseBench<'a>,
    /// What it is in the design of the run.
    pub part: &'a DatabasePart,
    /// Its part of the record.
    pub log: RunLog<'a>,
    /// A folder of its own.
    pub scratch: PathBuf,
    /// What limits it.
    pub cgroup: Option<Cgroup>,
    /// Its server.
    pub server: Server,
}

impl UnderTest<'_> {
    /// Where its users and checks connect to.
    pub fn target(&self) -> Target {
        self.server.target().with_database(self.bench.subject.database())
    }

    /// What the record calls its server's processes.
    pub fn process(&self) -> String {
        self.log.recorded(process_name(self.bench.install.engine()))
    }

    /// Behind "the database server": which one, where there are several.
    pub fn described(&self) -> String {
        match self.log.database {
            "" => String::new(),
            name => format!(" of `{name}`"),
        }
    }
}

/// The servers of databases, for what happens to all of them.
pub fn serving<'s>(databases: &'s mut [UnderTest<'_>]) -> Vec<Serving<'s>> {
    databases
        .iter_mut()
        .map(|database| Serving { process: database.process(), server: &mut database.server })
        .collect()
}

/// The record's name of the server's processes, by which its pages find them.
fn process_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "postgres",
        Engine::Mariadb => "mariadb",
    }
}
