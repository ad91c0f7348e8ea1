//! PostgreSQL's implementation of [`Connection`]: prepared statements in binary form, bulk loads by COPY.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use postgres_protocol::{IsNull, Oid};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::direct::{Direct, Failure, Prepared};
use super::numeric::{put_cents, put_rate};
use crate::Engine;
use crate::connection::{
    BulkFormat, BulkLoad, Cause, Cells, Completed, Connection, Kind, RequestError, Row, RowEncoder,
    Sql, Value,
};
use crate::error::CommitState;
use crate::target::Target;
use crate::transaction_counter::HAND_IN;

/// Before and after the rows of a binary COPY (manual, chapter "COPY", section "Binary Format").
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: &[u8] = &[0xff, 0xff];
/// Microseconds of the server's epoch, 2000-01-01, count from this second of Unix time.
const EPOCH_SECONDS: i64 = 946_684_800;

/// A connection with a PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresConnection(Direct);

/// A prepared statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    prepared: Prepared,
    kinds: &'static [Kind],
    is_composite: bool,
}

/// The columns of a row: each with its length before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinaryRow<'a> {
    columns: &'a [u8],
    /// Bytes before the length of each column.
    skipped: usize,
}

/// Rows of a binary COPY.
#[derive(Debug, Default)]
pub(crate) struct BinaryRows;

impl Connection for PostgresConnection {
    const ENGINE: Engine = Engine::Postgresql;
    // A whole table can be frozen as it is copied.
    const DIVIDE_FROM: usize = 5;
    const CALLS_COMMIT_THEMSELVES: bool = true;
    const SERVER_TASK: &'static str = "SELECT pg_backend_pid()";
    const HAS_RETURNING: bool = true;
    type Statement = Statement;
    type Row<'a> = BinaryRow<'a>;
    type Encoder = BinaryRows;

    async fn connect(target: &Target, _: usize) -> Result<PostgresConnection, RequestError> {
        match Direct::connect(target).await {
            Ok(direct) => Ok(PostgresConnection(direct)),
            Err(error) => Err(RequestError::new(error, Cause::Other, true)),
        }
    }

    async fn prepare(&mut self, sql: Sql<'_>) -> Result<Statement, RequestError> {
        let types = sql.kinds.iter().map(|kind| type_of(*kind));
        let prepared = self.0.prepare(sql.text, types).await?;
        Ok(Statement { prepared, kinds: sql.kinds, is_composite: sql.is_composite })
    }

    async fn rows(
        &mut self,
        statement: &Statement,
        values: &[Value<'_>],
        look: &mut dyn FnMut(BinaryRow<'_>),
    ) -> Result<Completed, RequestError> {
        let Statement { prepared, kinds, is_composite } = *statement;
        assert_eq!(values.len(), kinds.len(), "a statement has a value for each parameter");
        let mut encode =
            |index: usize, out: &mut BytesMut| encode(&values[index], kinds[index], out);
        let mut look = |columns: &[u8]| look(BinaryRow::of(columns, is_composite));
        Ok(self.0.execute(prepared, values.len(), &mut encode, &mut look).await?)
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Completed, RequestError> {
        Ok(self.0.query(text(sql)?, &mut |_| {}).await?)
    }

    async fn read(&mut self, sql: &str, each: &mut dyn FnMut(Cells)) -> Result<(), RequestError> {
        let mut look = |columns: &[u8]| each(BinaryRow::of(columns, false).cells());
        self.0.query(sql, &mut look).await?;
        Ok(())
    }

    async fn bulk_load(
        &mut self,
        load: BulkLoad<'_>,
        next: &mut dyn FnMut(&mut BytesMut) -> bool,
    ) -> Result<Completed, RequestError> {
        let is_binary = load.format == BulkFormat::Encoded;
        let columns = match load.columns {
            "" => String::new(),
            columns => format!(" ({columns})"),
        };
        let options: Vec<&str> = [(is_binary, "FORMAT binary"), (load.is_fresh, "FREEZE")]
            .into_iter()
            .filter_map(|(is_set, option)| is_set.then_some(option))
            .collect();
        let options = match options.is_empty() {
            true => String::new(),
            false => format!(" ({})", options.join(", ")),
        };
        let sql = format!("COPY {}{columns} FROM STDIN{options}", load.table);
        let mut is_first = true;
        let mut framed = |out: &mut BytesMut| {
            if std::mem::take(&mut is_first) && is_binary {
                out.put_slice(HEADER);
            }
            let has_more = next(out);
            if !has_more && is_binary {
                out.put_slice(TRAILER);
            }
            has_more
        };
        Ok(self.0.copy_in(&sql, &mut framed).await?)
    }

    async fn begin_fresh(&mut self, table: &str) -> Result<(), RequestError> {
        self.query(format!("BEGIN; TRUNCATE {table}").as_bytes()).await.map(drop)
    }

    async fn end_fresh(&mut self) -> Result<(), RequestError> {
        self.query(b"COMMIT").await.map(drop)
    }

    async fn end_preparation(&mut self) -> Result<(), RequestError> {
        match self.query(HAND_IN.as_bytes()).await {
            // A server that has no such function counts later what was done until now.
            Err(error) if error.sqlstate().is_some() => Ok(()),
            done => done.map(drop),
        }
    }
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> RequestError {
        let (is_fatal, is_not_sent) = match &failure {
            Failure::Server(_) => (false, false),
            Failure::Parameter(_) => (false, true),
            Failure::Broken(_) => (true, false),
            Failure::NotSent(_) => (true, true),
        };
        let cause = match failure.code() {
            Some(code) if is(code, &SqlState::UNDEFINED_TABLE) => Cause::Absent,
            Some(code) if is(code, &SqlState::INVALID_SCHEMA_NAME) => Cause::Absent,
            Some(code) if is(code, &SqlState::UNIQUE_VIOLATION) => Cause::DuplicateKey,
            _ => Cause::Other,
        };
        let commit = if is_not_sent { CommitState::NotSent } else { CommitState::InFlight };
        RequestError::new(failure.into_session_error(commit), cause, is_fatal)
    }
}

fn is(code: &str, state: &SqlState) -> bool {
    code == state.code()
}

fn text(sql: &[u8]) -> Result<&str, RequestError> {
    std::str::from_utf8(sql).map_err(|_| RequestError::unexpected("a statement is not UTF-8"))
}

fn type_of(kind: Kind) -> Oid {
    let kind = match kind {
        Kind::Int => Type::INT4,
        Kind::Small => Type::INT2,
        Kind::Big => Type::INT8,
        Kind::Decimal => Type::NUMERIC,
        Kind::Text => Type::TEXT,
        Kind::Varchar => Type::VARCHAR,
        Kind::Char => Type::BPCHAR,
        Kind::Binary => Type::BYTEA,
        Kind::Smalls => Type::INT2_ARRAY,
        Kind::Ints => Type::INT4_ARRAY,
        Kind::Bigs => Type::INT8_ARRAY,
        Kind::Texts => Type::TEXT_ARRAY,
    };
    kind.oid()
}

/// Appends a value in the binary form of a parameter's type.
fn encode(
    value: &Value<'_>,
    kind: Kind,
    out: &mut BytesMut,
) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    match (kind, value) {
        (_, Value::Null) => return Ok(IsNull::Yes),
        (Kind::Int, Value::Int(value)) => out.put_i32(*value),
        (Kind::Small, Value::Int(value)) => out.put_i16(i16::try_from(*value)?),
        (Kind::Big, Value::Int(value)) => out.put_i64(i64::from(*value)),
        (Kind::Big, Value::Cents(value)) => out.put_i64(*value),
        (Kind::Decimal, Value::Cents(value)) => put_cents(out, *value),
        (Kind::Text | Kind::Varchar | Kind::Char | Kind::Binary, Value::Text(text)) => {
            out.put_slice(text);
        }
        (Kind::Smalls, Value::Ints(values)) => {
            begin_array(out, &Type::INT2, values.len());
            for value in *values {
                out.put_i32(2);
                out.put_i16(i16::try_from(*value)?);
            }
        }
        (Kind::Ints, Value::Ints(values)) => {
            begin_array(out, &Type::INT4, values.len());
            for value in *values {
                out.put_i32(4);
                out.put_i32(*value);
            }
        }
        (Kind::Bigs, Value::Bigs(values)) => {
            begin_array(out, &Type::INT8, values.len());
            for value in *values {
                out.put_i32(8);
                out.put_i64(*value);
            }
        }
        (Kind::Texts, Value::Texts(texts)) => {
            begin_array(out, &Type::TEXT, texts.len());
            for text in *texts {
                out.put_i32(i32::try_from(text.len())?);
                out.put_slice(text);
            }
        }
        (kind, value) => return Err(format!("{value:?} is not of the type {kind:?}").into()),
    }
    Ok(IsNull::No)
}

/// One dimension without NULLs, counted from 1.
fn begin_array(out: &mut BytesMut, element: &Type, length: usize) {
    out.put_i32(1);
    out.put_i32(0);
    out.put_u32(element.oid());
    out.put_i32(length as i32);
    out.put_i32(1);
}

impl<'a> BinaryRow<'a> {
    /// The columns of a row, or the fields of its only column.
    fn of(row: &'a [u8], is_composite: bool) -> BinaryRow<'a> {
        // Number of columns (2 bytes); of a composite value also its length (4) and the number of its fields (4), of which each
        // has its type before it.
        match is_composite {
            true => BinaryRow { columns: row.get(10..).unwrap_or_default(), skipped: 4 },
            false => BinaryRow { columns: row.get(2..).unwrap_or_default(), skipped: 0 },
        }
    }

    /// The value of a column; `None` is NULL.
    fn value(&self, column: usize) -> Result<Option<&'a [u8]>, RequestError> {
        let missing = || RequestError::unexpected("a row has fewer columns than its statement");
        let mut rest = self.columns;
        for index in 0..=column {
            let (length, behind) = rest
                .get(self.skipped..)
                .and_then(|rest| rest.split_first_chunk::<4>())
                .ok_or_else(missing)?;
            let length = i32::from_be_bytes(*length);
            let (value, behind) = match usize::try_from(length) {
                Ok(length) => {
                    let (value, behind) = behind.split_at_checked(length).ok_or_else(missing)?;
                    (Some(value), behind)
                }
                // -1
                Err(_) => (None, behind),
            };
            if index == column {
                return Ok(value);
            }
            rest = behind;
        }
        Err(missing())
    }

    fn cells(&self) -> Cells {
        let mut cells = Cells::new();
        while let Ok(value) = self.value(cells.len()) {
            cells.push(value.map(|text| String::from_utf8_lossy(text).into_owned()));
        }
        cells
    }
}

impl Row for BinaryRow<'_> {
    fn integer(&self, column: usize) -> Result<Option<i64>, RequestError> {
        let Some(value) = self.value(column)? else { return Ok(None) };
        Ok(Some(match *value {
            [a, b] => i64::from(i16::from_be_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(RequestError::unexpected("a column is not a whole number")),
        }))
    }

    fn text(&self, column: usize) -> Result<Option<&[u8]>, RequestError> {
        self.value(column)
    }
}

impl RowEncoder for BinaryRows {
    fn begin(&mut self, out: &mut BytesMut, columns: usize) {
        out.put_i16(columns as i16);
    }

    fn int(&mut self, out: &mut BytesMut, value: u32) {
        out.put_i32(4);
        out.put_u32(value);
    }

    fn small(&mut self, out: &mut BytesMut, value: u32) {
        out.put_i32(2);
        out.put_u16(value as u16);
    }

    fn text(&mut self, out: &mut BytesMut, text: &[u8]) {
        out.put_i32(text.len() as i32);
        out.put_slice(text);
    }

    fn binary(&mut self, out: &mut BytesMut, bytes: &[u8]) {
        self.text(out, bytes);
    }

    fn null(&mut self, out: &mut BytesMut) {
        out.put_i32(-1);
    }

    fn cents(&mut self, out: &mut BytesMut, cents: i64) {
        put_sized(out, |out| put_cents(out, cents));
    }

    fn rate(&mut self, out: &mut BytesMut, ten_thousandths: u32) {
        put_sized(out, |out| put_rate(out, ten_thousandths));
    }

    fn timestamp(&mut self, out: &mut BytesMut, unix_seconds: i64) {
        out.put_i32(8);
        out.put_i64((unix_seconds - EPOCH_SECONDS) * 1_000_000);
    }

    fn end(&mut self, _: &mut BytesMut) {}
}

/// A value whose length is known only when it is written.
fn put_sized(out: &mut BytesMut, put: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_i32(0);
    put(out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};
    use postgres_protocol::IsNull;

    use super::{BinaryRow, encode};
    use crate::connection::{Kind, Row, Value};

    fn row(columns: &[Option<&[u8]>], between: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for column in columns {
            bytes.put_slice(between);
            bytes.put_i32(column.map_or(-1, |value| value.len() as i32));
            bytes.put_slice(column.unwrap_or_default());
        }
        bytes
    }

    #[test]
    fn columns_are_read_in_place() {
        let columns: [Option<&[u8]>; 4] =
            [Some(b"\0\0\0\x07"), None, Some(b"\xff\xfe"), Some(b"abc")];
        let plain = [&[0, 4][..], &row(&columns, b"")].concat();
        let fields = row(&columns, b"\0\0\0\x17");
        let composite = [&[0, 1, 0, 0, 0, 99, 0, 0, 0, 4][..], &fields].concat();
        for (bytes, is_composite) in [(plain, false), (composite, true)] {
            let row = BinaryRow::of(&bytes, is_composite);
            assert_eq!(row.integer(0).unwrap(), Some(7));
            assert_eq!((row.integer(1).unwrap(), row.text(1).unwrap()), (None, None));
            assert_eq!(row.integer(2).unwrap(), Some(-2));
            assert_eq!(row.text(3).unwrap(), Some(&b"abc"[..]));
            assert!(row.integer(3).is_err() && row.integer(4).is_err());
            for cut in 0..bytes.len() {
                assert!(BinaryRow::of(&bytes[..cut], is_composite).text(3).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn values_are_written_as_their_parameters_types() {
        let written = |kind, value| {
            let mut out = BytesMut::new();
            let is_null = encode(&value, kind, &mut out).ok()?;
            Some((matches!(is_null, IsNull::Yes), out.to_vec()))
        };
        assert_eq!(written(Kind::Int, Value::Null), Some((true, Vec::new())));
        assert_eq!(written(Kind::Small, Value::Int(3)), Some((false, vec![0, 3])));
        assert_eq!(written(Kind::Big, Value::Int(-1)), Some((false, vec![0xff; 8])));
        assert_eq!(written(Kind::Small, Value::Int(70_000)), None);
        assert_eq!(written(Kind::Int, Value::Text(b"1")), None);
        let expected =
            [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9];
        assert_eq!(written(Kind::Smalls, Value::Ints(&[9])), Some((false, expected.to_vec())));
    }
}
