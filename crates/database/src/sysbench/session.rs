//! A session: one connection that carries out sysbench's transactions, one round trip per statement.
//!
//! Statements are prepared when a table is used first. Rows of selects are received and counted, not looked at. It neither
//! retries nor reconnects; the driver does.

use std::collections::HashMap;
use std::fmt::Write as _;

use underlay_workload::sysbench::{Outcome, Script, Transaction};

use super::names::numbered;
use super::sql::{Bulk, dialect};
use super::statement::{Execute, Input, Kind, operate};
use crate::connection::{Completed, Connection, RequestError, Sql, Value};
use crate::dispatch::{AnySession, SessionFamily, on_session, open_session};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// One connection.
pub struct Session(AnySession<Family>);

struct Family;

impl SessionFamily for Family {
    type Of<C: Connection> = EngineSession<C>;
}

impl Session {
    /// Connects, and looks whether the first and the last of `tables` tables are there.
    pub async fn connect(target: &Target, tables: u32) -> Result<Session, SessionError> {
        Ok(Session(open_session!(
            target.engine, C => EngineSession::<C>::connect(target, tables).await
        )))
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        on_session!(&mut self.0, session => session.run(transaction).await)
    }

    /// The number that the server's host gave to the process or thread that works for this session.
    pub async fn server_task(&mut self) -> Result<u32, SessionError> {
        Ok(on_session!(&mut self.0, session => session.connection.server_task().await)?)
    }
}

struct EngineSession<C: Connection> {
    connection: C,
    prepared: HashMap<(Kind, u32), C::Statement>,
    /// A transaction may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended, or is in an unknown state.
    lost: bool,
}

impl<C: Connection + SchemaOwner> EngineSession<C> {
    async fn connect(target: &Target, tables: u32) -> Result<EngineSession<C>, SessionError> {
        // A statement that a client library forgets is closed: it must have room for all.
        let statements = tables as usize * Kind::ALL.len();
        let target = C::with_database(target, WorkloadTables::Sysbench);
        let mut connection = C::connect(&target, statements).await?;
        connection.run(dialect(C::ENGINE).settings).await?;
        let mut session =
            EngineSession { connection, prepared: HashMap::new(), dirty: false, lost: false };
        for table in [1, tables] {
            session.statement(Kind::Point, table).await?;
        }
        session.connection.end_preparation().await?;
        Ok(session)
    }
}

impl<C: Connection> EngineSession<C> {
    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        self.attempt(transaction).await.map_err(|(error, commit)| {
            self.lost = error.is_fatal();
            contended(error, commit, transaction.script)
        })
    }

    /// The error comes with what was known of the commit.
    async fn attempt(
        &mut self,
        transaction: &Transaction,
    ) -> Result<Outcome, (RequestError, CommitState)> {
        let explicit = transaction.script.is_explicit();
        let unsent = |error| (error, CommitState::NotSent);
        if self.dirty {
            self.connection.query(b"ROLLBACK").await.map_err(unsent)?;
        }
        self.dirty = explicit;
        // A statement by itself commits itself, if it changes anything. Without a change nothing can be in doubt.
        let at_end = match transaction.script.writes() {
            true => CommitState::InFlight,
            false => CommitState::NotSent,
        };
        let within = if explicit { CommitState::NotSent } else { at_end };
        if explicit {
            self.connection.query(b"BEGIN").await.map_err(unsent)?;
        }
        let mut outcome = Outcome::default();
        for operation in &transaction.operations {
            operate(self, operation, &mut outcome).await.map_err(|error| (error, within))?;
        }
        if explicit {
            self.connection.query(b"COMMIT").await.map_err(|error| (error, at_end))?;
        }
        self.dirty = false;
        Ok(outcome)
    }

    async fn statement(&mut self, kind: Kind, table: u32) -> Result<C::Statement, RequestError> {
        if let Some(statement) = self.prepared.get(&(kind, table)) {
            return Ok(statement.clone());
        }
        let sql = (dialect(C::ENGINE).statement)(kind);
        let text = numbered(sql.text, table);
        let statement = self.connection.prepare(Sql { text: &text, ..sql }).await?;
        self.prepared.insert((kind, table), statement.clone());
        Ok(statement)
    }

    /// A bulk insert whose rows are written behind the statement: a prepared one would have a fixed number of them.
    async fn insert_written(&mut self, table: u32, ids: &[i32]) -> Result<u32, RequestError> {
        let mut text = numbered((dialect(C::ENGINE).statement)(Kind::Bulk).text, table);
        for (index, id) in ids.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}({id},{id})");
        }
        self.connection.query(text.as_bytes()).await.map(rows)
    }
}

impl<C: Connection> Execute for EngineSession<C> {
    type Error = RequestError;

    async fn execute(
        &mut self,
        kind: Kind,
        table: u32,
        inputs: &[Input<'_>],
    ) -> Result<u32, RequestError> {
        if let ([Input::Ids(ids)], Bulk::Written) = (inputs, dialect(C::ENGINE).bulk) {
            return self.insert_written(table, ids).await;
        }
        let statement = self.statement(kind, table).await?;
        // No statement has more inputs than this.
        let mut values = [Value::Null; 4];
        for (value, input) in values.iter_mut().zip(inputs) {
            *value = match input {
                Input::Int(number) => Value::Int(*number),
                Input::Text(text) => Value::Text(text.as_bytes()),
                Input::Ids(ids) => Value::Ints(ids),
            };
        }
        self.connection.execute(&statement, &values[..inputs.len()]).await.map(rows)
    }
}

/// How many rows a statement changed or returned.
fn rows(completed: Completed) -> u32 {
    u32::try_from(completed.changed + completed.returned).unwrap_or(u32::MAX)
}

/// Two users who delete and insert the same id conflict at its primary key: one of them fails, and tries again. The server calls it
/// a violated constraint, but nothing is wrong with the data.
fn contended(error: RequestError, commit: CommitState, script: Script) -> SessionError {
    let is_duplicate = error.is_duplicate_key();
    let mut error = error.into_session_error(commit);
    if is_duplicate && script.is_explicit() {
        error.class = ErrorClass::Serialization;
    }
    error
}
