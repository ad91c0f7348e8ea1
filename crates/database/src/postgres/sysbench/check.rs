//! The checks of sysbench's tables, as PostgreSQL is asked.

use tokio_postgres::Client;
use underlay_workload::sysbench::{Parameters, SysbenchAccounting};

use crate::sysbench::{
    Check, CheckResult, SysbenchError, Tally, index_violation, judge, texts_violation,
};

/// Counts all tables.
pub async fn tally(client: &Client, parameters: &Parameters) -> Result<Tally, SysbenchError> {
    let mut tally = Tally::default();
    for table in 1..=parameters.tables {
        let sql = format!("SELECT count(*), coalesce(sum(k), 0)::bigint FROM sbtest{table}");
        let row = client.query_one(&sql, &[]).await?;
        tally.rows += row.try_get::<_, i64>(0)?.cast_unsigned();
        tally.k += row.try_get::<_, i64>(1)?;
    }
    Ok(tally)
}

/// Makes all checks. With `run`, also those against the tally before and the accounting of a run.
pub async fn check(
    client: &Client,
    parameters: &Parameters,
    run: Option<(&Tally, &SysbenchAccounting)>,
) -> Result<Vec<CheckResult>, SysbenchError> {
    let mut results = vec![texts(client, parameters).await?, index(client, parameters).await?];
    if let Some((before, accounting)) = run {
        let after = tally(client, parameters).await?;
        results.extend(judge(before, &after, accounting));
    }
    Ok(results)
}

async fn texts(client: &Client, parameters: &Parameters) -> Result<CheckResult, SysbenchError> {
    let mut violation = None;
    for table in 1..=parameters.tables {
        let sql = format!(
            "SELECT count(*), min(id) FROM sbtest{table} \
             WHERE c !~ '^[0-9]{{11}}(-[0-9]{{11}}){{9}} *$' OR pad !~ '^[0-9]{{11}}(-[0-9]{{11}}){{4}} *$'"
        );
        let row = client.query_one(&sql, &[]).await?;
        let wrong: i64 = row.try_get(0)?;
        let id: Option<i32> = row.try_get(1)?;
        let id = id.map_or(0, i64::from);
        violation = violation.or_else(|| texts_violation(table, wrong.cast_unsigned(), id));
    }
    Ok(CheckResult { check: Check::Texts, violation })
}

async fn index(client: &Client, parameters: &Parameters) -> Result<CheckResult, SysbenchError> {
    let mut violation = None;
    for table in 1..=parameters.tables {
        // The planner is told which way to go; every k is an integer, so the range has them all.
        let count = async |settings: &str| -> Result<i64, SysbenchError> {
            client.batch_execute(&format!("BEGIN; {settings}")).await?;
            let sql = format!("SELECT count(k) FROM sbtest{table} WHERE k >= -2147483648");
            let counted = client.query_one(&sql, &[]).await;
            client.batch_execute("ROLLBACK").await?;
            Ok(counted?.try_get(0)?)
        };
        let by_index = count("SET LOCAL enable_seqscan = off").await?;
        let by_table = count(
            "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; \
                   SET LOCAL enable_bitmapscan = off",
        )
        .await?;
        violation = violation
            .or_else(|| index_violation(table, by_index.cast_unsigned(), by_table.cast_unsigned()));
    }
    Ok(CheckResult { check: Check::Index, violation })
}
