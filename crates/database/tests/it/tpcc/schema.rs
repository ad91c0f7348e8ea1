//! Whose schema it is, and whether it is complete.

use std::sync::atomic::{AtomicBool, Ordering};

use underlay_core::RootSeed;
use underlay_database::tpcc::{
    LoadOptions, LoadStage, Mode, Session, TpccError, describe, drop_schema, load,
};
use underlay_database::{Engine, ErrorClass};
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip, parameters};
use underlay_workload::tpcc::{Entropy, Parameters};

fn described(database: &Database) -> Result<(), TpccError> {
    database.bed.runtime.block_on(async { describe(&database.target).await.map(|_| ()) })
}

fn dropped(database: &Database) -> Result<(), TpccError> {
    database.bed.runtime.block_on(async { drop_schema(&database.target).await })
}

fn loaded(database: &Database, warehouses: u32) -> Result<(), TpccError> {
    let options = LoadOptions { parallel: 2, progress: &|_| {} };
    load(&database.target, &parameters(warehouses), &options).map(|_| ())
}

#[test]
fn a_foreign_schema_is_never_touched() {
    let database = or_skip!(Database::empty(Engine::Postgresql));
    assert!(matches!(described(&database), Err(TpccError::NotLoaded)));
    assert!(matches!(dropped(&database), Err(TpccError::NotLoaded)));
    database.execute("CREATE SCHEMA tpcc; CREATE TABLE tpcc.warehouse (w_id integer)");
    assert!(matches!(described(&database), Err(TpccError::Foreign)));
    assert!(matches!(dropped(&database), Err(TpccError::Foreign)));
    assert!(matches!(loaded(&database, ONE_WAREHOUSE), Err(TpccError::Foreign)));
    assert_eq!(database.text("SELECT count(*) FROM tpcc.warehouse"), "0");
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'tpcc'";
    assert_eq!(database.number(tables), 1);
}

#[test]
fn a_population_is_not_loaded_over() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    assert!(matches!(loaded(&database, ONE_WAREHOUSE), Err(TpccError::AlreadyLoaded)));
    described(&database).unwrap();
    dropped(&database).unwrap();
    assert!(matches!(described(&database), Err(TpccError::NotLoaded)));
}

#[test]
fn an_interrupted_load_is_incomplete() {
    let database = or_skip!(Database::empty(Engine::Postgresql));
    let killed = AtomicBool::new(false);
    let options = LoadOptions {
        parallel: 2,
        progress: &|progress| {
            if progress.stage == LoadStage::Rows && progress.rows > 50_000 {
                // All loaders at once, as a crash of the server would.
                if !killed.swap(true, Ordering::Relaxed) {
                    kill_loaders(&database);
                }
            }
        },
    };
    let error = load(&database.target, &parameters(ONE_WAREHOUSE), &options).unwrap_err();
    let TpccError::Session(cause) = &error else { panic!("{error:?}") };
    assert_eq!(cause.class, ErrorClass::ConnectionLost, "{cause:?}");

    assert!(matches!(described(&database), Err(TpccError::Incomplete)));
    assert!(matches!(loaded(&database, ONE_WAREHOUSE), Err(TpccError::AlreadyLoaded)));
    let parameters = parameters(ONE_WAREHOUSE);
    let connected = Session::connect(&database.target, &parameters, Mode::Procedures);
    let refused = database.bed.runtime.block_on(connected).err().unwrap();
    assert!(refused.message.contains("incomplete"), "{refused}");
    dropped(&database).unwrap();
    loaded(&database, ONE_WAREHOUSE).unwrap();
    described(&database).unwrap();
}

fn kill_loaders(database: &Database) {
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'underlay-load'",
    );
}

#[test]
fn a_session_refuses_another_population() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let connect = |warehouses, seed| {
        let parameters = Parameters::new(warehouses, RootSeed(seed), Entropy::FULL).unwrap();
        let session = Session::connect(&database.target, &parameters, Mode::Statements);
        database.bed.runtime.block_on(session).map(|_| ())
    };
    connect(2, 42).unwrap();
    for refused in [connect(1, 42), connect(2, 43)] {
        let error = refused.unwrap_err();
        assert_eq!((error.class, error.commit_unknown), (ErrorClass::Other, false));
        assert!(error.message.contains("identity"), "{error}");
    }
    database.execute("UPDATE tpcc.underlay_population SET format = 99");
    assert!(matches!(described(&database), Err(TpccError::OtherFormat { found: 99, .. })));
    database.execute("DROP TABLE tpcc.underlay_population");
    assert!(connect(2, 42).unwrap_err().message.contains("no population"));
}
