//! A managed server for one test of a peer; dropping it leaves nothing behind.

use underlay_database::managed::Listen;
use underlay_database::{Address, Engine};
use underlay_testbed::{Bed, NoServer, TestServer, settings};

use crate::place::Place;

/// A running server, empty.
pub struct Stand(TestServer);

impl Stand {
    pub fn start(engine: Engine) -> Result<Stand, NoServer> {
        let settings = settings(match engine {
            Engine::Postgresql => &[("shared_buffers", "128MB"), ("max_connections", "40")],
            Engine::Mariadb => &[
                ("innodb_buffer_pool_size", "256M"),
                ("innodb_log_file_size", "128M"),
                ("max_connections", "40"),
            ],
        });
        Ok(Stand(TestServer::start_on(Bed::on_disk(engine)?, |spec| {
            (spec.settings, spec.listen) = (settings, Listen::Loopback);
        })))
    }

    /// Its superuser, over 127.0.0.1.
    pub fn place(&self) -> Place {
        let target = self.0.server.tcp_target().expect("it listens");
        let Address::Tcp(host) = target.address else { panic!("not a TCP address") };
        Place {
            engine: target.engine,
            host,
            port: target.port,
            user: target.user,
            password: target.password.map_or(String::new(), |word| word.reveal().to_string()),
            database: target.database,
        }
    }
}
