//! The server that everything runs on, as each program wants it named.

use underlay_database::{Engine, Target};

use crate::Failure;

/// A server and a database of it, over TCP.
#[derive(Clone, Debug)]
pub struct Place {
    pub engine: Engine,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
}

impl Place {
    /// What the example `with_server` says.
    pub fn from_environment() -> Result<Place, Failure> {
        let variable = |name: &str| {
            std::env::var(name)
                .map_err(|_| format!("{name} is not set: run this with `with_server`"))
        };
        let target = Target::from_url(&variable("BENCH_URL")?)?;
        Ok(Place {
            engine: target.engine,
            host: variable("BENCH_HOST")?,
            port: variable("BENCH_PORT")?.parse()?,
            user: variable("BENCH_USER")?,
            password: variable("BENCH_PASSWORD")?,
            database: target.database,
        })
    }

    /// The same server, another database.
    pub fn with_database(&self, database: &str) -> Place {
        Place { database: database.to_string(), ..self.clone() }
    }

    /// The same database through another port of this host.
    pub fn through(&self, port: u16) -> Place {
        Place { host: "127.0.0.1".to_string(), port, ..self.clone() }
    }

    /// With the password in it: for the environment of a child, never for its arguments.
    pub fn url(&self) -> String {
        let scheme = match self.engine {
            Engine::Postgresql => "postgres",
            Engine::Mariadb => "mysql",
        };
        let Place { user, password, host, port, database, .. } = self;
        format!("{scheme}://{user}:{password}@{host}:{port}/{database}")
    }

    /// For the checks that are made here.
    pub fn target(&self) -> Result<Target, Failure> {
        Ok(Target::from_url(&self.url())?)
    }
}
