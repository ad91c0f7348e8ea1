//! Transactions as calls of the procedures in `sql/procedures.sql`: one round trip each.
//!
//! A call commits by itself: the commit is in flight from the moment it is sent.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Statement, Value};
use underlay_workload::tpcc::{NewOrder, Profile, Tpcc, Transaction};

use super::drawn_new_order_sql;
use super::session::{Failure, RequestError};
use crate::error::CommitState;
use crate::tpcc::{Outcome, SortedLines, selector};

/// The prepared calls.
pub struct Procedures {
    new_order: Statement,
    /// With lines that the database draws, for a database of so many warehouses.
    drawn_new_order: Option<(Statement, u32)>,
    payment: Statement,
    order_status: Statement,
    delivery: Statement,
    stock_level: Statement,
}

impl Procedures {
    /// Prepares the calls.
    pub async fn prepare(
        conn: &mut Conn,
        workload: &Tpcc,
    ) -> Result<Procedures, mysql_async::Error> {
        let drawn_new_order = match workload.profile {
            Profile::Specification => None,
            Profile::HammerdbLike => {
                Some((conn.prep(drawn_new_order_sql()).await?, workload.parameters.warehouses))
            }
        };
        Ok(Procedures {
            drawn_new_order,
            new_order: conn.prep("CALL new_order_transaction(?, ?, ?, ?)").await?,
            payment: conn.prep("CALL payment_transaction(?, ?, ?, ?, ?, ?, ?)").await?,
            order_status: conn.prep("CALL order_status_transaction(?, ?, ?, ?)").await?,
            delivery: conn.prep("CALL delivery_transaction(?, ?)").await?,
            stock_level: conn.prep("CALL stock_level_transaction(?, ?, ?)").await?,
        })
    }

    /// Carries out one transaction.
    pub async fn run(
        &self,
        conn: &mut Conn,
        transaction: &Transaction,
    ) -> Result<Outcome, Failure> {
        let (call, parameters): (&Statement, Params) = match transaction {
            Transaction::NewOrder(order) => self.new_order(order),
            Transaction::Payment(payment) => {
                let (id, last) = selector(&payment.customer);
                (
                    &self.payment,
                    (
                        payment.warehouse,
                        payment.district,
                        payment.customer_warehouse,
                        payment.customer_district,
                        id,
                        last,
                        decimal(payment.amount_cents),
                    )
                        .into(),
                )
            }
            Transaction::OrderStatus(status) => {
                let (id, last) = selector(&status.customer);
                (&self.order_status, (status.warehouse, status.district, id, last).into())
            }
            Transaction::Delivery(delivery) => {
                (&self.delivery, (delivery.warehouse, delivery.carrier).into())
            }
            Transaction::StockLevel(level) => {
                (&self.stock_level, (level.warehouse, level.district, level.threshold).into())
            }
        };
        let failed = |error| Failure { error, commit: CommitState::InFlight };
        // Returns when the server said that the call, and with it the commit, is done.
        let row: Row = conn
            .exec_first(call, parameters)
            .await
            .map_err(|error| failed(error.into()))?
            .ok_or_else(|| failed(RequestError::NoRow))?;
        Ok(match transaction {
            Transaction::NewOrder(_) => match number(&row, 0) {
                Some(order_id) => Outcome { order_id: Some(order_id), ..Outcome::COMMITTED },
                None => Outcome::ROLLED_BACK,
            },
            Transaction::Delivery(_) => {
                Outcome { skipped_deliveries: number(&row, 1).unwrap_or(0), ..Outcome::COMMITTED }
            }
            _ => Outcome::COMMITTED,
        })
    }
}

impl Procedures {
    fn new_order(&self, order: &NewOrder) -> (&Statement, Params) {
        let (home, district, customer) = (order.warehouse, order.district, order.customer);
        match &self.drawn_new_order {
            Some((drawn, warehouses)) => {
                let count = order.lines.len();
                (drawn, (home, district, customer, home, warehouses, count).into())
            }
            None => (&self.new_order, (home, district, customer, lines_text(order)).into()),
        }
    }
}

/// An integer of an answer; none where it is null.
fn number(row: &Row, index: usize) -> Option<u32> {
    match row.as_ref(index) {
        Some(Value::Int(value)) => u32::try_from(*value).ok(),
        Some(Value::UInt(value)) => u32::try_from(*value).ok(),
        _ => None,
    }
}

/// An amount as the decimal text that the server takes.
pub(super) fn decimal(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let magnitude = cents.unsigned_abs();
    format!("{sign}{}.{:02}", magnitude / 100, magnitude % 100)
}

/// The lines of an order in 20 digits each: number, item, supplying warehouse, quantity.
fn lines_text(order: &NewOrder) -> String {
    use std::fmt::Write as _;
    let lines = SortedLines::of(order);
    let mut text = String::with_capacity(20 * lines.items.len());
    for index in 0..lines.items.len() {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{:02}{:06}{:010}{:02}",
            lines.numbers[index],
            lines.items[index],
            lines.supplies[index],
            lines.quantities[index]
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use underlay_workload::tpcc::{NewOrder, OrderLineInput};

    use super::{decimal, lines_text};

    #[test]
    fn amounts_are_exact() {
        assert_eq!(decimal(500_000), "5000.00");
        assert_eq!(decimal(107), "1.07");
        assert_eq!(decimal(-5), "-0.05");
    }

    #[test]
    fn lines_are_sorted_and_of_fixed_places() {
        let line = |item, supply_warehouse| OrderLineInput { item, supply_warehouse, quantity: 10 };
        let order = NewOrder {
            warehouse: 2,
            district: 1,
            customer: 1,
            lines: vec![line(100_001, 2), line(3, 1)],
        };
        assert_eq!(lines_text(&order), "0200000300000000011001100001000000000210");
    }
}
