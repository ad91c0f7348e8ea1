//! A session: one connection that carries out the steps of visits, one round trip each.
//!
//! Every step is a transaction by itself: the commit is in flight from the moment it is sent. What searches return is
//! received and counted, not looked at. The session neither retries nor reconnects; the driver does.

use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use underlay_workload::dvdstore::{Line, Outcome, Parameters, Step, Transaction};

use super::population_identity;
use super::statements::Statements;
use crate::dvdstore::{PASSWORD, Value, customer_values, net_cents};
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::postgres::link::{Link, RequestError};
use crate::target::Target;

/// The settings of a session; part of the workload's identity. See the session of TPC-C for the reasons.
pub(super) const SETTINGS: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";

/// The server's code for an order that is not in stock; raised by `sql/functions.sql`.
const NOT_IN_STOCK: &str = "UL001";

type Inputs<'a> = &'a [&'a (dyn ToSql + Sync)];

/// One connection with everything prepared.
pub struct Session {
    link: Link,
    statements: Statements,
    /// The connection ended.
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
        let mut link = Link::connect(target).await.map_err(|error| not_sent(error.into()))?;
        require_shop(&mut link, parameters).await?;
        link.batch(SETTINGS).await.map_err(not_sent)?;
        let statements = Statements::prepare(&mut link).await.map_err(not_sent)?;
        link.hand_in_counts().await.map_err(not_sent)?;
        Ok(Session { link, statements, lost: false })
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
        let result = self.attempt(transaction).await.map_err(|error| failed(error, commit));
        self.lost = result.as_ref().is_err_and(|error| error.class == ErrorClass::ConnectionLost);
        result
    }

    async fn attempt(&mut self, transaction: &Transaction) -> Result<Outcome, RequestError> {
        let Session { link, statements, .. } = self;
        match transaction {
            Transaction::Login { customer } => {
                let username = format!("user{customer}");
                let rows = link.rows(&statements.login, &[&username, &PASSWORD]).await?;
                let id: i32 = rows.first().ok_or(RequestError::NoRow)?.try_get(0)?;
                Ok(Outcome { rows_read: rows.len() as u32, ..Outcome::wrote(id.cast_unsigned()) })
            }
            Transaction::NewCustomer { username, draw } => {
                let values = customer_values(*draw, username);
                let inputs: Vec<&(dyn ToSql + Sync)> = values
                    .iter()
                    .map(|value| match value {
                        Value::Integer(number) => number as &(dyn ToSql + Sync),
                        Value::Text(text) => text,
                    })
                    .collect();
                insert(link, &statements.new_customer, &inputs).await
            }
            Transaction::NewMember { customer, level } => {
                insert(link, &statements.new_member, &[&int(*customer), &int(*level)]).await
            }
            Transaction::BrowseCategory { category, batch } => {
                let inputs: Inputs<'_> = &[&int(*category), &i64::from(*batch)];
                read(link, &statements.browse_category, inputs).await
            }
            Transaction::Search { step, text, batch, depth } => {
                search(link, statements, *step, text, [i64::from(*batch), i64::from(*depth)]).await
            }
            Transaction::Reviews { step, product, stars, batch } => {
                let (product, stars, batch) = (int(*product), int(*stars), i64::from(*batch));
                match step {
                    Step::ProductReviewsByStars => {
                        read(link, &statements.reviews_by_stars, &[&product, &stars, &batch]).await
                    }
                    Step::ProductReviewsByDate => {
                        read(link, &statements.reviews_by_date, &[&product, &batch]).await
                    }
                    _ => read(link, &statements.product_reviews, &[&product, &batch]).await,
                }
            }
            Transaction::NewReview { product, customer, stars, summary, text } => {
                let inputs: Inputs<'_> =
                    &[&int(*product), &int(*stars), &int(*customer), summary, text];
                insert(link, &statements.new_review, inputs).await
            }
            Transaction::RateReview { review, customer, helpfulness } => {
                let inputs: Inputs<'_> = &[&int(*review), &int(*customer), &int(*helpfulness)];
                insert(link, &statements.rate_review, inputs).await
            }
            Transaction::Prices { lines } => prices(link, &statements.prices, lines).await,
            Transaction::Purchase { customer, lines, net_cents, tax_cents } => {
                let (products, quantities) = columns(lines);
                let inputs: Inputs<'_> =
                    &[&int(*customer), net_cents, tax_cents, &products, &quantities];
                match insert(link, &statements.purchase, inputs).await {
                    Err(error) if is_not_in_stock(&error) => Ok(Outcome::REFUSED),
                    answer => answer,
                }
            }
        }
    }
}

/// Writes a row; none is returned where it was there already.
async fn insert(
    link: &mut Link,
    statement: &Statement,
    inputs: Inputs<'_>,
) -> Result<Outcome, RequestError> {
    match link.row(statement, inputs).await {
        Ok(row) => Ok(Outcome::wrote(row.try_get::<_, i32>(0)?.cast_unsigned())),
        Err(RequestError::NoRow) => Ok(Outcome::REFUSED),
        Err(error) => Err(error),
    }
}

async fn read(
    link: &mut Link,
    statement: &Statement,
    inputs: Inputs<'_>,
) -> Result<Outcome, RequestError> {
    let rows = link.execute(statement, inputs).await?;
    Ok(Outcome::read(u32::try_from(rows).unwrap_or(u32::MAX)))
}

async fn search(
    link: &mut Link,
    statements: &Statements,
    step: Step,
    text: &str,
    [batch, depth]: [i64; 2],
) -> Result<Outcome, RequestError> {
    match step {
        Step::BrowseActor => read(link, &statements.browse_actor, &[&text, &batch]).await,
        Step::BrowseTitle => read(link, &statements.browse_title, &[&text, &batch]).await,
        Step::ReviewsByActor => {
            read(link, &statements.reviews_by_actor, &[&text, &depth, &batch]).await
        }
        _ => read(link, &statements.reviews_by_title, &[&text, &depth, &batch]).await,
    }
}

async fn prices(
    link: &mut Link,
    statement: &Statement,
    lines: &[Line],
) -> Result<Outcome, RequestError> {
    let (products, _) = columns(lines);
    let rows = link.rows(statement, &[&products]).await?;
    let prices: Vec<(i32, i64)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    let net_cents = net_cents(lines, &prices).ok_or(RequestError::NoRow)?;
    Ok(Outcome { net_cents, ..Outcome::read(rows.len() as u32) })
}

fn columns(lines: &[Line]) -> (Vec<i32>, Vec<i32>) {
    lines.iter().map(|line| (int(line.product), int(line.quantity))).unzip()
}

/// Ids are below 2^31 by the limits of sizes.
fn int(value: u32) -> i32 {
    value.cast_signed()
}

fn is_not_in_stock(error: &RequestError) -> bool {
    error.code().is_some_and(|code| code.code() == NOT_IN_STOCK)
}

/// An error of a request that commits nothing.
fn not_sent(error: RequestError) -> SessionError {
    failed(error, CommitState::NotSent)
}

fn failed(error: RequestError, commit: CommitState) -> SessionError {
    match error {
        RequestError::Postgres(error) => SessionError::from_postgres(&error, commit),
        RequestError::NotSent(error) => SessionError::from_postgres(&error, CommitState::NotSent),
        RequestError::NoRow => SessionError::no_row(),
    }
}

/// Compares the marker with the identity that a shop of these parameters has.
async fn require_shop(link: &mut Link, parameters: &Parameters) -> Result<(), SessionError> {
    let marker =
        link.prepare("SELECT identity, complete FROM dvdstore.underlay_dvdstore", &[]).await;
    let marker = match marker {
        Err(error)
            if error.code().is_some_and(|code| {
                [&SqlState::UNDEFINED_TABLE, &SqlState::INVALID_SCHEMA_NAME].contains(&code)
            }) =>
        {
            return Err(SessionError::refusal(
                "the database holds no shop that underlay made; load one",
            ));
        }
        marker => marker.map_err(not_sent)?,
    };
    let rows = link.rows(&marker, &[]).await.map_err(not_sent)?;
    let row = rows.first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose();
    let (found, complete): (String, bool) = row.map_err(not_sent)?.unwrap_or_default();
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
