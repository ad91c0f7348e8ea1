//! One connection that inserts: a prepared statement per row, or `COPY` in binary form.

use bytes::{BufMut, Bytes, BytesMut};
use tokio_postgres::Statement;
use tokio_postgres::types::{ToSql, Type};
use underlay_workload::batch::{Row, TEXT_COLUMNS};

use super::columns;
use crate::batch::Inserter;
use crate::error::{CommitState, SessionError};
use crate::postgres::link::{Link, RequestError};
use crate::target::Target;

/// Size of a message of a stream.
const CHUNK_BYTES: usize = 64 << 10;
/// Before and after the rows; see the manual, chapter COPY, "Binary Format".
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: &[u8] = &[0xff, 0xff];
/// Number, texts, bytes.
const COLUMNS: usize = TEXT_COLUMNS.len() + 2;

/// A connection and what is prepared on it.
pub(crate) struct PostgresInserter {
    link: Link,
    insert: Statement,
    /// Whether a transaction is open: then an `INSERT` commits nothing.
    is_open: bool,
}

impl Inserter for PostgresInserter {
    async fn connect(target: &Target) -> Result<PostgresInserter, SessionError> {
        let not_sent = |error| SessionError::from_postgres(&error, CommitState::NotSent);
        let mut link = Link::connect(target).await.map_err(not_sent)?;
        let values = (1..=COLUMNS).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO batch.test ({}) VALUES ({values})", columns());
        let mut types = vec![Type::BPCHAR; COLUMNS];
        types[0] = Type::INT4;
        types[COLUMNS - 1] = Type::BYTEA;
        let insert = link
            .prepare(&sql, &types)
            .await
            .map_err(|error| failed(error, CommitState::NotSent))?;
        Ok(PostgresInserter { link, insert, is_open: false })
    }

    async fn begin(&mut self) -> Result<(), SessionError> {
        let begun = self.link.batch("BEGIN").await;
        self.is_open = true;
        begun.map_err(|error| failed(error, CommitState::NotSent))
    }

    async fn insert(&mut self, row: &Row) -> Result<(), SessionError> {
        let rec_num = row.rec_num.cast_signed();
        let texts = row.texts.each_ref().map(|text| text.as_str());
        let checkord = &row.checkord[..];
        let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(COLUMNS);
        values.push(&rec_num);
        values.extend(texts.iter().map(|text| text as &(dyn ToSql + Sync)));
        values.push(&checkord);
        let commit = if self.is_open { CommitState::NotSent } else { CommitState::InFlight };
        let done = self.link.execute(&self.insert, &values).await;
        done.map(drop).map_err(|error| failed(error, commit))
    }

    async fn commit(&mut self) -> Result<(), SessionError> {
        let done = self.link.batch("COMMIT").await;
        done.map_err(|error| failed(error, CommitState::InFlight))
    }

    async fn rollback(&mut self) -> Result<(), SessionError> {
        let done = self.link.batch("ROLLBACK").await;
        done.map_err(|error| failed(error, CommitState::NotSent))
    }

    async fn stream(
        &mut self,
        rows: &mut (dyn FnMut() -> Option<Row> + Send),
        sent: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), SessionError> {
        let copy = format!("COPY batch.test ({}) FROM STDIN (FORMAT binary)", columns());
        let mut chunks = Chunks { buffer: BytesMut::from(HEADER), has_ended: false };
        let mut in_flight = 0;
        let next = || {
            sent(in_flight);
            let (chunk, n) = chunks.next(rows)?;
            in_flight = n;
            Some(chunk)
        };
        let done = self.link.copy_in(&copy, next).await;
        done.map(drop).map_err(|error| failed(error, CommitState::NotSent))
    }
}

fn failed(error: RequestError, commit: CommitState) -> SessionError {
    match error {
        RequestError::Postgres(error) => SessionError::from_postgres(&error, commit),
        RequestError::NotSent(error) => SessionError::from_postgres(&error, CommitState::NotSent),
        RequestError::NoRow => SessionError {
            class: crate::error::ErrorClass::Other,
            sqlstate: None,
            message: "the server answered without a row".to_string(),
            commit_unknown: commit == CommitState::InFlight,
        },
    }
}

/// Cuts rows into messages.
struct Chunks {
    buffer: BytesMut,
    has_ended: bool,
}

impl Chunks {
    /// The next message, and how many rows it holds.
    fn next(&mut self, rows: &mut (dyn FnMut() -> Option<Row> + Send)) -> Option<(Bytes, u64)> {
        if self.has_ended {
            return None;
        }
        let mut n = 0;
        self.buffer.reserve(CHUNK_BYTES + 1024);
        while self.buffer.len() < CHUNK_BYTES {
            let Some(row) = rows() else {
                self.has_ended = true;
                self.buffer.put_slice(TRAILER);
                break;
            };
            put_row(&mut self.buffer, &row);
            n += 1;
        }
        Some((self.buffer.split().freeze(), n))
    }
}

fn put_row(out: &mut BytesMut, row: &Row) {
    out.put_i16(COLUMNS as i16);
    out.put_i32(4);
    out.put_u32(row.rec_num);
    for value in row.texts.iter().map(|text| text.as_bytes()).chain([&row.checkord[..]]) {
        out.put_i32(value.len() as i32);
        out.put_slice(value);
    }
}
