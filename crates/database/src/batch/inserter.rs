//! One connection that inserts: a prepared statement per row, a loop inside the server, or the engine's bulk path.

use bytes::BytesMut;
use underlay_workload::batch::Row;

use super::columns::{BYTES_COLUMN, COLUMNS, columns};
use super::sql::dialect;
use crate::connection::{
    BulkFormat, BulkLoad, Connection, Kind, RequestError, RowEncoder, Sql, Value,
};
use crate::error::{CommitState, SessionError};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Size of a message of a stream.
const CHUNK_BYTES: usize = 64 << 10;
/// More than a row takes.
const ROW_BYTES_MAX: usize = 1024;
/// Of the parameters that insert a row.
const KINDS: [Kind; COLUMNS] = {
    let mut kinds = [Kind::Char; COLUMNS];
    kinds[0] = Kind::Int;
    kinds[COLUMNS - 1] = Kind::Binary;
    kinds
};

/// A connection and what is prepared on it. Errors say whether a commit that was sent may have happened.
pub(super) struct Inserter<C: Connection> {
    connection: C,
    insert: C::Statement,
    /// Whether a transaction is open: then an `INSERT` commits nothing.
    is_open: bool,
}

impl<C: Connection + SchemaOwner> Inserter<C> {
    pub async fn connect(target: &Target) -> Result<Inserter<C>, SessionError> {
        let mut connection =
            C::connect(&C::with_database(target, WorkloadTables::Batch), 1).await?;
        let dialect = dialect(C::ENGINE);
        connection.run(dialect.settings).await?;
        let values: Vec<String> = (1..=COLUMNS).map(dialect.placeholder).collect();
        let table = C::table(WorkloadTables::Batch, "test");
        let sql = format!("INSERT INTO {table} ({}) VALUES ({})", columns(), values.join(", "));
        let insert = connection.prepare(Sql::typed(&sql, &KINDS)).await?;
        Ok(Inserter { connection, insert, is_open: false })
    }

    pub async fn begin(&mut self) -> Result<(), SessionError> {
        self.is_open = true;
        self.text(b"START TRANSACTION", CommitState::NotSent).await
    }

    /// Inserts one row: in a transaction of its own, unless one is open.
    pub async fn insert(&mut self, row: &Row) -> Result<(), SessionError> {
        let mut values = [Value::Null; COLUMNS];
        values[0] = Value::Int(row.rec_num.cast_signed());
        for (value, text) in values[1..].iter_mut().zip(&row.texts) {
            *value = Value::Text(text.as_bytes());
        }
        values[COLUMNS - 1] = Value::Text(&row.checkord);
        let commit = if self.is_open { CommitState::NotSent } else { CommitState::InFlight };
        let done = self.connection.execute(&self.insert, &values).await;
        done.map(drop).map_err(|error| error.into_session_error(commit))
    }

    /// Has the server insert rows one after the other: each in a transaction of its own, unless one is open.
    pub async fn insert_in_loop(&mut self, rows: &[Row]) -> Result<(), SessionError> {
        let commit = if self.is_open { CommitState::NotSent } else { CommitState::InFlight };
        let block = (dialect(C::ENGINE).loop_over)(rows, !self.is_open);
        self.text(block.as_bytes(), commit).await
    }

    pub async fn commit(&mut self) -> Result<(), SessionError> {
        self.text(b"COMMIT", CommitState::InFlight).await
    }

    pub async fn rollback(&mut self) -> Result<(), SessionError> {
        self.text(b"ROLLBACK", CommitState::NotSent).await
    }

    async fn text(&mut self, sql: &[u8], commit: CommitState) -> Result<(), SessionError> {
        let done = self.connection.query(sql).await;
        done.map(drop).map_err(|error: RequestError| error.into_session_error(commit))
    }

    /// Streams rows into the table. `rows` gives the next one; `sent` is called with how many the server took since its last
    /// call.
    pub async fn stream(
        &mut self,
        rows: &mut dyn FnMut() -> Option<Row>,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), SessionError> {
        let load = BulkLoad {
            table: &C::table(WorkloadTables::Batch, "test"),
            columns: &columns(),
            binary_column: Some(BYTES_COLUMN),
            format: BulkFormat::Encoded,
            is_fresh: false,
        };
        let mut encoder = C::Encoder::default();
        let mut in_flight = 0;
        let mut next = |out: &mut BytesMut| {
            sent(std::mem::take(&mut in_flight));
            out.reserve(CHUNK_BYTES + ROW_BYTES_MAX);
            let before = out.len();
            while out.len() - before < CHUNK_BYTES {
                let Some(row) = rows() else { return false };
                encoder.begin(out, COLUMNS);
                encoder.int(out, row.rec_num);
                row.texts.iter().for_each(|text| encoder.text(out, text.as_bytes()));
                encoder.binary(out, &row.checkord);
                encoder.end(out);
                in_flight += 1;
            }
            true
        };
        self.connection.bulk_load(load, &mut next).await?;
        sent(in_flight);
        Ok(())
    }
}
