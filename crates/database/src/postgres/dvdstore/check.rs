//! The checks on PostgreSQL: see [`crate::dvdstore::check`] for what they are.

use futures_util::StreamExt;
use std::pin::pin;
use tokio_postgres::{Client, SimpleQueryMessage};
use underlay_workload::dvdstore::{DvdStoreAccounting, Parameters};

use crate::dvdstore::{CheckResult, DvdStoreError, Reader, Tally, inspect, integer_of, tally_of};

/// One state of the database for all statements, whole scans instead of a visit per row, and no limit that a
/// role may have for its work.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = dvdstore; \
    SET LOCAL statement_timeout = 0; SET LOCAL work_mem = '64MB'";

/// Reads through a connection whose search path leads to the shop.
struct Connection<'a>(&'a Client);

impl Reader for Connection<'_> {
    async fn read(&mut self, sql: &str, each: &mut dyn FnMut(&[i64])) -> Result<(), DvdStoreError> {
        let mut answer = pin!(self.0.simple_query_raw(sql).await?);
        let mut numbers = Vec::new();
        while let Some(message) = answer.next().await {
            let SimpleQueryMessage::Row(row) = message? else { continue };
            numbers.clear();
            for index in 0..row.len() {
                numbers.push(row.try_get(index)?.map_or(Ok(0), integer_of)?);
            }
            each(&numbers);
        }
        Ok(())
    }
}

/// Counts what a run changes.
pub async fn tally(client: &Client) -> Result<Tally, DvdStoreError> {
    on_one_state(client, async || tally_of(&mut Connection(client)).await).await
}

/// Makes all checks; see [`crate::dvdstore::check`].
pub async fn check(
    client: &Client,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    on_one_state(client, async || check_here(client, parameters, run).await).await
}

/// Makes all checks within the connection's open transaction, on its search path.
pub async fn check_here(
    client: &Client,
    parameters: &Parameters,
    run: Option<(&Tally, &DvdStoreAccounting)>,
) -> Result<Vec<CheckResult>, DvdStoreError> {
    inspect(&mut Connection(client), parameters, run).await
}

async fn on_one_state<T>(
    client: &Client,
    work: impl AsyncFnOnce() -> Result<T, DvdStoreError>,
) -> Result<T, DvdStoreError> {
    client.batch_execute(BEGIN).await?;
    let done = work().await;
    client.batch_execute("ROLLBACK").await?;
    done
}
