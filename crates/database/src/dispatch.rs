//! The one place where an engine is chosen: when a target is opened. Everything behind it is compiled for each engine.

use crate::connection::Connection;
use crate::mariadb::MariadbConnection;
use crate::postgres::PostgresConnection;

/// Evaluates an expression with the connection type of an engine: `with_engine!(target.engine, C => work::<C>(target).await)`.
macro_rules! with_engine {
    ($engine:expr, $connection:ident => $work:expr) => {
        match $engine {
            $crate::Engine::Postgresql => {
                type $connection = $crate::postgres::PostgresConnection;
                $work
            }
            $crate::Engine::Mariadb => {
                type $connection = $crate::mariadb::MariadbConnection;
                $work
            }
        }
    };
}
pub(crate) use with_engine;

/// The sessions of a workload, one type for each engine.
pub(crate) trait SessionFamily {
    /// With a server of this engine.
    type Of<C: Connection>;
}

/// A session of a workload with a server of whichever engine.
pub(crate) enum AnySession<F: SessionFamily> {
    Postgres(Box<F::Of<PostgresConnection>>),
    Mariadb(Box<F::Of<MariadbConnection>>),
}

/// Opens a session of the target's engine: `open_session!(target.engine, C => EngineSession::<C>::connect(target).await)`.
macro_rules! open_session {
    ($engine:expr, $connection:ident => $connect:expr) => {
        match $engine {
            $crate::Engine::Postgresql => {
                type $connection = $crate::postgres::PostgresConnection;
                $crate::dispatch::AnySession::Postgres(Box::new($connect?))
            }
            $crate::Engine::Mariadb => {
                type $connection = $crate::mariadb::MariadbConnection;
                $crate::dispatch::AnySession::Mariadb(Box::new($connect?))
            }
        }
    };
}
pub(crate) use open_session;

/// Evaluates an expression with the session of whichever engine, once per transaction.
macro_rules! on_session {
    ($any:expr, $session:ident => $work:expr) => {
        match $any {
            $crate::dispatch::AnySession::Postgres($session) => $work,
            $crate::dispatch::AnySession::Mariadb($session) => $work,
        }
    };
}
pub(crate) use on_session;
