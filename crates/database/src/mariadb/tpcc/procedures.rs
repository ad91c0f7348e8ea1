//! Transactions as calls of the procedures in `sql/procedures.sql`: one round trip each.
//!
//! A call commits by itself: the commit is in flight from the moment it is sent.

use underlay_workload::tpcc::{NewOrder, Profile, Tpcc, Transaction};

use super::drawn_new_order_sql;
use super::session::Failure;
use crate::error::CommitState;
use crate::mariadb::direct::Parameter::{self, Cents, Int, Null, Text};
use crate::mariadb::direct::Row;
use crate::mariadb::error::RequestError;
use crate::mariadb::link::{Link, Prepared};
use crate::tpcc::{Outcome, SortedLines, int, selector};

/// The prepared calls.
pub struct Procedures {
    new_order: Prepared,
    /// With lines that the database draws, for a database of so many warehouses.
    drawn_new_order: Option<(Prepared, i32)>,
    payment: Prepared,
    order_status: Prepared,
    delivery: Prepared,
    stock_level: Prepared,
}

impl Procedures {
    /// Prepares the calls.
    pub async fn prepare(link: &mut Link, workload: &Tpcc) -> Result<Procedures, RequestError> {
        let drawn_new_order = match workload.profile {
            Profile::Specification => None,
            Profile::HammerdbLike => {
                let statement = link.prepare(drawn_new_order_sql()).await?;
                Some((statement, int(workload.parameters.warehouses)))
            }
        };
        Ok(Procedures {
            drawn_new_order,
            new_order: link.prepare("CALL new_order_transaction(?, ?, ?, ?)").await?,
            payment: link.prepare("CALL payment_transaction(?, ?, ?, ?, ?, ?, ?)").await?,
            order_status: link.prepare("CALL order_status_transaction(?, ?, ?, ?)").await?,
            delivery: link.prepare("CALL delivery_transaction(?, ?)").await?,
            stock_level: link.prepare("CALL stock_level_transaction(?, ?, ?)").await?,
        })
    }

    /// Carries out one transaction.
    pub async fn run(
        &self,
        link: &mut Link,
        transaction: &Transaction,
    ) -> Result<Outcome, Failure> {
        // A call ends when the server said that it, and with it the commit, is done.
        let outcome = match transaction {
            Transaction::NewOrder(order) => self.new_order(link, order).await,
            Transaction::Payment(payment) => {
                let (id, last) = customer(selector(&payment.customer));
                let values = [
                    Int(int(payment.warehouse)),
                    Int(int(payment.district)),
                    Int(int(payment.customer_warehouse)),
                    Int(int(payment.customer_district)),
                    id,
                    last,
                    Cents(payment.amount_cents),
                ];
                link.row(&self.payment, &values, |_| Ok(Outcome::COMMITTED)).await
            }
            Transaction::OrderStatus(status) => {
                let (id, last) = customer(selector(&status.customer));
                let values = [Int(int(status.warehouse)), Int(int(status.district)), id, last];
                link.row(&self.order_status, &values, |_| Ok(Outcome::COMMITTED)).await
            }
            Transaction::Delivery(delivery) => {
                let values = [Int(int(delivery.warehouse)), Int(int(delivery.carrier))];
                link.row(&self.delivery, &values, |row| {
                    Ok(Outcome { skipped_deliveries: row.number(1)?, ..Outcome::COMMITTED })
                })
                .await
            }
            Transaction::StockLevel(level) => {
                let values =
                    [int(level.warehouse), int(level.district), int(level.threshold)].map(Int);
                link.row(&self.stock_level, &values, |_| Ok(Outcome::COMMITTED)).await
            }
        };
        outcome.map_err(|error| Failure { error, commit: CommitState::InFlight })
    }

    async fn new_order(&self, link: &mut Link, order: &NewOrder) -> Result<Outcome, RequestError> {
        let (home, district) = (Int(int(order.warehouse)), Int(int(order.district)));
        let customer = Int(int(order.customer));
        match &self.drawn_new_order {
            Some((drawn, warehouses)) => {
                let count = Int(int(order.lines.len() as u32));
                let values = [home, district, customer, home, Int(*warehouses), count];
                link.row(drawn, &values, numbered).await
            }
            None => {
                let lines = lines_text(order);
                let values = [home, district, customer, Text(&lines)];
                link.row(&self.new_order, &values, numbered).await
            }
        }
    }
}

/// An order that has a number was committed, another was undone.
fn numbered(row: Row<'_>) -> Result<Outcome, RequestError> {
    if row.integer(0)?.is_none() {
        return Ok(Outcome::ROLLED_BACK);
    }
    Ok(Outcome { order_id: Some(row.number(0)?), ..Outcome::COMMITTED })
}

fn customer<'a>((id, last): (Option<i32>, Option<&'a str>)) -> (Parameter<'a>, Parameter<'a>) {
    (id.map_or(Null, Int), last.map_or(Null, |last| Text(last.as_bytes())))
}

/// The lines of an order in 20 digits each: number, item, supplying warehouse, quantity.
fn lines_text(order: &NewOrder) -> Vec<u8> {
    let lines = SortedLines::of(order);
    let mut text = Vec::with_capacity(20 * lines.items.len());
    for index in 0..lines.items.len() {
        push_digits(&mut text, i32::from(lines.numbers[index]), 2);
        push_digits(&mut text, lines.items[index], 6);
        push_digits(&mut text, lines.supplies[index], 10);
        push_digits(&mut text, i32::from(lines.quantities[index]), 2);
    }
    text
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

#[cfg(test)]
mod tests {
    use underlay_workload::tpcc::{NewOrder, OrderLineInput};

    use super::lines_text;

    #[test]
    fn lines_are_sorted_and_of_fixed_places() {
        let line = |item, supply_warehouse| OrderLineInput { item, supply_warehouse, quantity: 10 };
        let order = NewOrder {
            warehouse: 2,
            district: 1,
            customer: 1,
            lines: vec![line(100_001, 2), line(3, 1)],
        };
        let text = String::from_utf8(lines_text(&order)).unwrap();
        assert_eq!(text, "0200000300000000011001100001000000000210");
    }
}
