//! A session: one connection that carries out sysbench's transactions, one round trip per statement.
//!
//! Statements are prepared when a table is used first. What selects return is received and counted, not looked
//! at. It neither retries nor reconnects; the driver does. The isolation level is the server's default, as with
//! sysbench.

use std::collections::HashMap;

use underlay_workload::sysbench::{Outcome, Script, Transaction};

use super::with_database;
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::mariadb::direct::{Completed, Parameter};
use crate::mariadb::error::RequestError;
use crate::mariadb::link::{Link, Prepared};
use crate::sysbench::{Execute, Input, Kind, numbered, operate};
use crate::target::Target;

/// The settings of a session; part of the workload's identity. Texts come as the table holds them: without this
/// the server would convert each of them.
pub(super) const SETTINGS: &str = "SET SESSION character_set_results = NULL, autocommit = 1";

/// A row exists already under this key.
const DUPLICATE_KEY: u16 = 1062;

/// The text of a statement; `#` stands for the number of the table. That of a bulk insert is followed by
/// its rows.
const fn sql(kind: Kind) -> &'static str {
    match kind {
        Kind::Point => "SELECT c FROM sbtest# WHERE id = ?",
        Kind::Simple => "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ?",
        Kind::Sum => "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN ? AND ?",
        Kind::Order => "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
        Kind::Distinct => "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
        Kind::IndexUpdate => "UPDATE sbtest# SET k = k + 1 WHERE id = ?",
        Kind::NonIndexUpdate => "UPDATE sbtest# SET c = ? WHERE id = ?",
        Kind::Delete => "DELETE FROM sbtest# WHERE id = ?",
        Kind::InsertAgain => "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)",
        Kind::Insert => "INSERT INTO sbtest# (k, c, pad) VALUES (?, ?, ?)",
        Kind::Bulk => "INSERT INTO sbtest_bulk# (id, k) VALUES ",
    }
}

/// The texts of all statements, for the workload's identity.
pub(super) fn texts() -> Vec<&'static str> {
    Kind::ALL.map(sql).to_vec()
}

/// One connection.
pub struct Session {
    link: Link,
    prepared: HashMap<(Kind, u32), Prepared>,
    /// A transaction may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended, or is in a state that nobody knows.
    lost: bool,
}

impl Session {
    /// Connects, and looks whether the first and the last of `tables` tables are there.
    pub async fn connect(target: &Target, tables: u32) -> Result<Session, SessionError> {
        // A statement that the library forgets is closed under us: it must have room for all.
        let statements = tables as usize * Kind::ALL.len();
        let link = Link::connect(&with_database(target), statements).await?;
        let mut session = Session { link, prepared: HashMap::new(), dirty: false, lost: false };
        session.link.query(SETTINGS).await.map_err(not_sent)?;
        for table in [1, tables] {
            session.statement(Kind::Point, table).await.map_err(not_sent)?;
        }
        Ok(session)
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        self.attempt(transaction).await.map_err(|(error, commit)| {
            let is_unread = error.is_fatal();
            let error = contended(error, commit, transaction.script);
            // After an error of the client library an answer may be half read.
            self.lost = is_unread || error.class == ErrorClass::ConnectionLost;
            error
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
            self.link.query("ROLLBACK").await.map_err(unsent)?;
        }
        self.dirty = explicit;
        // A statement by itself commits itself, if it changes anything.
        let at_end = match transaction.script.writes() {
            true => CommitState::InFlight,
            false => CommitState::NotSent,
        };
        let within = if explicit { CommitState::NotSent } else { at_end };
        if explicit {
            self.link.query("BEGIN").await.map_err(unsent)?;
        }
        let mut outcome = Outcome::default();
        for operation in &transaction.operations {
            operate(self, operation, &mut outcome).await.map_err(|error| (error, within))?;
        }
        if explicit {
            self.link.query("COMMIT").await.map_err(|error| (error, at_end))?;
        }
        self.dirty = false;
        Ok(outcome)
    }

    async fn statement(&mut self, kind: Kind, table: u32) -> Result<Prepared, RequestError> {
        if let Some(statement) = self.prepared.get(&(kind, table)) {
            return Ok(statement.clone());
        }
        let statement = self.link.prepare(&numbered(sql(kind), table)).await?;
        self.prepared.insert((kind, table), statement.clone());
        Ok(statement)
    }

    /// A bulk insert is a text of its own each time: a prepared statement has a fixed number of rows.
    async fn insert_bulk(&mut self, table: u32, ids: &[i32]) -> Result<u32, RequestError> {
        use std::fmt::Write as _;
        let mut text = numbered(sql(Kind::Bulk), table);
        for (index, id) in ids.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}({id},{id})");
        }
        self.link.query(&text).await.map(rows)
    }
}

impl Execute for Session {
    type Error = RequestError;

    async fn execute(
        &mut self,
        kind: Kind,
        table: u32,
        inputs: &[Input<'_>],
    ) -> Result<u32, RequestError> {
        if let [Input::Ids(ids)] = inputs {
            return self.insert_bulk(table, ids).await;
        }
        let statement = self.statement(kind, table).await?;
        // No statement has more inputs than this.
        let mut parameters = [Parameter::Int(0); 4];
        for (parameter, input) in parameters.iter_mut().zip(inputs) {
            *parameter = match input {
                Input::Int(value) => Parameter::Int(*value),
                Input::Text(text) => Parameter::Text(text.as_bytes()),
                Input::Ids(_) => unreachable!("a bulk insert has no other inputs"),
            };
        }
        let parameters = &mut parameters[..inputs.len()];
        if kind == Kind::NonIndexUpdate {
            // Parameters have places, not numbers: the text comes before the id.
            parameters.reverse();
        }
        self.link.execute(&statement, parameters).await.map(rows)
    }
}

/// How many rows a statement changed or returned.
fn rows(completed: Completed) -> u32 {
    u32::try_from(completed.changed + completed.returned).unwrap_or(u32::MAX)
}

fn not_sent(error: RequestError) -> SessionError {
    error.into_session_error(CommitState::NotSent)
}

/// Two users who delete and insert the same id meet at its primary key: one of them lost, and tries again. The
/// server calls it a violated constraint, but nothing is wrong with the data.
fn contended(error: RequestError, commit: CommitState, script: Script) -> SessionError {
    let is_duplicate = error.number() == Some(DUPLICATE_KEY);
    let mut error = error.into_session_error(commit);
    if is_duplicate && script.is_explicit() {
        error.class = ErrorClass::Serialization;
    }
    error
}
