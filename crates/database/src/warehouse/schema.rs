//! The tables, their marker and their removal.

use underlay_core::RootSeed;
use underlay_workload::warehouse::{Population, Refreshed, Scale};

use super::WarehouseError;
use super::connection::Connection;
use super::mariadb::database_of;
use super::marker::{Described, MARKER_FORMAT};
use super::rows::Table;
use crate::mariadb::connection::quoted;
use crate::parallel::on_runtime;
use crate::schema_ownership::{SchemaClaim, State, WorkloadTables};
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Tables without keys, with the types that the specification asks for. `@` stands for what says that text is compared
/// byte by byte.
const TABLES: [&str; 8] = [
    "CREATE TABLE region (r_regionkey integer NOT NULL, r_name char(25) @ NOT NULL, r_comment varchar(152) @ NOT NULL",
    "CREATE TABLE nation (n_nationkey integer NOT NULL, n_name char(25) @ NOT NULL, n_regionkey integer NOT NULL, \
     n_comment varchar(152) @ NOT NULL",
    "CREATE TABLE supplier (s_suppkey integer NOT NULL, s_name char(25) @ NOT NULL, s_address varchar(40) @ NOT NULL, \
     s_nationkey integer NOT NULL, s_phone char(15) @ NOT NULL, s_acctbal decimal(15,2) NOT NULL, \
     s_comment varchar(101) @ NOT NULL",
    "CREATE TABLE part (p_partkey integer NOT NULL, p_name varchar(55) @ NOT NULL, p_mfgr char(25) @ NOT NULL, \
     p_brand char(10) @ NOT NULL, p_type varchar(25) @ NOT NULL, p_size integer NOT NULL, p_container char(10) @ NOT NULL, \
     p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) @ NOT NULL",
    "CREATE TABLE partsupp (ps_partkey integer NOT NULL, ps_suppkey integer NOT NULL, ps_availqty integer NOT NULL, \
     ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) @ NOT NULL",
    "CREATE TABLE customer (c_custkey integer NOT NULL, c_name varchar(25) @ NOT NULL, c_address varchar(40) @ NOT NULL, \
     c_nationkey integer NOT NULL, c_phone char(15) @ NOT NULL, c_acctbal decimal(15,2) NOT NULL, \
     c_mktsegment char(10) @ NOT NULL, c_comment varchar(117) @ NOT NULL",
    "CREATE TABLE orders (o_orderkey bigint NOT NULL, o_custkey integer NOT NULL, o_orderstatus char(1) @ NOT NULL, \
     o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) @ NOT NULL, \
     o_clerk char(15) @ NOT NULL, o_shippriority integer NOT NULL, o_comment varchar(79) @ NOT NULL",
    "CREATE TABLE lineitem (l_orderkey bigint NOT NULL, l_partkey integer NOT NULL, l_suppkey integer NOT NULL, \
     l_linenumber integer NOT NULL, l_quantity decimal(15,2) NOT NULL, l_extendedprice decimal(15,2) NOT NULL, \
     l_discount decimal(15,2) NOT NULL, l_tax decimal(15,2) NOT NULL, l_returnflag char(1) @ NOT NULL, \
     l_linestatus char(1) @ NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
     l_shipinstruct char(25) @ NOT NULL, l_shipmode char(10) @ NOT NULL, l_comment varchar(44) @ NOT NULL",
];
const PRIMARY_KEYS: [&str; 8] = [
    "r_regionkey",
    "n_nationkey",
    "s_suppkey",
    "p_partkey",
    "ps_partkey, ps_suppkey",
    "c_custkey",
    "o_orderkey",
    "l_orderkey, l_linenumber",
];
/// On foreign keys and on the two days that questions are asked of: what the specification allows.
pub(super) const INDEXES: [&str; 8] = [
    "CREATE INDEX lineitem_partsupp ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate)",
    "CREATE INDEX orders_customer ON orders (o_custkey)",
    "CREATE INDEX orders_date ON orders (o_orderdate)",
    "CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey)",
    "CREATE INDEX customer_nation ON customer (c_nationkey)",
    "CREATE INDEX supplier_nation ON supplier (s_nationkey)",
    "CREATE INDEX nation_region ON nation (n_regionkey)",
];
const MARKER: &str = "CREATE TABLE underlay_warehouse (format integer NOT NULL, hundredths integer NOT NULL, \
    seed bigint NOT NULL, inserted integer NOT NULL, deleted integer NOT NULL, is_complete integer NOT NULL, \
    made_database integer NOT NULL)";

async fn state(target: &Target) -> Result<State, WarehouseError> {
    Ok(match target.engine {
        Engine::Postgresql => {
            postgres::ownership::state(&target.connect().await?, WorkloadTables::Warehouse).await?
        }
        Engine::Mariadb => {
            let mut conn = mariadb::connect(&target.with_database("")).await?;
            mariadb::ownership::state(&mut conn, &database_of(target), WorkloadTables::Warehouse)
                .await?
        }
    })
}

/// Creates marker and tables; on MariaDB with their primary keys, by which it stores rows.
pub(super) async fn create(target: &Target, population: &Population) -> Result<(), WarehouseError> {
    let mut connection = Connection::open(target, false).await?;
    let found = state(target).await?;
    match found {
        State::Absent | State::Free => {}
        State::Foreign => return Err(WarehouseError::Foreign),
        State::Ours => return Err(WarehouseError::AlreadyLoaded),
    }
    let doing = "creating the warehouse";
    let (collation, is_mariadb) = match target.engine {
        Engine::Postgresql => ("COLLATE \"C\"", false),
        Engine::Mariadb => ("", true),
    };
    if is_mariadb {
        let database = quoted(&database_of(target));
        if found == State::Absent {
            let sql = format!("CREATE DATABASE {database} CHARACTER SET latin1 COLLATE latin1_bin");
            connection.execute(doing, &sql).await?;
        }
        connection.execute(doing, &format!("USE {database}")).await?;
    } else if found == State::Absent {
        connection.execute(doing, "CREATE SCHEMA warehouse").await?;
    }
    // The marker comes first, so that all that follows can be dropped.
    let engine =
        if is_mariadb { " ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin" } else { "" };
    connection.execute(doing, &format!("{MARKER}{engine}")).await?;
    let marker = format!(
        "INSERT INTO underlay_warehouse VALUES ({MARKER_FORMAT}, {}, {}, 0, 0, 0, {})",
        population.scale.hundredths(),
        population.seed.0.cast_signed(),
        i32::from(is_mariadb && found == State::Absent)
    );
    connection.execute(doing, &marker).await?;
    for (table, key) in TABLES.iter().zip(PRIMARY_KEYS) {
        let key = if is_mariadb { format!(", PRIMARY KEY ({key})") } else { String::new() };
        let sql = format!("{}{key}){engine}", table.replace('@', collation));
        connection.execute(doing, &sql).await?;
    }
    Ok(())
}

/// What is made after the rows: keys where they are not there yet, indexes.
pub(super) fn keys(engine: Engine) -> Vec<String> {
    let primary = Table::ALL
        .into_iter()
        .zip(PRIMARY_KEYS)
        .map(|(table, key)| format!("ALTER TABLE {} ADD PRIMARY KEY ({key})", table.name()));
    let mut keys: Vec<String> = INDEXES.iter().map(|index| index.to_string()).collect();
    if engine == Engine::Postgresql {
        keys.extend(primary);
    }
    keys
}

/// Marks the load as complete.
pub(super) async fn mark_complete(target: &Target) -> Result<(), WarehouseError> {
    let mut connection = Connection::open(target, true).await?;
    connection.execute("marking the end", "UPDATE underlay_warehouse SET is_complete = 1").await
}

impl Described {
    fn new(
        hundredths: i64,
        seed: i64,
        inserted: i64,
        deleted: i64,
    ) -> Result<Described, WarehouseError> {
        let damaged = |what: &str| WarehouseError::Damaged(what.to_string());
        let scale = u32::try_from(hundredths)
            .ok()
            .and_then(|hundredths| Scale::from_hundredths(hundredths).ok())
            .ok_or_else(|| damaged("no scale factor"))?;
        let sets =
            |number: i64| u32::try_from(number).map_err(|_| damaged("no number of refreshes"));
        Ok(Described {
            population: Population { scale, seed: RootSeed(seed.cast_unsigned()) },
            refreshed: Refreshed { inserted: sets(inserted)?, deleted: sets(deleted)? },
        })
    }
}

/// What warehouse a database holds. Blocks.
pub fn describe(target: &Target) -> Result<Described, WarehouseError> {
    on_runtime(async {
        require_ours(target).await?;
        let mut connection = Connection::open(target, true).await?;
        let sql = "SELECT format, hundredths, seed, inserted, deleted, is_complete FROM underlay_warehouse";
        let rows = connection.rows("reading the marker", sql).await?;
        let row = rows.first().ok_or(WarehouseError::Incomplete)?;
        let number = |index: usize| {
            let text = row.get(index).and_then(|cell| cell.as_deref()).unwrap_or_default();
            text.parse::<i64>()
                .map_err(|_| WarehouseError::Damaged(format!("`{text}` is not a number")))
        };
        if number(0)? != i64::from(MARKER_FORMAT) {
            return Err(WarehouseError::OtherFormat { found: number(0)? as i32 });
        }
        if number(5)? != 1 {
            return Err(WarehouseError::Incomplete);
        }
        Described::new(number(1)?, number(2)?, number(3)?, number(4)?)
    })
}

async fn require_ours(target: &Target) -> Result<(), WarehouseError> {
    match state(target).await? {
        State::Absent | State::Free => Err(WarehouseError::NotLoaded),
        State::Foreign => Err(WarehouseError::Foreign),
        State::Ours => Ok(()),
    }
}

/// Removes the tables, if Underlay made them, and schema or database, if it made that and nothing else is there. Blocks.
pub fn drop_schema(target: &Target) -> Result<(), WarehouseError> {
    on_runtime(target.stop.unless(async {
        require_ours(target).await?;
        if target.engine == Engine::Postgresql {
            let client = target.connect().await?;
            let removed = postgres::ownership::remove(
                &client,
                WorkloadTables::Warehouse,
                SchemaClaim::Release,
            )
            .await;
            return Ok(removed?);
        }
        let mut connection = Connection::open(target, false).await?;
        let doing = "dropping the warehouse";
        let database = quoted(&database_of(target));
        let sql = format!("SELECT made_database FROM {database}.underlay_warehouse");
        let made = connection.rows(doing, &sql).await?;
        for table in Table::ALL {
            let sql = format!("DROP TABLE IF EXISTS {database}.{}", table.name());
            connection.execute(doing, &sql).await?;
        }
        // The marker last, so that a removal that was cut short can be repeated.
        connection.execute(doing, &format!("DROP TABLE {database}.underlay_warehouse")).await?;
        let was_made = made.iter().flatten().any(|cell| cell.as_deref() == Some("1"));
        let mut conn = mariadb::connect(&target.with_database("")).await?;
        let released = mariadb::ownership::release(
            &mut conn,
            &database_of(target),
            was_made,
            SchemaClaim::Release,
        )
        .await;
        Ok(released?)
    }))
}
