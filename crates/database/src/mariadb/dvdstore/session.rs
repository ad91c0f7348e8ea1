//! A session: one connection that carries out the steps of visits, one round trip each.
//!
//! Every step is a transaction by itself: the commit is in flight from the moment it is sent. What searches return is
//! received and counted, not looked at. The session neither retries nor reconnects; the driver does.

use std::fmt::Write as _;

use underlay_workload::dvdstore::{LINES_MAX, Line, Outcome, Parameters, Step, Transaction};

use super::statements::Statements;
use super::{database_of, population_identity};
use crate::dvdstore::{PASSWORD, Value, customer_values, net_cents};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::mariadb::direct::Parameter::{self, Cents, Int, Text};
use crate::mariadb::direct::Row;
use crate::mariadb::error::RequestError;
use crate::mariadb::link::{Link, Prepared};
use crate::target::Target;

/// Prepared statements of a session, at most.
const STATEMENTS: usize = 32;
/// How the server's word begins when the database is not there.
const NO_SUCH_DATABASE: &str = "error 1049:";

/// The settings of a session; part of the workload's identity. See the session of TPC-C for the reasons.
pub(super) const SETTINGS: [&str; 3] = [
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 1, time_zone = '+00:00', \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
];

/// A key that is there already.
const DUPLICATE: u16 = 1062;

/// One connection with everything prepared.
pub struct Session {
    link: Link,
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
        let mut link = match Link::connect(&database_of(target).0, STATEMENTS).await {
            Err(error) if error.message.starts_with(NO_SUCH_DATABASE) => return Err(no_shop()),
            link => link?,
        };
        for sql in SETTINGS {
            link.query(sql).await.map_err(not_sent)?;
        }
        require_shop(&mut link, parameters).await?;
        let statements = Statements::prepare(&mut link).await.map_err(not_sent)?;
        Ok(Session { link, statements, dirty: false, lost: false })
    }

    /// Carries out one transaction and returns when the server has confirmed its end.
    pub async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        if self.lost {
            return Err(SessionError::lost_before());
        }
        let commit = match transaction.step().writes() {
            true => CommitState::InFlight,
            false => CommitState::NotSent,
        };
        let outcome = match self.undo_what_is_open().await {
            Ok(()) => self.attempt(transaction).await.map_err(|error| (error, commit)),
            Err(error) => Err((error, CommitState::NotSent)),
        };
        outcome.inspect(|_| self.dirty = false).map_err(|(error, commit)| {
            let is_fatal = error.is_fatal();
            let error = error.into_session_error(commit);
            self.lost = is_fatal || error.class == ErrorClass::ConnectionLost;
            error
        })
    }

    async fn undo_what_is_open(&mut self) -> Result<(), RequestError> {
        if self.dirty {
            self.link.query("ROLLBACK").await?;
            self.dirty = false;
        }
        Ok(())
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, RequestError> {
        // A procedure that ends in an error leaves its transaction open.
        self.dirty = transaction.step() == Step::Purchase;
        let Session { link, statements, .. } = self;
        match transaction {
            Transaction::Login { customer } => {
                let username = format!("user{customer}");
                let login = [Text(username.as_bytes()), Text(PASSWORD.as_bytes())];
                let values = [login[0], login[1], login[0], login[1]];
                let mut id = Err(RequestError::NoRow);
                let read =
                    link.rows(&statements.login, &values, &mut |row| id = row.number(0)).await?;
                Ok(Outcome { rows_read: read.returned as u32, ..Outcome::wrote(id?) })
            }
            Transaction::NewCustomer { username, draw } => {
                let values = customer_values(*draw, username);
                let values: Vec<Parameter<'_>> = values
                    .iter()
                    .map(|value| match value {
                        Value::Integer(number) => Int(*number),
                        Value::Text(text) => Text(text.as_bytes()),
                    })
                    .collect();
                insert(link, &statements.new_customer, &values).await
            }
            Transaction::NewMember { customer, level } => {
                let values = [number(*customer), number(*level)];
                let outcome = insert(link, &statements.new_member, &values).await?;
                // The key is the customer's, not one that the server gives.
                Ok(Outcome { id: outcome.committed.then_some(*customer), ..outcome })
            }
            Transaction::BrowseCategory { category, batch } => {
                let values = [number(*category), number(*batch)];
                read(link, &statements.browse_category, &values).await
            }
            Transaction::Search { step, text, batch, depth } => {
                let words = all_words(text);
                let (words, batch, depth) =
                    (Text(words.as_bytes()), number(*batch), number(*depth));
                match step {
                    Step::BrowseActor => {
                        read(link, &statements.browse_actor, &[words, batch]).await
                    }
                    Step::BrowseTitle => {
                        read(link, &statements.browse_title, &[words, batch]).await
                    }
                    Step::ReviewsByActor => {
                        read(link, &statements.reviews_by_actor, &[words, depth, batch]).await
                    }
                    _ => read(link, &statements.reviews_by_title, &[words, depth, batch]).await,
                }
            }
            Transaction::Reviews { step, product, stars, batch } => {
                let (product, stars, batch) = (number(*product), number(*stars), number(*batch));
                match step {
                    Step::ProductReviewsByStars => {
                        read(link, &statements.reviews_by_stars, &[product, stars, batch]).await
                    }
                    Step::ProductReviewsByDate => {
                        read(link, &statements.reviews_by_date, &[product, batch]).await
                    }
                    _ => read(link, &statements.product_reviews, &[product, batch]).await,
                }
            }
            Transaction::NewReview { product, customer, stars, summary, text } => {
                let [summary, text] = [summary, text].map(|text| Text(text.as_bytes()));
                let values = [number(*product), number(*stars), number(*customer), summary, text];
                insert(link, &statements.new_review, &values).await
            }
            Transaction::RateReview { review, customer, helpfulness } => {
                let values = [number(*review), number(*customer), number(*helpfulness)];
                insert(link, &statements.rate_review, &values).await
            }
            Transaction::Prices { lines } => prices(link, &statements.prices, lines).await,
            Transaction::Purchase { customer, lines, net_cents, tax_cents } => {
                let lines = lines_text(lines);
                let values = [
                    number(*customer),
                    Cents(*net_cents),
                    Cents(*tax_cents),
                    Text(lines.as_bytes()),
                ];
                // Returns when the server said that the call, and with it the commit, is done.
                link.row(&statements.purchase, &values, |row| match row.integer(0)? {
                    None => Ok(Outcome::REFUSED),
                    Some(_) => Ok(Outcome::wrote(row.number(0)?)),
                })
                .await
            }
        }
    }
}

fn number(value: impl Into<i64>) -> Parameter<'static> {
    Int(i32::try_from(value.into()).expect("numbers of the shop fit into 31 bits"))
}

/// Writes a row, unless its key is there already.
async fn insert(
    link: &mut Link,
    statement: &Prepared,
    values: &[Parameter<'_>],
) -> Result<Outcome, RequestError> {
    match link.execute(statement, values).await {
        Ok(completed) => {
            let given = u32::try_from(completed.last_insert_id).ok().filter(|id| *id > 0);
            Ok(Outcome { id: given, ..Outcome::wrote(0) })
        }
        Err(error) if error.number() == Some(DUPLICATE) => Ok(Outcome::REFUSED),
        Err(error) => Err(error),
    }
}

async fn read(
    link: &mut Link,
    statement: &Prepared,
    values: &[Parameter<'_>],
) -> Result<Outcome, RequestError> {
    Ok(Outcome::read(link.execute(statement, values).await?.returned as u32))
}

async fn prices(
    link: &mut Link,
    statement: &Prepared,
    lines: &[Line],
) -> Result<Outcome, RequestError> {
    // The statement has room for the longest order; a shorter one names its last product again.
    let last = lines.last().ok_or(RequestError::NoRow)?;
    let products = lines.iter().chain(std::iter::repeat(last)).map(|line| number(line.product));
    let values: Vec<Parameter<'_>> = products.take(LINES_MAX as usize).collect();
    let read = |row: Row<'_>| Ok((row.number(0)?, row.number(1)?));
    let prices: Vec<(i32, i64)> = link.list(statement, &values, read).await?;
    let net_cents = net_cents(lines, &prices).ok_or(RequestError::NoRow)?;
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

/// An error of a request that commits nothing.
fn not_sent(error: RequestError) -> SessionError {
    error.into_session_error(CommitState::NotSent)
}

fn no_shop() -> SessionError {
    SessionError::refusal("the database holds no shop that underlay made; load one")
}

/// Compares the marker with the identity that a shop of these parameters has.
async fn require_shop(link: &mut Link, parameters: &Parameters) -> Result<(), SessionError> {
    let marker = link.marker("SELECT identity, complete FROM underlay_dvdstore").await;
    let (found, complete) = marker.map_err(not_sent)?.ok_or_else(no_shop)?;
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
    use super::{all_words, lines_text};
    use underlay_workload::dvdstore::Line;

    #[test]
    fn inputs_are_written_as_the_statements_read_them() {
        assert_eq!(all_words("ALBIN ASHBERG"), "+ALBIN +ASHBERG");
        let lines = [Line { product: 7, quantity: 3 }, Line { product: 1_000_000, quantity: 1 }];
        assert_eq!(lines_text(&lines), "000000000700003000100000000001");
    }
}
