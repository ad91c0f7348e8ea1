//! The warehouse's connection with PostgreSQL: its tables are in the schema `warehouse`.

use std::pin::pin;

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::error::SessionError;
use crate::parallel::LoadError;
use crate::postgres::parallel::refused;
use crate::postgres::settling;
use crate::target::Target;
use crate::warehouse::answer::Rows;
use crate::warehouse::{TABLE_NAMES, WarehouseError};

/// A connection.
pub(crate) struct PostgresConnection {
    client: Client,
}

fn tables() -> Vec<String> {
    TABLE_NAMES.iter().rev().map(|table| format!("warehouse.{table}")).collect()
}

/// Keeps autovacuum away from the tables until [`settle`].
pub(crate) async fn leave_alone(target: &Target) -> Result<(), WarehouseError> {
    let client = target.connect().await?;
    Ok(settling::leave_alone(&client, &tables()).await?)
}

/// Freezes the loaded rows and gathers statistics, the first table first.
pub(crate) fn settle<E: LoadError>(target: &Target, parallel: usize) -> Result<(), E> {
    settling::settle(target, parallel, &tables(), "")
}

impl PostgresConnection {
    pub async fn open(target: &Target) -> Result<PostgresConnection, SessionError> {
        let client = target.connect().await?;
        // The path may name a schema that is not there yet.
        client
            .batch_execute("SET search_path = warehouse; SET statement_timeout = 0")
            .await
            .map_err(refused)?;
        Ok(PostgresConnection { client })
    }

    pub async fn rows(&mut self, sql: &str) -> Result<Rows, SessionError> {
        let messages = self.client.simple_query(sql).await.map_err(refused)?;
        let mut rows = Rows::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                let cell = |column| row.get(column).map(str::to_string);
                rows.push((0..row.len()).map(cell).collect());
            }
        }
        Ok(rows)
    }

    pub async fn stream(
        &mut self,
        table: &str,
        next: &mut (dyn FnMut() -> Option<Bytes> + Send),
    ) -> Result<(), SessionError> {
        let sql = format!("COPY {table} FROM STDIN");
        let mut sink = pin!(self.client.copy_in(&sql).await.map_err(refused)?);
        while let Some(chunk) = next() {
            sink.send(chunk).await.map_err(refused)?;
        }
        sink.finish().await.map(drop).map_err(refused)
    }
}
