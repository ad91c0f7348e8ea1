//! One connection with a database server, as workloads use it: statements, rows, streams of rows, errors.
//!
//! A workload is written once over [`Connection`]. Each engine implements the trait with its own client protocol and its
//! fastest way to load rows; which engine it is, is decided once, when a target is opened ([`crate::dispatch`]). It does not pool,
//! retry or reconnect, and knows no workload.

use std::fmt::Debug;

use bytes::BytesMut;

use crate::Engine;
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::target::Target;

/// Text columns of a row; `None` is NULL.
pub(crate) type Cells = Vec<Option<String>>;

/// A statement's text and how its parameters are formed from a workload's values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql<'a> {
    /// In the engine's dialect, with its placeholders.
    pub text: &'a str,
    /// Types of the parameters, for engines that must be told.
    pub kinds: &'static [Kind],
    /// How the parameters follow from the values; empty where each value is one parameter, in order.
    pub inputs: &'static [Input],
    /// The only column is a composite value, whose fields count as the columns.
    pub is_composite: bool,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// INTEGER.
    Int,
    /// SMALLINT.
    Small,
    /// BIGINT; an amount is sent in cents.
    Big,
    /// NUMERIC.
    Decimal,
    /// TEXT.
    Text,
    /// VARCHAR.
    Varchar,
    /// CHAR.
    Char,
    /// Binary data.
    Binary,
    /// Array of SMALLINT.
    Smalls,
    /// Array of INTEGER.
    Ints,
    /// Array of BIGINT.
    Bigs,
    /// Array of TEXT.
    Texts,
}

/// How parameters are formed from values, for engines without arrays or with unnumbered placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The value with this index.
    Value(usize),
    /// Each number of the array `value`; the last one is repeated until there are `room`.
    List {
        /// Index of the array.
        value: usize,
        /// Number of parameters.
        room: usize,
    },
    /// One text: for each position of the arrays the decimal digits of each, in so many places: (index of the array, places).
    Digits(&'static [(usize, usize)]),
}

/// A value that a workload passes to a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Int(i32),
    /// An amount in hundredths.
    Cents(i64),
    /// Text or bytes.
    Text(&'a [u8]),
    /// An array of whole numbers.
    Ints(&'a [i32]),
    /// An array of large whole numbers.
    Bigs(&'a [i64]),
    /// An array of texts.
    Texts(&'a [Vec<u8>]),
}

/// The result of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Rows that were found and changed, inserted or deleted.
    pub changed: u64,
    /// Rows that were returned.
    pub returned: u64,
    /// The number that the server gave to a row; 0 where it gave none, or returns it as a row.
    pub last_insert_id: u64,
    /// Warnings of a bulk load.
    pub warnings: u16,
}

/// A row of a prepared statement, read in place.
pub(crate) trait Row {
    /// The whole number in a column, counted from 0; `None` is NULL.
    ///
    /// # Errors
    /// When there is no such column, and when it is of another type.
    fn integer(&self, column: usize) -> Result<Option<i64>, RequestError>;

    /// Text or bytes of a column, as the server sent them; `None` is NULL.
    ///
    /// # Errors
    /// As [`Row::integer`].
    fn text(&self, column: usize) -> Result<Option<&[u8]>, RequestError>;

    /// The whole number in a column that is never NULL.
    fn number<T: TryFrom<i64>>(&self, column: usize) -> Result<T, RequestError> {
        let value = self.integer(column)?.ok_or_else(RequestError::no_row)?;
        value.try_into().map_err(|_| RequestError::unexpected("a number out of range"))
    }

    /// The text in a column that is never NULL.
    fn bytes(&self, column: usize) -> Result<Vec<u8>, RequestError> {
        Ok(self.text(column)?.ok_or_else(RequestError::no_row)?.to_vec())
    }
}

/// Writes the rows of a bulk load in the engine's fastest format.
pub(crate) trait RowEncoder: Default {
    /// Begins a row of so many columns.
    fn begin(&mut self, out: &mut BytesMut, columns: usize);
    /// INTEGER.
    fn int(&mut self, out: &mut BytesMut, value: u32);
    /// SMALLINT.
    fn small(&mut self, out: &mut BytesMut, value: u32);
    /// Text without tabs, newlines and backslashes.
    fn text(&mut self, out: &mut BytesMut, text: &[u8]);
    /// Bytes.
    fn binary(&mut self, out: &mut BytesMut, bytes: &[u8]);
    /// NULL.
    fn null(&mut self, out: &mut BytesMut);
    /// An amount in hundredths.
    fn cents(&mut self, out: &mut BytesMut, cents: i64);
    /// A rate below 1, in ten-thousandths.
    fn rate(&mut self, out: &mut BytesMut, ten_thousandths: u32);
    /// A moment in UTC, in seconds since 1970.
    fn timestamp(&mut self, out: &mut BytesMut, unix_seconds: i64);
    /// Ends the row.
    fn end(&mut self, out: &mut BytesMut);
}

/// What a bulk load fills, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkLoad<'a> {
    /// The table, as the engine's statements name it.
    pub table: &'a str,
    /// Its columns in the order of the rows, separated by commas; empty for all in the order of the table.
    pub columns: &'a str,
    /// Assignments after the columns, for engines that need them for binary columns.
    pub binary_column: Option<&'a str>,
    /// The rows' format.
    pub format: BulkFormat,
    /// The open transaction has emptied the table ([`Connection::begin_fresh`]).
    pub is_fresh: bool,
}

/// The format of the rows of a bulk load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkFormat {
    /// A tab between fields, a newline after each row, `\N` for NULL: understood by every engine.
    Text,
    /// That of the engine's [`RowEncoder`].
    Encoded,
}

/// A connection with a server of one engine.
pub(crate) trait Connection: Sized + 'static {
    /// Which engine it is.
    const ENGINE: Engine;
    /// From this many loaders on, a table is divided among them; below, loading whole tables costs the server less.
    const DIVIDE_FROM: usize;
    /// A transaction that changes data on the server's side, in a function called by one statement, commits without being told to.
    const CALLS_COMMIT_THEMSELVES: bool;
    /// Asks for the number that the server's host gave to the process or thread of this connection.
    const SERVER_TASK: &'static str;
    /// UPDATE and DELETE can return the rows that they changed.
    const HAS_RETURNING: bool;
    /// A prepared statement.
    type Statement: Clone + Debug;
    /// A row of a prepared statement.
    type Row<'a>: Row;
    /// Writes rows for bulk loads.
    type Encoder: RowEncoder;

    /// Connects, with room for `statements` prepared statements.
    ///
    /// # Errors
    /// [`RequestError::is_absent`] where the server has no such database.
    async fn connect(target: &Target, statements: usize) -> Result<Self, RequestError>;

    /// Prepares a statement.
    async fn prepare(&mut self, sql: Sql<'_>) -> Result<Self::Statement, RequestError>;

    /// Carries out a prepared statement in one round trip, and calls `look` with each of its rows. Returns after the server
    /// reported that the statement, and the transaction if it was one by itself, has ended.
    async fn rows(
        &mut self,
        statement: &Self::Statement,
        values: &[Value<'_>],
        look: &mut dyn FnMut(Self::Row<'_>),
    ) -> Result<Completed, RequestError>;

    /// Carries out a prepared statement that changes rows, once for each element of `rows`, in their order: in one round trip where the
    /// server takes arrays of parameters.
    ///
    /// # Errors
    /// [`RequestError::is_no_row`] where one of them changed nothing.
    async fn change_each<const N: usize>(
        &mut self,
        statement: &Self::Statement,
        rows: &[[Value<'_>; N]],
    ) -> Result<(), RequestError> {
        for row in rows {
            self.change(statement, row).await?;
        }
        Ok(())
    }

    /// Carries out text without parameters in one round trip. Its rows are counted, not shown.
    async fn query(&mut self, sql: &[u8]) -> Result<Completed, RequestError>;

    /// Carries out one statement without parameters, and calls `each` with each of its rows as text.
    async fn read(&mut self, sql: &str, each: &mut dyn FnMut(Cells)) -> Result<(), RequestError>;

    /// Streams rows into a table. `next` appends some rows and returns whether there are more.
    async fn bulk_load(
        &mut self,
        load: BulkLoad<'_>,
        next: &mut dyn FnMut(&mut BytesMut) -> bool,
    ) -> Result<Completed, RequestError>;

    /// Empties a table in a transaction that then loads it, where that saves the server work.
    async fn begin_fresh(&mut self, table: &str) -> Result<(), RequestError>;

    /// Commits what [`Connection::begin_fresh`] began.
    async fn end_fresh(&mut self) -> Result<(), RequestError>;

    /// To be called when a session is ready for its first transaction: its preparation is not to be counted among the
    /// transactions of a run.
    async fn end_preparation(&mut self) -> Result<(), RequestError>;

    /// Carries out a prepared statement whose rows, if it has any, are not looked at.
    async fn execute(
        &mut self,
        statement: &Self::Statement,
        values: &[Value<'_>],
    ) -> Result<Completed, RequestError> {
        self.rows(statement, values, &mut |_| {}).await
    }

    /// What `read` makes of the first row of a statement.
    ///
    /// # Errors
    /// [`RequestError::is_no_row`] where there is none.
    async fn row<T>(
        &mut self,
        statement: &Self::Statement,
        values: &[Value<'_>],
        mut read: impl FnMut(Self::Row<'_>) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        let mut first = None;
        let mut look = |row: Self::Row<'_>| {
            first.get_or_insert_with(|| read(row));
        };
        self.rows(statement, values, &mut look).await?;
        first.unwrap_or_else(|| Err(RequestError::no_row()))
    }

    /// What `read` makes of each row of a statement.
    async fn list<T>(
        &mut self,
        statement: &Self::Statement,
        values: &[Value<'_>],
        mut read: impl FnMut(Self::Row<'_>) -> Result<T, RequestError>,
    ) -> Result<Vec<T>, RequestError> {
        let mut list = Vec::new();
        let mut failed = Ok(());
        let mut look = |row: Self::Row<'_>| match read(row) {
            Ok(value) => list.push(value),
            Err(error) => failed = Err(error),
        };
        self.rows(statement, values, &mut look).await?;
        failed.map(|()| list)
    }

    /// Carries out a statement that changes a row: one that is found, whether or not it is different then.
    ///
    /// # Errors
    /// [`RequestError::is_no_row`] where none was found.
    async fn change(
        &mut self,
        statement: &Self::Statement,
        values: &[Value<'_>],
    ) -> Result<Completed, RequestError> {
        let completed = self.execute(statement, values).await?;
        if completed.changed == 0 { Err(RequestError::no_row()) } else { Ok(completed) }
    }

    /// Carries out texts, one after the other.
    async fn run(&mut self, texts: &[&str]) -> Result<(), RequestError> {
        for sql in texts {
            self.query(sql.as_bytes()).await?;
        }
        Ok(())
    }

    /// The number that the server's host gave to the process or thread of this connection.
    async fn server_task(&mut self) -> Result<u32, RequestError> {
        let rows = self.read_all(Self::SERVER_TASK).await?;
        let cell = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        let number = cell.and_then(|cell| cell.parse().ok());
        number.ok_or_else(|| RequestError::unexpected("no number of a process"))
    }

    /// All rows of a statement without parameters, as text.
    async fn read_all(&mut self, sql: &str) -> Result<Vec<Cells>, RequestError> {
        let mut rows = Vec::new();
        self.read(sql, &mut |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// The marker of a workload's tables, which `sql` reads: identity, and whether the load is complete. None where there
    /// is no marker.
    async fn marker(&mut self, sql: &str) -> Result<Option<(String, bool)>, RequestError> {
        match self.read_all(sql).await {
            Err(error) if error.is_absent() => Ok(None),
            // A load that was interrupted early left it empty.
            rows => Ok(Some(rows?.into_iter().next().map_or_else(Default::default, |row| {
                let mut cells = row.into_iter();
                let identity = cells.next().flatten().unwrap_or_default();
                (identity, cells.next().flatten().is_some_and(|cell| is_true(&cell)))
            }))),
        }
    }
}

/// Whether the text of a BOOLEAN is true: `t` of PostgreSQL, `1` of MariaDB.
pub(crate) fn is_true(cell: &str) -> bool {
    matches!(cell, "t" | "1")
}

impl<'a> Sql<'a> {
    /// Each value is one parameter, in order.
    pub const fn new(text: &'a str) -> Sql<'a> {
        Sql { text, kinds: &[], inputs: &[], is_composite: false }
    }

    /// With the types of its parameters.
    pub const fn typed(text: &'a str, kinds: &'static [Kind]) -> Sql<'a> {
        Sql { text, kinds, inputs: &[], is_composite: false }
    }

    /// With parameters that are formed from the values.
    pub const fn formed(text: &'a str, inputs: &'static [Input]) -> Sql<'a> {
        Sql { text, kinds: &[], inputs, is_composite: false }
    }

    /// Returns one composite value, whose fields count as the columns.
    pub const fn composite(self) -> Sql<'a> {
        Sql { is_composite: true, ..self }
    }
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct RequestError {
    error: Box<SessionError>,
    cause: Cause,
    /// The error proves that nothing was committed.
    proves_rollback: bool,
    /// The connection cannot be used any more.
    is_fatal: bool,
}

/// What a workload may expect to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A statement returned or changed no row.
    NoRow,
    /// There is no such database, schema or table.
    Absent,
    /// A row with this key exists.
    DuplicateKey,
    /// There is no such index.
    NoSuchIndex,
    /// Anything else.
    Other,
}

impl RequestError {
    /// From an error as classified with the commit in flight.
    pub fn new(in_flight: SessionError, cause: Cause, is_fatal: bool) -> RequestError {
        let proves_rollback = !in_flight.commit_unknown;
        RequestError { error: Box::new(in_flight), cause, proves_rollback, is_fatal }
    }

    /// The request was never sent.
    pub fn not_sent(self) -> RequestError {
        RequestError { proves_rollback: true, is_fatal: true, ..self }
    }

    /// There is no row where the workload's tables have one.
    pub fn no_row() -> RequestError {
        RequestError::new(SessionError::no_row(), Cause::NoRow, false)
    }

    /// The server sent something that the statement does not return.
    pub fn unexpected(what: &str) -> RequestError {
        let error = SessionError { commit_unknown: true, ..SessionError::refusal(what) };
        RequestError::new(error, Cause::Other, true)
    }

    /// In the terms of all engines.
    pub fn into_session_error(self, commit: CommitState) -> SessionError {
        let commit_unknown = commit == CommitState::InFlight && !self.proves_rollback;
        SessionError { commit_unknown, ..*self.error }
    }

    /// The server's message.
    pub fn message(&self) -> &str {
        &self.error.message
    }

    /// Five characters, where the server answered.
    pub fn sqlstate(&self) -> Option<&str> {
        self.error.sqlstate.as_deref()
    }

    /// Whether a statement returned or changed no row.
    pub fn is_no_row(&self) -> bool {
        self.cause == Cause::NoRow
    }

    /// Whether there is no such database, schema or table.
    pub fn is_absent(&self) -> bool {
        self.cause == Cause::Absent
    }

    /// Whether a row with this key exists.
    pub fn is_duplicate_key(&self) -> bool {
        self.cause == Cause::DuplicateKey
    }

    /// Whether there is no such index.
    pub fn is_no_such_index(&self) -> bool {
        self.cause == Cause::NoSuchIndex
    }

    /// Whether the connection must be replaced.
    pub fn is_fatal(&self) -> bool {
        self.is_fatal || self.error.class == ErrorClass::ConnectionLost
    }
}

/// An error of a request that commits nothing.
impl From<RequestError> for SessionError {
    fn from(error: RequestError) -> SessionError {
        error.into_session_error(CommitState::NotSent)
    }
}
