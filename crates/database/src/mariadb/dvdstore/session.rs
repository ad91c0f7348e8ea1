//! A session: one connection that carries out the steps of visits, one round trip each.
//!
//! Every step is a transaction by itself: the commit is in flight from the moment it is sent. What searches return is
//! received and counted, not looked at. The session neither retries nor reconnects; the driver does.

use std::fmt::Write as _;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Statement};
use underlay_workload::dvdstore::{LINES_MAX, Line, Outcome, Parameters, Step, Transaction};

use super::statements::Statements;
use super::{database_of, population_identity};
use crate::dvdstore::{PASSWORD, Value, customer_values, net_cents};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::mariadb::connection::connect;
use crate::target::Target;

/// The settings of a session; part of the workload's identity. See the session of TPC-C for the reasons.
pub(super) const SETTINGS: [&str; 3] = [
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, time_zone = '+00:00', \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
];

/// A key that is there already.
const DUPLICATE: u16 = 1062;

/// Why a request failed.
enum Failure {
    /// The client library or the server reported it.
    Mariadb(mysql_async::Error),
    /// There is no row where the shop has one.
    NoRow,
}

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Failure {
        Failure::Mariadb(error)
    }
}

/// One connection with everything prepared.
pub struct Session {
    conn: Conn,
    statements: Statements,
    /// A purchase may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended, or is in a state that nobody knows.
    lost: bool,
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose shop is not that of `parameters` and this version.
    pub async fn connect(
        target: &Target,
        parameters: &Parameters,
    ) -> Result<Session, SessionError> {
        let mut conn = match connect(&database_of(target).0).await {
            // Unknown database.
            Err(error) if error.message.starts_with("error 1049:") => return Err(no_shop()),
            conn => conn?,
        };
        for sql in SETTINGS {
            conn.query_drop(sql).await.map_err(not_sent)?;
        }
        require_shop(&mut conn, parameters).await?;
        let statements = Statements::prepare(&mut conn).await.map_err(not_sent)?;
        Ok(Session { conn, statements, dirty: false, lost: false })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        if self.dirty {
            self.conn.query_drop("ROLLBACK").await.map_err(not_sent)?;
        }
        // A procedure that ends in an error leaves its transaction open.
        self.dirty = transaction.step() == Step::Purchase;
        let commit = match transaction.step().writes() {
            true => CommitState::InFlight,
            false => CommitState::NotSent,
        };
        match self.attempt(transaction).await {
            Ok(outcome) => {
                self.dirty = false;
                Ok(outcome)
            }
            Err(Failure::NoRow) => Err(SessionError::no_row()),
            Err(Failure::Mariadb(error)) => {
                // After an error of the client library an answer may be half read.
                let is_unread = error.is_fatal();
                let error = SessionError::from_mariadb(&error, commit);
                self.lost = is_unread || error.class == ErrorClass::ConnectionLost;
                Err(error)
            }
        }
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        let Session { conn, statements, .. } = self;
        match transaction {
            Transaction::Login { customer } => {
                let username = format!("user{customer}");
                let inputs = (&username, PASSWORD, &username, PASSWORD);
                let rows: Vec<Row> = conn.exec(&statements.login, inputs).await?;
                let id: u32 = rows.first().and_then(|row| row.get(0)).ok_or(Failure::NoRow)?;
                Ok(Outcome { rows_read: rows.len() as u32, ..Outcome::wrote(id) })
            }
            Transaction::NewCustomer { username, draw } => {
                let values =
                    customer_values(*draw, username).into_iter().map(|value| match value {
                        Value::Integer(number) => number.into(),
                        Value::Text(text) => text.into(),
                    });
                insert(conn, &statements.new_customer, Params::Positional(values.collect())).await
            }
            Transaction::NewMember { customer, level } => {
                let outcome = insert(conn, &statements.new_member, (customer, level)).await?;
                // The key is the customer's, not one that the server gives.
                Ok(Outcome { id: outcome.committed.then_some(*customer), ..outcome })
            }
            Transaction::BrowseCategory { category, batch } => {
                read(conn, &statements.browse_category, (category, batch)).await
            }
            Transaction::Search { step, text, batch, depth } => {
                let words = all_words(text);
                match step {
                    Step::BrowseActor => read(conn, &statements.browse_actor, (words, batch)).await,
                    Step::BrowseTitle => read(conn, &statements.browse_title, (words, batch)).await,
                    Step::ReviewsByActor => {
                        read(conn, &statements.reviews_by_actor, (words, depth, batch)).await
                    }
                    _ => read(conn, &statements.reviews_by_title, (words, depth, batch)).await,
                }
            }
            Transaction::Reviews { step, product, stars, batch } => match step {
                Step::ProductReviewsByStars => {
                    read(conn, &statements.reviews_by_stars, (product, stars, batch)).await
                }
                Step::ProductReviewsByDate => {
                    read(conn, &statements.reviews_by_date, (product, batch)).await
                }
                _ => read(conn, &statements.product_reviews, (product, batch)).await,
            },
            Transaction::NewReview { product, customer, stars, summary, text } => {
                let inputs = (product, stars, customer, summary, text);
                insert(conn, &statements.new_review, inputs).await
            }
            Transaction::RateReview { review, customer, helpfulness } => {
                insert(conn, &statements.rate_review, (review, customer, helpfulness)).await
            }
            Transaction::Prices { lines } => prices(conn, &statements.prices, lines).await,
            Transaction::Purchase { customer, lines, net_cents, tax_cents } => {
                let inputs =
                    (customer, decimal(*net_cents), decimal(*tax_cents), lines_text(lines));
                // Returns when the server said that the call, and with it the commit, is done.
                let order: Option<Option<u32>> =
                    conn.exec_first(&statements.purchase, inputs).await?;
                Ok(order.ok_or(Failure::NoRow)?.map_or(Outcome::REFUSED, Outcome::wrote))
            }
        }
    }
}

/// Writes a row, unless its key is there already.
async fn insert(
    conn: &mut Conn,
    statement: &Statement,
    inputs: impl Into<Params> + Send,
) -> Result<Outcome, Failure> {
    match conn.exec_drop(statement, inputs.into()).await {
        Ok(()) => {
            let id = conn.last_insert_id().and_then(|id| u32::try_from(id).ok());
            Ok(Outcome { id, ..Outcome::wrote(0) })
        }
        Err(mysql_async::Error::Server(error)) if error.code == DUPLICATE => Ok(Outcome::REFUSED),
        Err(error) => Err(error.into()),
    }
}

async fn read(
    conn: &mut Conn,
    statement: &Statement,
    inputs: impl Into<Params> + Send,
) -> Result<Outcome, Failure> {
    let rows: Vec<Row> = conn.exec(statement, inputs.into()).await?;
    Ok(Outcome::read(rows.len() as u32))
}

async fn prices(
    conn: &mut Conn,
    statement: &Statement,
    lines: &[Line],
) -> Result<Outcome, Failure> {
    // The statement has room for the longest order; a shorter one names its last product again.
    let last = lines.last().ok_or(Failure::NoRow)?;
    let products = lines.iter().chain(std::iter::repeat(last)).map(|line| line.product.into());
    let inputs = Params::Positional(products.take(LINES_MAX as usize).collect());
    let prices: Vec<(i32, i64)> = conn.exec(statement, inputs).await?;
    let net_cents = net_cents(lines, &prices).ok_or(Failure::NoRow)?;
    Ok(Outcome { net_cents, ..Outcome::read(prices.len() as u32) })
}

/// A search for all words of a text.
fn all_words(text: &str) -> String {
    text.split(' ').map(|word| format!("+{word}")).collect::<Vec<_>>().join(" ")
}

/// The lines of an order in 15 digits each: product, quantity.
fn lines_text(lines: &[Line]) -> String {
    let mut text = String::with_capacity(15 * lines.len());
    for line in lines {
        // Writing to a String cannot fail.
        let _ = write!(text, "{:010}{:05}", line.product, line.quantity);
    }
    text
}

/// An amount as the decimal text that the server takes.
fn decimal(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// An error of a request that commits nothing.
fn not_sent(error: mysql_async::Error) -> SessionError {
    SessionError::from_mariadb(&error, CommitState::NotSent)
}

fn no_shop() -> SessionError {
    SessionError::refusal("the database holds no shop that underlay made; load one")
}

/// Compares the marker with the identity that a shop of these parameters has.
async fn require_shop(conn: &mut Conn, parameters: &Parameters) -> Result<(), SessionError> {
    const NO_SUCH_TABLE: u16 = 1146;
    let marker: Option<(String, bool)> =
        match conn.query_first("SELECT identity, complete FROM underlay_dvdstore").await {
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_TABLE => {
                return Err(no_shop());
            }
            marker => marker.map_err(not_sent)?,
        };
    let (found, complete) = marker.unwrap_or_default();
    if !complete {
        return Err(SessionError::refusal("the shop is incomplete; drop it and load it again"));
    }
    let wanted = population_identity(parameters);
    if found != wanted {
        return Err(SessionError::refusal(&format!(
            "the shop has the identity {found}, the workload needs {wanted}: other size, seed or version; drop it \
             and load it again"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{all_words, decimal, lines_text};
    use underlay_workload::dvdstore::Line;

    #[test]
    fn inputs_are_written_as_the_statements_read_them() {
        assert_eq!(all_words("ALBIN ASHBERG"), "+ALBIN +ASHBERG");
        assert_eq!((decimal(5), decimal(123_450)), ("0.05".to_string(), "1234.50".to_string()));
        let lines = [Line { product: 7, quantity: 3 }, Line { product: 1_000_000, quantity: 1 }];
        assert_eq!(lines_text(&lines), "000000000700003000100000000001");
    }
}
