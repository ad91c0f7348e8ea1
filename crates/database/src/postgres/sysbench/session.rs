//! A session: one connection that carries out sysbench's transactions, one round trip per statement.
//!
//! Statements are prepared when a table is used first. What selects return is received and counted, not looked
//! at. It neither retries nor reconnects; the driver does.

use std::collections::HashMap;
use std::rc::Rc;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use underlay_workload::sysbench::{Outcome, Script, Transaction};

use crate::error::{CommitState, ErrorClass, SessionError};
use crate::postgres::direct::{Direct, Failure, Prepared};
use crate::sysbench::{Execute, Input, Kind, numbered, operate};
use crate::target::Target;
use crate::transaction_counter::HAND_IN;

/// The text of a statement; `#` stands for the number of the table.
const fn sql(kind: Kind) -> &'static str {
    match kind {
        Kind::Point => "SELECT c FROM sbtest# WHERE id = $1",
        Kind::Simple => "SELECT c FROM sbtest# WHERE id BETWEEN $1 AND $2",
        Kind::Sum => "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN $1 AND $2",
        Kind::Order => "SELECT c FROM sbtest# WHERE id BETWEEN $1 AND $2 ORDER BY c",
        Kind::Distinct => "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN $1 AND $2 ORDER BY c",
        Kind::IndexUpdate => "UPDATE sbtest# SET k = k + 1 WHERE id = $1",
        Kind::NonIndexUpdate => "UPDATE sbtest# SET c = $2 WHERE id = $1",
        Kind::Delete => "DELETE FROM sbtest# WHERE id = $1",
        Kind::InsertAgain => "INSERT INTO sbtest# (id, k, c, pad) VALUES ($1, $2, $3, $4)",
        Kind::Insert => "INSERT INTO sbtest# (k, c, pad) VALUES ($1, $2, $3)",
        Kind::Bulk => {
            "INSERT INTO sbtest_bulk# (id, k) SELECT id, id FROM unnest($1::integer[]) AS id"
        }
    }
}

const fn types(kind: Kind) -> &'static [Type] {
    const ID: &[Type] = &[Type::INT4];
    const RANGE: &[Type] = &[Type::INT4, Type::INT4];
    const TEXT: &[Type] = &[Type::INT4, Type::BPCHAR];
    const ROW: &[Type] = &[Type::INT4, Type::INT4, Type::BPCHAR, Type::BPCHAR];
    const ROW_WITHOUT_ID: &[Type] = &[Type::INT4, Type::BPCHAR, Type::BPCHAR];
    const IDS: &[Type] = &[Type::INT4_ARRAY];
    match kind {
        Kind::Point | Kind::IndexUpdate | Kind::Delete => ID,
        Kind::Simple | Kind::Sum | Kind::Order | Kind::Distinct => RANGE,
        Kind::NonIndexUpdate => TEXT,
        Kind::InsertAgain => ROW,
        Kind::Insert => ROW_WITHOUT_ID,
        Kind::Bulk => IDS,
    }
}

/// The texts of all statements, for the workload's identity.
pub(super) fn texts() -> Vec<&'static str> {
    Kind::ALL.map(sql).to_vec()
}

/// One connection.
pub struct Session {
    connection: Direct,
    prepared: HashMap<(Kind, u32), Rc<Prepared>>,
    /// A transaction may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended.
    lost: bool,
}

impl Session {
    /// Connects, and looks whether the first and the last of `tables` tables are there.
    pub async fn connect(target: &Target, tables: u32) -> Result<Session, SessionError> {
        let connection = Direct::connect(target).await?;
        let mut session =
            Session { connection, prepared: HashMap::new(), dirty: false, lost: false };
        for table in [1, tables] {
            session
                .statement(Kind::Point, table)
                .await
                .map_err(|error| error.into_session_error(CommitState::NotSent))?;
        }
        match session.connection.query(HAND_IN).await {
            // One that cannot counts later what was done until now.
            Ok(_) | Err(Failure::Server(_)) => Ok(session),
            Err(error) => Err(error.into_session_error(CommitState::NotSent)),
        }
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        let result = self.attempt(transaction).await;
        self.lost = result.as_ref().is_err_and(|error| error.class == ErrorClass::ConnectionLost);
        result
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        let explicit = transaction.script.is_explicit();
        if self.dirty {
            self.batch("ROLLBACK", CommitState::NotSent).await?;
        }
        self.dirty = explicit;
        // A statement by itself commits itself, if it changes anything.
        let commit = if explicit || !transaction.script.writes() {
            CommitState::NotSent
        } else {
            CommitState::InFlight
        };
        if explicit {
            self.batch("BEGIN", CommitState::NotSent).await?;
        }
        let mut outcome = Outcome::default();
        for operation in &transaction.operations {
            operate(self, operation, &mut outcome)
                .await
                .map_err(|error| contended(error, commit, transaction.script))?;
        }
        if explicit {
            // Without a change there is nothing that could be in doubt.
            let commit = if transaction.script.writes() {
                CommitState::InFlight
            } else {
                CommitState::NotSent
            };
            self.batch("COMMIT", commit).await?;
        }
        self.dirty = false;
        Ok(outcome)
    }

    async fn statement(&mut self, kind: Kind, table: u32) -> Result<Rc<Prepared>, Failure> {
        if let Some(statement) = self.prepared.get(&(kind, table)) {
            return Ok(statement.clone());
        }
        let sql = numbered(sql(kind), table);
        let statement = Rc::new(self.connection.prepare(&sql, types(kind)).await?);
        self.prepared.insert((kind, table), statement.clone());
        Ok(statement)
    }

    async fn batch(&mut self, sql: &str, commit: CommitState) -> Result<(), SessionError> {
        let answer = self.connection.query(sql).await;
        answer.map(drop).map_err(|error| error.into_session_error(commit))
    }
}

impl Execute for Session {
    type Error = Failure;

    async fn execute(
        &mut self,
        kind: Kind,
        table: u32,
        inputs: &[Input<'_>],
    ) -> Result<u32, Failure> {
        let statement = self.statement(kind, table).await?;
        // No statement has more inputs than this.
        let mut parameters: [&(dyn ToSql + Sync); 4] = [&0i32; 4];
        for (parameter, input) in parameters.iter_mut().zip(inputs) {
            *parameter = match input {
                Input::Int(value) => value,
                Input::Text(text) => text,
                Input::Ids(ids) => ids,
            };
        }
        let rows = self.connection.execute(&statement, &parameters[..inputs.len()]).await?;
        Ok(u32::try_from(rows).unwrap_or(u32::MAX))
    }
}

/// Two users who delete and insert the same id meet at its primary key: one of them lost, and tries again. The
/// server calls it a violated constraint, but nothing is wrong with the data.
fn contended(error: Failure, commit: CommitState, script: Script) -> SessionError {
    let duplicate = error.code() == Some(SqlState::UNIQUE_VIOLATION.code());
    let mut error = error.into_session_error(commit);
    if duplicate && script.is_explicit() {
        error.class = ErrorClass::Serialization;
    }
    error
}
