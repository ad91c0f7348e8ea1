//! A session: one connection that carries out the steps of visits, one round trip each.
//!
//! Every step is a transaction by itself: the commit is in flight from the moment it is sent. Rows of searches are received
//! and counted, not looked at. The session neither retries nor reconnects; the driver does.

use underlay_workload::dvdstore::{Line, Outcome, Parameters, Step, Transaction};

use super::request::{self, PASSWORD, customer_values, net_cents};
use super::sql::{Statements, dialect, population_identity};
use crate::connection::Value::{Cents, Int, Ints, Text};
use crate::connection::{Connection, RequestError, Row, Value};
use crate::dispatch::{AnySession, SessionFamily, on_session, open_session};
use crate::error::{CommitState, SessionError};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Prepared statements of a session, at most.
const STATEMENTS: usize = 32;
/// The code of an order that is not in stock, where the purchase raises an error.
const NOT_IN_STOCK: &str = "UL001";

/// One connection with everything prepared.
pub struct Session(AnySession<Family>);

struct Family;

impl SessionFamily for Family {
    type Of<C: Connection> = EngineSession<C>;
}

impl Session {
    /// Connects and prepares everything that transactions need.
    ///
    /// Refuses a database whose shop is not that of `parameters` and this version: what it would measure is not what
    /// the workload's identity says.
    pub async fn connect(
        target: &Target,
        parameters: &Parameters,
    ) -> Result<Session, SessionError> {
        Ok(Session(open_session!(
            target.engine, C => EngineSession::<C>::connect(target, parameters).await
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
    statements: Statements<C::Statement>,
    /// A purchase may have been left open: by an error, or by a caller who stopped waiting.
    dirty: bool,
    /// The connection ended, or is in an unknown state.
    lost: bool,
}

impl<C: Connection + SchemaOwner> EngineSession<C> {
    async fn connect(
        target: &Target,
        parameters: &Parameters,
    ) -> Result<EngineSession<C>, SessionError> {
        let target = C::with_database(target, WorkloadTables::Dvdstore);
        let mut connection = match C::connect(&target, STATEMENTS).await {
            Err(error) if error.is_absent() => return Err(no_shop()),
            connection => connection?,
        };
        let dialect = dialect(C::ENGINE);
        let marker = C::table(WorkloadTables::Dvdstore, WorkloadTables::Dvdstore.marker());
        let marker = connection.marker(&format!("SELECT identity, complete FROM {marker}")).await?;
        require_shop(marker, &population_identity(C::ENGINE, parameters))?;
        // Later: a plan without scans of whole tables would be compiled for the marker.
        connection.run(dialect.settings).await?;
        let statements = dialect.statements.prepare(&mut connection).await?;
        connection.end_preparation().await?;
        Ok(EngineSession { connection, statements, dirty: false, lost: false })
    }
}

impl<C: Connection> EngineSession<C> {
    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
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
            self.lost = error.is_fatal();
            error.into_session_error(commit)
        })
    }

    async fn undo_what_is_open(&mut self) -> Result<(), RequestError> {
        if self.dirty {
            self.connection.query(b"ROLLBACK").await?;
            self.dirty = false;
        }
        Ok(())
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, RequestError> {
        // A procedure that ends in an error leaves its transaction open. A function does not.
        self.dirty = !C::CALLS_COMMIT_THEMSELVES && transaction.step() == Step::Purchase;
        let EngineSession { connection, statements, .. } = self;
        match transaction {
            Transaction::Login { customer } => {
                let username = format!("user{customer}");
                let login = [Text(username.as_bytes()), Text(PASSWORD.as_bytes())];
                let mut id = None;
                let mut look = |row: C::Row<'_>| {
                    id.get_or_insert_with(|| row.number(0));
                };
                let read = connection.rows(&statements.login, &login, &mut look).await?;
                let id = id.unwrap_or_else(|| Err(RequestError::no_row()))?;
                Ok(Outcome { rows_read: read.returned as u32, ..Outcome::wrote(id) })
            }
            Transaction::NewCustomer { username, draw } => {
                let values = customer_values(*draw, username);
                let values: Vec<Value<'_>> = values
                    .iter()
                    .map(|value| match value {
                        request::Value::Integer(number) => Int(*number),
                        request::Value::Text(text) => Text(text.as_bytes()),
                    })
                    .collect();
                insert(connection, &statements.new_customer, &values).await
            }
            Transaction::NewMember { customer, level } => {
                let values = [number(*customer), number(*level)];
                let outcome = insert(connection, &statements.new_member, &values).await?;
                // The key is the customer's, not one that the server gives.
                Ok(Outcome { id: outcome.committed.then_some(*customer), ..outcome })
            }
            Transaction::BrowseCategory { category, batch } => {
                let values = [number(*category), number(*batch)];
                read(connection, &statements.browse_category, &values).await
            }
            Transaction::Search { step, text, batch, depth } => {
                let words = (dialect(C::ENGINE).all_words)(text);
                let (words, batch, depth) =
                    (Text(words.as_bytes()), number(*batch), number(*depth));
                let (statement, values): (_, &[Value<'_>]) = match step {
                    Step::BrowseActor => (&statements.browse_actor, &[words, batch]),
                    Step::BrowseTitle => (&statements.browse_title, &[words, batch]),
                    Step::ReviewsByActor => (&statements.reviews_by_actor, &[words, depth, batch]),
                    _ => (&statements.reviews_by_title, &[words, depth, batch]),
                };
                read(connection, statement, values).await
            }
            Transaction::Reviews { step, product, stars, batch } => {
                let (product, stars, batch) = (number(*product), number(*stars), number(*batch));
                let (statement, values): (_, &[Value<'_>]) = match step {
                    Step::ProductReviewsByStars => {
                        (&statements.reviews_by_stars, &[product, stars, batch])
                    }
                    Step::ProductReviewsByDate => (&statements.reviews_by_date, &[product, batch]),
                    _ => (&statements.product_reviews, &[product, batch]),
                };
                read(connection, statement, values).await
            }
            Transaction::NewReview { product, customer, stars, summary, text } => {
                let [summary, text] = [summary, text].map(|text| Text(text.as_bytes()));
                let values = [number(*product), number(*stars), number(*customer), summary, text];
                insert(connection, &statements.new_review, &values).await
            }
            Transaction::RateReview { review, customer, helpfulness } => {
                let values = [number(*review), number(*customer), number(*helpfulness)];
                insert(connection, &statements.rate_review, &values).await
            }
            Transaction::Prices { lines } => {
                let (products, _) = columns(lines);
                let read = |row: C::Row<'_>| Ok((row.number(0)?, row.number(1)?));
                let prices: Vec<(i32, i64)> =
                    connection.list(&statements.prices, &[Ints(&products)], read).await?;
                let net_cents = net_cents(lines, &prices).ok_or_else(RequestError::no_row)?;
                Ok(Outcome { net_cents, ..Outcome::read(prices.len() as u32) })
            }
            Transaction::Purchase { customer, lines, net_cents, tax_cents } => {
                let (products, quantities) = columns(lines);
                let values = [
                    number(*customer),
                    Cents(*net_cents),
                    Cents(*tax_cents),
                    Ints(&products),
                    Ints(&quantities),
                ];
                match insert(connection, &statements.purchase, &values).await {
                    Err(error) if error.sqlstate() == Some(NOT_IN_STOCK) => Ok(Outcome::REFUSED),
                    outcome => outcome,
                }
            }
        }
    }
}

fn number(value: impl Into<i64>) -> Value<'static> {
    Int(i32::try_from(value.into()).expect("numbers of the shop fit into 31 bits"))
}

/// Writes a row, unless its key is there already. The row's key is returned, or given by the server; a purchase that is not
/// possible returns none.
async fn insert<C: Connection>(
    connection: &mut C,
    statement: &C::Statement,
    values: &[Value<'_>],
) -> Result<Outcome, RequestError> {
    let mut returned = None;
    let mut look = |row: C::Row<'_>| returned = Some(row.integer(0));
    let completed = match connection.rows(statement, values, &mut look).await {
        Err(error) if error.is_duplicate_key() => return Ok(Outcome::REFUSED),
        completed => completed?,
    };
    let id = match returned.transpose()? {
        Some(None) => return Ok(Outcome::REFUSED),
        Some(Some(id)) => u32::try_from(id).ok(),
        None if completed.changed == 0 => return Ok(Outcome::REFUSED),
        None => u32::try_from(completed.last_insert_id).ok().filter(|id| *id > 0),
    };
    Ok(Outcome { id, ..Outcome::wrote(0) })
}

async fn read<C: Connection>(
    connection: &mut C,
    statement: &C::Statement,
    values: &[Value<'_>],
) -> Result<Outcome, RequestError> {
    Ok(Outcome::read(connection.execute(statement, values).await?.returned as u32))
}

fn columns(lines: &[Line]) -> (Vec<i32>, Vec<i32>) {
    lines.iter().map(|line| (line.product.cast_signed(), line.quantity.cast_signed())).unzip()
}

fn no_shop() -> SessionError {
    SessionError::refusal("the database holds no shop that underlay made; load one")
}

/// Compares the marker, identity and completeness, with the identity that is wanted.
fn require_shop(marker: Option<(String, bool)>, wanted: &str) -> Result<(), SessionError> {
    let (found, complete) = marker.ok_or_else(no_shop)?;
    if !complete {
        return Err(SessionError::refusal("the shop is incomplete; drop it and load it again"));
    }
    if found != wanted {
        return Err(SessionError::refusal(&format!(
            "the shop has identity {found}, but the workload needs {wanted} (different size, seed or version); drop \
             it and load it again"
        )));
    }
    Ok(())
}
