//! A running server of a test's own.

use underlay_database::managed::{Install, Server, ServerSpec};
use underlay_database::{Engine, Target};
use underlay_workload::tpcc::Parameters;

use crate::bed::{Bed, NoServer, settings};
use crate::templates::restored;

/// A server on a bed of its own. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct TestServer {
    /// The server.
    pub server: Server,
    /// The database to use, where it is not the engine's own.
    pub database: Option<&'static str>,
    /// Where it is.
    pub bed: Bed,
}

impl TestServer {
    /// An empty server on a disk that listens on its Unix socket.
    pub fn start(engine: Engine, pairs: &[(&str, &str)]) -> Result<TestServer, NoServer> {
        Ok(TestServer::start_on(Bed::on_disk(engine)?, |spec| spec.settings = settings(pairs)))
    }

    /// An empty server of the bed's engine, made as `adjust` changes the spec of [`Bed::spec`].
    pub fn start_on(bed: Bed, adjust: impl FnOnce(&mut ServerSpec<Install>)) -> TestServer {
        TestServer::restored(bed, None, adjust)
    }

    /// One with a TPC-C population, which is in the database that [`TestServer::target`] names.
    pub(crate) fn loaded_on(
        bed: Bed,
        population: &Parameters,
        adjust: impl FnOnce(&mut ServerSpec<Install>),
    ) -> TestServer {
        let server = TestServer::restored(bed, Some(population), adjust);
        let database = match server.bed.install.engine() {
            Engine::Postgresql => None,
            Engine::Mariadb => Some("tpcc"),
        };
        TestServer { database, ..server }
    }

    fn restored(
        bed: Bed,
        population: Option<&Parameters>,
        adjust: impl FnOnce(&mut ServerSpec<Install>),
    ) -> TestServer {
        let mut spec = bed.spec(bed.install.clone(), "test", &[]);
        adjust(&mut spec);
        let mut server = restored(&bed.teardown, spec, population);
        server.start().unwrap();
        TestServer { server, database: None, bed }
    }

    /// How to connect to its database as administrator. Valid until the next start.
    pub fn target(&self) -> Target {
        let target = self.server.target();
        self.database.map_or_else(|| target.clone(), |name| target.with_database(name))
    }
}
