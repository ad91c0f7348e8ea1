//! Transactions as calls of functions or procedures in the database: one round trip each.
//!
//! A call commits by itself: the commit is in flight from the moment it is sent, and its answer comes after the commit.

use underlay_workload::tpcc::{NewOrder, Profile, Tpcc, Transaction};

use super::Outcome;
use super::failure::Failure;
use super::inputs::{SortedLines, int, selector};
use super::sql::{Calls, dialect};
use crate::connection::Value::{Cents, Int, Ints};
use crate::connection::{Connection, RequestError, Row};
use crate::error::CommitState;

/// The code of the intended rollback, where the function raises an error.
const INVALID_ITEM: &str = "UL001";

/// The prepared calls.
pub(super) struct Procedures<C: Connection> {
    calls: Calls<C::Statement>,
    /// New-Order with lines that the database draws, for a database of so many warehouses.
    drawn_new_order: Option<(C::Statement, i32)>,
}

impl<C: Connection> Procedures<C> {
    /// Prepares the calls.
    pub async fn prepare(
        connection: &mut C,
        workload: &Tpcc,
    ) -> Result<Procedures<C>, RequestError> {
        let dialect = dialect(C::ENGINE);
        let drawn_new_order = match workload.profile {
            Profile::Specification => None,
            Profile::HammerdbLike => {
                let statement = connection.prepare(dialect.drawn_new_order).await?;
                Some((statement, int(workload.parameters.warehouses)))
            }
        };
        let calls = &dialect.calls;
        Ok(Procedures {
            drawn_new_order,
            calls: Calls {
                new_order: connection.prepare(calls.new_order).await?,
                payment: connection.prepare(calls.payment).await?,
                order_status: connection.prepare(calls.order_status).await?,
                delivery: connection.prepare(calls.delivery).await?,
                stock_level: connection.prepare(calls.stock_level).await?,
            },
        })
    }

    /// Carries out one transaction.
    pub async fn run(
        &self,
        connection: &mut C,
        transaction: &Transaction,
    ) -> Result<Outcome, Failure> {
        let calls = &self.calls;
        let committed = |_: C::Row<'_>| Ok(Outcome::COMMITTED);
        let outcome = match transaction {
            Transaction::NewOrder(order) => self.new_order(connection, order).await,
            Transaction::Payment(payment) => {
                let [id, last] = selector(&payment.customer);
                let values = [
                    Int(int(payment.warehouse)),
                    Int(int(payment.district)),
                    Int(int(payment.customer_warehouse)),
                    Int(int(payment.customer_district)),
                    id,
                    last,
                    Cents(payment.amount_cents),
                ];
                connection.row(&calls.payment, &values, committed).await
            }
            Transaction::OrderStatus(status) => {
                let [id, last] = selector(&status.customer);
                let values = [Int(int(status.warehouse)), Int(int(status.district)), id, last];
                connection.row(&calls.order_status, &values, committed).await
            }
            Transaction::Delivery(delivery) => {
                let values = [Int(int(delivery.warehouse)), Int(int(delivery.carrier))];
                let read = |row: C::Row<'_>| {
                    Ok(Outcome { skipped_deliveries: row.number(1)?, ..Outcome::COMMITTED })
                };
                connection.row(&calls.delivery, &values, read).await
            }
            Transaction::StockLevel(level) => {
                let values =
                    [int(level.warehouse), int(level.district), int(level.threshold)].map(Int);
                connection.row(&calls.stock_level, &values, committed).await
            }
        };
        outcome.map_err(|error| Failure { error, commit: CommitState::InFlight })
    }

    async fn new_order(
        &self,
        connection: &mut C,
        order: &NewOrder,
    ) -> Result<Outcome, RequestError> {
        let [warehouse, district, customer] =
            [order.warehouse, order.district, order.customer].map(|number| Int(int(number)));
        let answer = match &self.drawn_new_order {
            Some((drawn, warehouses)) => {
                let count = Int(int(order.lines.len() as u32));
                let values = [warehouse, district, customer, count, Int(*warehouses)];
                connection.row(drawn, &values, |row| numbered(&row)).await
            }
            None => {
                let lines = SortedLines::of(order);
                let values = [
                    warehouse,
                    district,
                    customer,
                    Ints(&lines.numbers),
                    Ints(&lines.items),
                    Ints(&lines.supplies),
                    Ints(&lines.quantities),
                    Ints(&lines.rounds),
                ];
                connection.row(&self.calls.new_order, &values, |row| numbered(&row)).await
            }
        };
        match answer {
            Err(error) if error.sqlstate() == Some(INVALID_ITEM) => Ok(Outcome::ROLLED_BACK),
            answer => answer,
        }
    }
}

/// An order that has a number was committed, another was undone.
fn numbered(row: &impl Row) -> Result<Outcome, RequestError> {
    if row.integer(0)?.is_none() {
        return Ok(Outcome::ROLLED_BACK);
    }
    Ok(Outcome { order_id: Some(row.number(0)?), ..Outcome::COMMITTED })
}
