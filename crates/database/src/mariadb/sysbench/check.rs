//! The checks of sysbench's tables, as MariaDB is asked.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use underlay_workload::sysbench::{Parameters, SysbenchAccounting};

use super::with_database;
use crate::mariadb::connection::connect;
use crate::sysbench::{
    Check, CheckResult, SysbenchError, Tally, index_violation, judge, texts_violation,
};
use crate::target::Target;

/// There is no such index.
const NO_SUCH_KEY: u16 = 1176;

/// Counts all tables.
pub async fn tally(target: &Target, parameters: &Parameters) -> Result<Tally, SysbenchError> {
    tally_on(&mut connect(&with_database(target)).await?, parameters).await
}

async fn tally_on(conn: &mut Conn, parameters: &Parameters) -> Result<Tally, SysbenchError> {
    let mut tally = Tally::default();
    for table in 1..=parameters.tables {
        let sql =
            format!("SELECT count(*), cast(coalesce(sum(k), 0) AS signed) FROM sbtest{table}");
        let (rows, k): (u64, i64) = conn.query_first(sql).await?.unwrap_or_default();
        tally.rows += rows;
        tally.k += k;
    }
    Ok(tally)
}

/// Makes all checks. With `run`, also those against the tally before and the accounting of a run.
pub async fn check(
    target: &Target,
    parameters: &Parameters,
    run: Option<(&Tally, &SysbenchAccounting)>,
) -> Result<Vec<CheckResult>, SysbenchError> {
    let mut conn = connect(&with_database(target)).await?;
    let mut results =
        vec![texts(&mut conn, parameters).await?, index(&mut conn, parameters).await?];
    if let Some((before, accounting)) = run {
        let after = tally_on(&mut conn, parameters).await?;
        results.extend(judge(before, &after, accounting));
    }
    Ok(results)
}

async fn texts(conn: &mut Conn, parameters: &Parameters) -> Result<CheckResult, SysbenchError> {
    let mut violation = None;
    for table in 1..=parameters.tables {
        let sql = format!(
            "SELECT count(*), coalesce(min(id), 0) FROM sbtest{table} \
             WHERE c NOT REGEXP '^[0-9]{{11}}(-[0-9]{{11}}){{9}} *$' \
                OR pad NOT REGEXP '^[0-9]{{11}}(-[0-9]{{11}}){{4}} *$'"
        );
        let (wrong, id): (u64, i64) = conn.query_first(sql).await?.unwrap_or_default();
        violation = violation.or_else(|| texts_violation(table, wrong, id));
    }
    Ok(CheckResult { check: Check::Texts, violation })
}

async fn index(conn: &mut Conn, parameters: &Parameters) -> Result<CheckResult, SysbenchError> {
    let mut violation = None;
    for table in 1..=parameters.tables {
        // The server is told which way to go; every k is an integer, so the range has them all.
        let counted = |index: &str| {
            format!(
                "SELECT count(k) FROM sbtest{table} FORCE INDEX ({index}) WHERE k >= -2147483648"
            )
        };
        let by_index: u64 = match conn.query_first(counted(&format!("k_{table}"))).await {
            // Sysbench can leave it out; there is nothing to compare then.
            Err(Error::Server(error)) if error.code == NO_SUCH_KEY => continue,
            count => count?.unwrap_or_default(),
        };
        let by_table: u64 = conn.query_first(counted("PRIMARY")).await?.unwrap_or_default();
        violation = violation.or_else(|| index_violation(table, by_index, by_table));
    }
    Ok(CheckResult { check: Check::Index, violation })
}
