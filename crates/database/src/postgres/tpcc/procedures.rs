//! Transactions as calls of the functions in `sql/procedures.sql`: one round trip each.
//!
//! A call is a transaction by itself: the commit is in flight from the moment it is sent.

use bytes::Buf;
use std::error::Error;
use tokio_postgres::Statement;
use tokio_postgres::types::{FromSql, Type};
use underlay_workload::tpcc::{NewOrder, Profile, Tpcc, Transaction};

use super::drawn_new_order_sql;
use super::session::{Failure, is_intended_rollback};
use crate::error::CommitState;
use crate::postgres::link::{Link, RequestError};
use crate::postgres::numeric::Cents;
use crate::tpcc::{Outcome, SortedLines, int, selector};

/// The prepared calls.
pub struct Procedures {
    new_order: Statement,
    /// With lines that the database draws, for a database of so many warehouses.
    drawn_new_order: Option<(Statement, i32)>,
    payment: Statement,
    order_status: Statement,
    delivery: Statement,
    stock_level: Statement,
}

impl Procedures {
    /// Prepares the calls.
    pub async fn prepare(link: &mut Link, workload: &Tpcc) -> Result<Procedures, RequestError> {
        const INT: Type = Type::INT4;
        let drawn_new_order = match workload.profile {
            Profile::Specification => None,
            Profile::HammerdbLike => {
                let statement = link.prepare(drawn_new_order_sql(), &[INT; 5]).await?;
                Some((statement, int(workload.parameters.warehouses)))
            }
        };
        Ok(Procedures {
            drawn_new_order,
            new_order: link
                .prepare(
                    "SELECT tpcc.new_order_transaction($1, $2, $3, $4, $5, $6, $7, $8)",
                    &[
                        INT,
                        INT,
                        INT,
                        Type::INT2_ARRAY,
                        Type::INT4_ARRAY,
                        Type::INT4_ARRAY,
                        Type::INT2_ARRAY,
                        Type::INT2_ARRAY,
                    ],
                )
                .await?,
            payment: link
                .prepare(
                    "SELECT tpcc.payment_transaction($1, $2, $3, $4, $5, $6, $7)",
                    &[INT, INT, INT, INT, INT, Type::VARCHAR, Type::NUMERIC],
                )
                .await?,
            order_status: link
                .prepare(
                    "SELECT tpcc.order_status_transaction($1, $2, $3, $4)",
                    &[INT, INT, INT, Type::VARCHAR],
                )
                .await?,
            delivery: link.prepare("SELECT tpcc.delivery_transaction($1, $2)", &[INT, INT]).await?,
            stock_level: link
                .prepare("SELECT tpcc.stock_level_transaction($1, $2, $3)", &[INT, INT, INT])
                .await?,
        })
    }

    /// Carries out one transaction.
    pub async fn run(
        &self,
        link: &mut Link,
        transaction: &Transaction,
    ) -> Result<Outcome, Failure> {
        let result = match transaction {
            Transaction::NewOrder(order) => self.new_order(link, order).await,
            Transaction::Payment(payment) => {
                let (id, last) = selector(&payment.customer);
                link.row(
                    &self.payment,
                    &[
                        &int(payment.warehouse),
                        &int(payment.district),
                        &int(payment.customer_warehouse),
                        &int(payment.customer_district),
                        &id,
                        &last,
                        &Cents(payment.amount_cents),
                    ],
                )
                .await
                .map(|_| Outcome::COMMITTED)
            }
            Transaction::OrderStatus(status) => {
                let (id, last) = selector(&status.customer);
                link.row(
                    &self.order_status,
                    &[&int(status.warehouse), &int(status.district), &id, &last],
                )
                .await
                .map(|_| Outcome::COMMITTED)
            }
            Transaction::Delivery(delivery) => link
                .row(&self.delivery, &[&int(delivery.warehouse), &int(delivery.carrier)])
                .await
                .and_then(|row| Ok(row.try_get(0)?))
                .map(|Integers([_, skipped])| Outcome {
                    skipped_deliveries: skipped.max(0).cast_unsigned(),
                    ..Outcome::COMMITTED
                }),
            Transaction::StockLevel(level) => link
                .row(
                    &self.stock_level,
                    &[&int(level.warehouse), &int(level.district), &int(level.threshold)],
                )
                .await
                .map(|_| Outcome::COMMITTED),
        };
        result.map_err(|error| Failure { error, commit: CommitState::InFlight })
    }

    async fn new_order(&self, link: &mut Link, order: &NewOrder) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(order.warehouse), int(order.district));
        let customer = int(order.customer);
        let answer = match &self.drawn_new_order {
            Some((statement, warehouses)) => {
                let count = int(order.lines.len() as u32);
                link.row(statement, &[&warehouse, &district, &customer, &count, warehouses]).await
            }
            None => {
                let lines = SortedLines::of(order);
                link.row(
                    &self.new_order,
                    &[
                        &warehouse,
                        &district,
                        &customer,
                        &lines.numbers,
                        &lines.items,
                        &lines.supplies,
                        &lines.quantities,
                        &lines.rounds,
                    ],
                )
                .await
            }
        };
        match answer {
            Ok(row) => {
                let Integers([order_id]) = row.try_get(0)?;
                Ok(Outcome { order_id: Some(order_id.cast_unsigned()), ..Outcome::COMMITTED })
            }
            Err(error) if is_intended_rollback(&error) => Ok(Outcome::ROLLED_BACK),
            Err(error) => Err(error),
        }
    }
}

/// The first `N` integer fields of a composite value, or a single integer.
struct Integers<const N: usize>([i32; N]);

impl<'a, const N: usize> FromSql<'a> for Integers<N> {
    fn from_sql(kind: &Type, mut raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let mut values = [0; N];
        if *kind == Type::INT4 {
            values[0] = raw.try_get_i32()?;
            return Ok(Integers(values));
        }
        // record_send: number of fields, then per field its type, its length and its bytes.
        let fields = raw.try_get_i32()?;
        if usize::try_from(fields)? < N {
            return Err(format!("a composite of {fields} fields, {N} are needed").into());
        }
        for value in &mut values {
            let (field_type, length) = (raw.try_get_u32()?, raw.try_get_i32()?);
            if field_type != Type::INT4.oid() || length != 4 {
                return Err(format!(
                    "field of type {field_type} and length {length}, not an integer"
                )
                .into());
            }
            *value = raw.try_get_i32()?;
        }
        Ok(Integers(values))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::RECORD || *kind == Type::INT4
    }
}
