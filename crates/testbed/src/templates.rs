//! Templates of empty and of loaded databases, kept from test to test.
//!
//! ```text
//! <test program>.templates/
//!   <time at which the program was built>/
//!     <engine and version>-empty/
//!     <engine and version>-<population>/
//!     *.lock
//! ```
//!
//! A test runner may start a process for each test, so they are kept beside the test program and are made by
//! the first process that needs one. Those of an earlier build are removed, because another build may create or
//! load a database differently. Nothing else removes them, but they are in the target folder of cargo.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use underlay_core::Bytes;
use underlay_database::Engine;
use underlay_database::managed::{Install, RestoreOptions, Server, ServerSpec, StopMode, Template};
use underlay_database::tpcc::{LoadOptions, Mode, identity, load};
use underlay_host::Teardown;
use underlay_workload::tpcc::Parameters;

use crate::bed::Bed;

/// Where this program's templates are.
static STORE: LazyLock<PathBuf> = LazyLock::new(|| folder_of_build(&env::current_exe().unwrap()));

/// A server, not started, that is empty or has a population, which is in the schema or database `tpcc`.
pub(crate) fn restored(
    teardown: &Teardown,
    spec: ServerSpec<Install>,
    population: Option<&Parameters>,
) -> Server {
    let template = template(&spec.install, population);
    template.restore(teardown, spec, &RestoreOptions { log_ready: Bytes::ZERO }).unwrap().0
}

/// The template of an empty database, or of one with a population.
fn template(install: &Install, population: Option<&Parameters>) -> Template {
    let engine = install.engine();
    let content = population.map_or_else(
        || "empty".to_string(),
        |parameters| identity(engine, parameters, Mode::Procedures).short().to_string(),
    );
    let name = format!("{}-{}-{content}", install.product(), install.version());
    let dir = STORE.join(&name);
    let lock = File::create(STORE.join(format!("{name}.lock"))).unwrap();
    // Until it is dropped; another process may be making the same.
    lock.lock().unwrap();
    Template::open(engine, &dir).unwrap_or_else(|_| make(engine, population, &dir))
}

fn make(engine: Engine, population: Option<&Parameters>, dir: &Path) -> Template {
    let bed = Bed::anywhere(engine).unwrap();
    let spec = bed.spec(bed.install.clone(), "made", careless(engine));
    let mut server = match population {
        None => Server::create(&bed.teardown, spec).unwrap(),
        Some(_) => restored(&bed.teardown, spec, None),
    };
    server.start().unwrap();
    if let Some(parameters) = population {
        load(&server.target(), parameters, &LoadOptions { parallel: 2, progress: &|_| {} })
            .unwrap();
    }
    server.stop(StopMode::Fast).unwrap();
    Template::capture(&mut server, dir, BTreeMap::new()).unwrap().0
}

/// A folder beside a program, for what tests keep as long as the program is not built again: another build may make
/// it otherwise.
pub fn folder_of_build(program: &Path) -> PathBuf {
    let built = fs::metadata(program).and_then(|program| program.modified()).unwrap();
    let built = built.duration_since(UNIX_EPOCH).unwrap().as_nanos().to_string();
    let of_builds = program.with_extension("templates");
    let own = of_builds.join(built);
    fs::create_dir_all(&own).unwrap();
    for other in fs::read_dir(&of_builds).unwrap().flatten().filter(|other| other.path() != own) {
        // Another process may be removing it too.
        let _ = fs::remove_dir_all(other.path());
    }
    own
}

/// Settings under which nothing is waited for: what is made here is stopped cleanly, or made again.
pub(crate) fn careless(engine: Engine) -> &'static [(&'static str, &'static str)] {
    match engine {
        Engine::Postgresql => &[
            ("shared_buffers", "512MB"),
            ("fsync", "off"),
            ("full_page_writes", "off"),
            ("wal_level", "minimal"),
            ("max_wal_senders", "0"),
            ("max_wal_size", "4GB"),
            ("autovacuum", "off"),
            // As a careless server would have it: the load must freeze its rows nevertheless.
            ("synchronous_commit", "off"),
        ],
        Engine::Mariadb => &[
            ("innodb_buffer_pool_size", "256M"),
            ("innodb_log_file_size", "16M"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("max_connections", "60"),
        ],
    }
}
