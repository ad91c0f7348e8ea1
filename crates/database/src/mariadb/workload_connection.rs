//! MariaDB's implementation of [`Connection`], also that of MySQL: what workloads use of a [`Link`].
//!
//! Parameters of prepared statements are single values here: arrays become lists of parameters or one text of digits, as the
//! statement says ([`Input`]).

use bytes::BytesMut;
use mysql_async::Error;

use super::direct::{Parameter, Row};
use super::error::RequestError as OwnError;
use super::infile::load_rows;
use super::link::{Link, Prepared};
use super::text_rows::TextRows;
use crate::Engine;
use crate::connection::{
    self, BulkFormat, BulkLoad, Cause, Cells, Completed, Connection, Input, RequestError, Sql,
    Value,
};
use crate::error::{CommitState, SessionError};
use crate::target::Target;

/// Numbers of the server's errors (manual, "MariaDB Error Code Reference").
const NO_SUCH_DATABASE: u16 = 1049;
const NO_SUCH_TABLE: u16 = 1146;
const DUPLICATE_KEY: u16 = 1062;
const NO_SUCH_INDEX: u16 = 1176;

/// A connection with a MariaDB or MySQL.
#[derive(Debug)]
pub(crate) struct MariadbConnection(Link);

/// A prepared statement.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    prepared: Prepared,
    inputs: &'static [Input],
}

impl Connection for MariadbConnection {
    const ENGINE: Engine = Engine::Mariadb;
    const DIVIDE_FROM: usize = 2;
    // A procedure says COMMIT itself, so that its answer comes after it.
    const CALLS_COMMIT_THEMSELVES: bool = false;
    // Of a pool of threads it would be whichever works at the moment: a managed server has one for each connection.
    const SERVER_TASK: &'static str =
        "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
    const HAS_RETURNING: bool = false;
    type Statement = Statement;
    type Row<'a> = Row<'a>;
    type Encoder = TextRows;

    async fn connect(
        target: &Target,
        statements: usize,
    ) -> Result<MariadbConnection, RequestError> {
        Link::connect(target, statements).await.map(MariadbConnection).map_err(|error| {
            let is_absent = error.message.starts_with(&format!("error {NO_SUCH_DATABASE}:"));
            let cause = if is_absent { Cause::Absent } else { Cause::Other };
            RequestError::new(error, cause, true)
        })
    }

    async fn prepare(&mut self, sql: Sql<'_>) -> Result<Statement, RequestError> {
        Ok(Statement { prepared: self.0.prepare(sql.text).await?, inputs: sql.inputs })
    }

    async fn rows(
        &mut self,
        statement: &Statement,
        values: &[Value<'_>],
        look: &mut dyn FnMut(Row<'_>),
    ) -> Result<Completed, RequestError> {
        let digits = digits(statement.inputs, values)?;
        let parameters = parameters(statement.inputs, values, &digits)?;
        Ok(self.0.rows(&statement.prepared, &parameters, look).await?)
    }

    async fn change_each<const N: usize>(
        &mut self,
        statement: &Statement,
        rows: &[[Value<'_>; N]],
    ) -> Result<(), RequestError> {
        debug_assert!(
            statement.inputs.iter().all(|input| matches!(input, Input::Value(_))),
            "an array of parameters has single values"
        );
        let mut all = Vec::with_capacity(rows.len() * N);
        for row in rows {
            all.extend(parameters(statement.inputs, row, &[])?);
        }
        let changed = self.0.change_each(&statement.prepared, rows.len(), &all).await?;
        if changed { Ok(()) } else { Err(RequestError::no_row()) }
    }

    async fn query(&mut self, sql: &[u8]) -> Result<Completed, RequestError> {
        Ok(self.0.query(sql).await?)
    }

    async fn read(&mut self, sql: &str, each: &mut dyn FnMut(Cells)) -> Result<(), RequestError> {
        let mut malformed = None;
        let mut look = |row: Row<'_>| match row.cells() {
            Ok(cells) => each(cells),
            Err(error) => malformed = Some(error),
        };
        self.0.read(sql, &mut look).await?;
        malformed.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn bulk_load(
        &mut self,
        load: BulkLoad<'_>,
        next: &mut dyn FnMut(&mut BytesMut) -> bool,
    ) -> Result<Completed, RequestError> {
        let mut columns = match load.columns {
            "" => String::new(),
            columns => format!(" ({columns})"),
        };
        // Bytes are written as digits.
        if let (Some(column), BulkFormat::Encoded) = (load.binary_column, load.format) {
            columns = columns.replace(column, &format!("@{column}"));
            columns.push_str(&format!(" SET {column} = unhex(@{column})"));
        }
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET latin1 \
             FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n'{columns}",
            load.table
        );
        let completed = match &mut self.0 {
            Link::Direct(direct) => direct.load_data(&sql, next).await?,
            Link::Library(conn) => load_rows(conn, &sql, next).await?,
        };
        if completed.warnings > 0 {
            // Strict mode makes errors of what would change data; what is left is worth a look.
            tracing::warn!(warnings = completed.warnings, sql, "the server warned while loading");
        }
        Ok(completed)
    }

    async fn begin_fresh(&mut self, _: &str) -> Result<(), RequestError> {
        Ok(())
    }

    async fn end_fresh(&mut self) -> Result<(), RequestError> {
        Ok(())
    }

    async fn end_preparation(&mut self) -> Result<(), RequestError> {
        Ok(())
    }
}

/// The texts of digits among the parameters, in their order.
fn digits(inputs: &[Input], values: &[Value<'_>]) -> Result<Vec<Vec<u8>>, RequestError> {
    let texts = inputs.iter().filter_map(|input| match input {
        Input::Digits(columns) => Some(*columns),
        _ => None,
    });
    texts
        .map(|columns| {
            let arrays = columns.iter().map(|(value, places)| match values.get(*value) {
                Some(Value::Ints(numbers)) => Ok((*numbers, *places)),
                _ => Err(misfit()),
            });
            let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
            let rows = arrays.first().map_or(0, |(numbers, _)| numbers.len());
            let mut text = Vec::new();
            for index in 0..rows {
                for (numbers, places) in &arrays {
                    push_digits(&mut text, *numbers.get(index).ok_or_else(misfit)?, *places);
                }
            }
            Ok(text)
        })
        .collect()
}

fn parameters<'a>(
    inputs: &[Input],
    values: &[Value<'a>],
    digits: &'a [Vec<u8>],
) -> Result<Vec<Parameter<'a>>, RequestError> {
    if inputs.is_empty() {
        return values.iter().map(|value| single(*value)).collect();
    }
    let mut digits = digits.iter();
    let mut parameters = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input {
            Input::Value(index) => {
                parameters.push(single(*values.get(*index).ok_or_else(misfit)?)?);
            }
            Input::List { value, room } => {
                let Some(Value::Ints(numbers)) = values.get(*value) else { return Err(misfit()) };
                let last = *numbers.last().ok_or_else(misfit)?;
                if numbers.len() > *room {
                    return Err(misfit());
                }
                let numbers = numbers.iter().copied().chain(std::iter::repeat(last));
                parameters.extend(numbers.take(*room).map(Parameter::Int));
            }
            Input::Digits(_) => {
                parameters.push(Parameter::Text(digits.next().ok_or_else(misfit)?));
            }
        }
    }
    Ok(parameters)
}

fn single(value: Value<'_>) -> Result<Parameter<'_>, RequestError> {
    Ok(match value {
        Value::Null => Parameter::Null,
        Value::Int(value) => Parameter::Int(value),
        Value::Cents(cents) => Parameter::Cents(cents),
        Value::Text(text) => Parameter::Text(text),
        Value::Ints(_) | Value::Bigs(_) | Value::Texts(_) => return Err(misfit()),
    })
}

fn misfit() -> RequestError {
    RequestError::unexpected("a statement's values do not fit its parameters").not_sent()
}

/// Appends the last `places` digits of a number.
fn push_digits(text: &mut Vec<u8>, number: i32, places: usize) {
    let begin = text.len();
    text.resize(begin + places, b'0');
    let mut rest = number.unsigned_abs();
    for digit in text[begin..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

impl connection::Row for Row<'_> {
    fn integer(&self, column: usize) -> Result<Option<i64>, RequestError> {
        Ok(Row::integer(self, column)?)
    }

    fn text(&self, column: usize) -> Result<Option<&[u8]>, RequestError> {
        Ok(Row::text(self, column)?)
    }
}

impl From<Error> for RequestError {
    fn from(error: Error) -> RequestError {
        let cause = match &error {
            Error::Server(error) => match error.code {
                NO_SUCH_DATABASE | NO_SUCH_TABLE => Cause::Absent,
                DUPLICATE_KEY => Cause::DuplicateKey,
                NO_SUCH_INDEX => Cause::NoSuchIndex,
                _ => Cause::Other,
            },
            _ => Cause::Other,
        };
        let session_error = SessionError::from_mariadb(&error, CommitState::InFlight);
        RequestError::new(session_error, cause, error.is_fatal())
    }
}

impl From<OwnError> for RequestError {
    fn from(error: OwnError) -> RequestError {
        match error {
            OwnError::Mariadb(error) => error.into(),
            OwnError::NotSent(error) => RequestError::from(error).not_sent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{digits, parameters};
    use crate::connection::{Input, Value};
    use crate::mariadb::direct::Parameter;

    #[test]
    fn arrays_become_digits_and_lists() {
        let inputs = [
            Input::Value(0),
            Input::Digits(&[(1, 2), (2, 6)]),
            Input::List { value: 2, room: 3 },
            Input::Value(0),
        ];
        let values = [Value::Int(7), Value::Ints(&[2, 1]), Value::Ints(&[100_001, 3])];
        let texts = digits(&inputs, &values).unwrap();
        assert_eq!(texts, [b"0210000101000003".to_vec()]);
        let formed = parameters(&inputs, &values, &texts).unwrap();
        let ints = |formed: &[Parameter<'_>]| -> Vec<i32> {
            let int = |parameter: &Parameter<'_>| match parameter {
                Parameter::Int(value) => Some(*value),
                _ => None,
            };
            formed.iter().filter_map(int).collect()
        };
        assert_eq!((formed.len(), ints(&formed)), (6, vec![7, 100_001, 3, 3, 7]));
        let room = [Input::List { value: 2, room: 1 }];
        assert!(parameters(&room, &values, &[]).is_err());
    }
}
