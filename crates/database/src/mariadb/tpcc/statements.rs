//! Transactions statement by statement: what a chatty application sends. One round trip each, nothing
//! pipelined.
//!
//! The effects are those of the procedures in `sql/procedures.sql`; a test runs both over the same inputs
//! and compares the databases. This mode exists to show what the round trips cost.
//!
//! Statements are texts in one table, because all of them belong to the workload's identity. Those with a
//! list of values (items, order lines) are sent as text each time: a prepared statement has a fixed
//! number of parameters.

use std::fmt::Write as _;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Params, Statement};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction,
};

use super::procedures::decimal;
use super::session::{Failure, RequestError};
use crate::error::CommitState;
use crate::tpcc::{Outcome, SortedLines, int, selector};

const DISTRICTS: u32 = 10;

/// Sent with the items' numbers and a closing parenthesis.
const ITEMS: &str =
    "SELECT i_id, cast(i_price * 100 AS signed), i_name, i_data FROM item WHERE i_id IN (";
/// Sent with the lines' values.
const INSERT_LINES: &str = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_quantity, \
    ol_i_id, ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info) VALUES ";
const BEGIN: &str = "START TRANSACTION";
const BEGIN_SNAPSHOT: [&str; 2] =
    ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION READ ONLY"];
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Declares the prepared statements: a name, a text.
macro_rules! statements {
    ($($name:ident = $text:expr;)+) => {
        /// All prepared statements.
        pub struct Statements { $($name: Statement,)+ }

        impl Statements {
            /// Prepares all statements.
            pub async fn prepare(conn: &mut Conn) -> Result<Statements, mysql_async::Error> {
                Ok(Statements { $($name: conn.prep($text).await?,)+ })
            }
        }

        /// The texts of all statements, for the workload's identity.
        pub fn texts() -> Vec<&'static str> {
            vec![
                BEGIN, BEGIN_SNAPSHOT[0], BEGIN_SNAPSHOT[1], COMMIT, ROLLBACK, ITEMS, INSERT_LINES,
                $($text,)+
            ]
        }
    };
}

statements! {
    district_next = "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE";
    district_advance = "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?";
    warehouse_and_customer = "SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer \
        WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?";
    insert_order = "INSERT INTO orders \
        (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, now(), NULL, ?, ?)";
    insert_new_order = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)";
    stock = "SELECT s_quantity, s_data LIKE '%ORIGINAL%', \
          CASE ? WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
                 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
                 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 \
                 ELSE s_dist_10 END \
        FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    take_stock = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
          s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";

    namesakes = "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
        ORDER BY c_first, c_id";
    warehouse = "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?";
    pay_warehouse = "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
    district = "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
        WHERE d_w_id = ? AND d_id = ?";
    pay_district = "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
    pay_customer = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
          c_payment_cnt = c_payment_cnt + 1, \
          c_data = CASE WHEN c_credit = 'BC' \
                        THEN left(concat(concat_ws(' ', c_id, c_d_id, c_w_id, ?, ?, ?), '|', c_data), 500) \
                        ELSE c_data END \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    customer = "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
          c_since, c_credit, c_credit_lim, c_discount, c_balance, \
          CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    insert_history = "INSERT INTO history \
        (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES (?, ?, ?, ?, ?, now(), ?, ?)";

    customer_status = "SELECT c_first, c_middle, c_last, c_balance FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    latest_order = "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
        WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
    order_lines = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? ORDER BY ol_number";

    oldest_new_order = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
        ORDER BY no_o_id LIMIT 1 FOR UPDATE";
    delete_new_order = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    order_customer = "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    carry_order = "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    deliver_lines = "UPDATE order_line SET ol_delivery_d = now() \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    lines_amount = "SELECT cast(sum(ol_amount) * 100 AS signed) FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    credit_customer = "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";

    district_peek = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    low_stock = "SELECT STRAIGHT_JOIN count(DISTINCT ol_i_id) FROM order_line \
        JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < ? \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ?";
}

/// A connection and what is asked of it.
struct Link<'a>(&'a mut Conn);

impl Link<'_> {
    async fn row<T: FromRow + Send + 'static>(
        &mut self,
        statement: &Statement,
        parameters: impl Into<Params> + Send,
    ) -> Result<T, RequestError> {
        self.0.exec_first(statement, parameters.into()).await?.ok_or(RequestError::NoRow)
    }

    async fn rows<T: FromRow + Send + 'static>(
        &mut self,
        statement: &Statement,
        parameters: impl Into<Params> + Send,
    ) -> Result<Vec<T>, RequestError> {
        Ok(self.0.exec(statement, parameters.into()).await?)
    }

    /// A statement that changes one row, or several where `several`.
    async fn change(
        &mut self,
        statement: &Statement,
        parameters: impl Into<Params> + Send,
    ) -> Result<(), RequestError> {
        self.0.exec_drop(statement, parameters.into()).await?;
        // Rows found, whether or not they changed: see the connection's options.
        if self.0.affected_rows() == 0 { Err(RequestError::NoRow) } else { Ok(()) }
    }

    async fn text(&mut self, sql: &str) -> Result<(), RequestError> {
        Ok(self.0.query_drop(sql).await?)
    }
}

impl Statements {
    /// Carries out one transaction.
    pub async fn run(
        &self,
        conn: &mut Conn,
        transaction: &Transaction,
    ) -> Result<Outcome, Failure> {
        let link = &mut Link(conn);
        let done = match transaction {
            Transaction::NewOrder(order) => self.new_order(link, order).await,
            Transaction::Payment(payment) => self.payment(link, payment).await,
            Transaction::OrderStatus(status) => self.order_status(link, status).await,
            Transaction::Delivery(delivery) => self.delivery(link, delivery).await,
            Transaction::StockLevel(level) => self.stock_level(link, level).await,
        };
        let outcome = done.map_err(|error| Failure { error, commit: CommitState::NotSent })?;
        let (end, commit) = match outcome.committed {
            true => (COMMIT, CommitState::InFlight),
            false => (ROLLBACK, CommitState::NotSent),
        };
        match link.text(end).await {
            Ok(()) => Ok(outcome),
            Err(error) => Err(Failure { error, commit }),
        }
    }

    async fn new_order(
        &self,
        link: &mut Link<'_>,
        order: &NewOrder,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district, customer) = (order.warehouse, order.district, order.customer);
        let lines = SortedLines::of(order);
        link.text(BEGIN).await?;
        let (order_id, _tax): (u32, String) =
            link.row(&self.district_next, (warehouse, district)).await?;
        link.change(&self.district_advance, (warehouse, district)).await?;
        let _terms: (String, String, String, String) =
            link.row(&self.warehouse_and_customer, (warehouse, district, customer)).await?;
        let all_local = u8::from(lines.supplies.iter().all(|supply| *supply == int(warehouse)));
        let count = lines.items.len() as u32;
        let values = (warehouse, district, order_id, customer, count, all_local);
        link.change(&self.insert_order, values).await?;
        link.change(&self.insert_new_order, (warehouse, district, order_id)).await?;
        let prices = items(link, &lines.items).await?;
        let mut values = String::new();
        for index in 0..lines.items.len() {
            // The 1 % of orders with an item that does not exist: all their valid lines are carried out
            // before the transaction is undone, as clause 2.4.2.3 wants.
            let item = lines.items[index];
            let Some((_, cents, ..)) = prices.iter().find(|(id, ..)| *id == item) else { continue };
            let (supply, quantity) = (lines.supplies[index], i64::from(lines.quantities[index]));
            let (in_stock, _original, dist_info): (i64, bool, String) =
                link.row(&self.stock, (district, supply, item)).await?;
            let left = in_stock - quantity + if in_stock >= quantity + 10 { 0 } else { 91 };
            let remote = u8::from(supply != int(warehouse));
            link.change(&self.take_stock, (left, quantity, remote, supply, item)).await?;
            // Texts of the population are letters and digits; what another has put there is quoted.
            let _ = write!(
                values,
                "{}({warehouse}, {district}, {order_id}, {}, {quantity}, {item}, {supply}, NULL, {}, '{}')",
                if values.is_empty() { "" } else { ", " },
                lines.numbers[index],
                decimal(cents * quantity),
                dist_info.replace('\\', "\\\\").replace('\'', "''"),
            );
        }
        link.text(&format!("{INSERT_LINES}{values}")).await?;
        if prices.len() < distinct(&lines.items) {
            return Ok(Outcome::ROLLED_BACK);
        }
        Ok(Outcome { order_id: Some(order_id), ..Outcome::COMMITTED })
    }

    /// The customer's number, looked up when named by last name: the middle one, rounded up.
    async fn customer(
        &self,
        link: &mut Link<'_>,
        warehouse: u32,
        district: u32,
        customer: &CustomerSelector,
    ) -> Result<i32, RequestError> {
        match selector(customer) {
            (Some(id), _) => Ok(id),
            (None, last) => {
                let ids: Vec<i32> = link.rows(&self.namesakes, (warehouse, district, last)).await?;
                ids.len().checked_sub(1).map(|top| ids[top / 2]).ok_or(RequestError::NoRow)
            }
        }
    }

    async fn payment(
        &self,
        link: &mut Link<'_>,
        payment: &Payment,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (payment.warehouse, payment.district);
        let (c_warehouse, c_district) = (payment.customer_warehouse, payment.customer_district);
        let amount = decimal(payment.amount_cents);
        link.text(BEGIN).await?;
        let customer = self.customer(link, c_warehouse, c_district, &payment.customer).await?;
        link.change(&self.pay_warehouse, (&amount, warehouse)).await?;
        let (w_name, ..): (String, String, String, String, String, String) =
            link.row(&self.warehouse, (warehouse,)).await?;
        link.change(&self.pay_district, (&amount, warehouse, district)).await?;
        let (d_name, ..): (String, String, String, String, String, String) =
            link.row(&self.district, (warehouse, district)).await?;
        let values =
            (&amount, &amount, district, warehouse, &amount, c_warehouse, c_district, customer);
        link.change(&self.pay_customer, values).await?;
        let _: mysql_async::Row =
            link.row(&self.customer, (c_warehouse, c_district, customer)).await?;
        let data = format!("{w_name}    {d_name}");
        let values = (customer, c_district, c_warehouse, district, warehouse, &amount, data);
        link.change(&self.insert_history, values).await?;
        Ok(Outcome::COMMITTED)
    }

    async fn order_status(
        &self,
        link: &mut Link<'_>,
        status: &OrderStatus,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (status.warehouse, status.district);
        // Several statements must see one state of the order: hence one snapshot.
        for sql in BEGIN_SNAPSHOT {
            link.text(sql).await?;
        }
        let customer = self.customer(link, warehouse, district, &status.customer).await?;
        let _: mysql_async::Row =
            link.row(&self.customer_status, (warehouse, district, customer)).await?;
        let orders: Vec<mysql_async::Row> =
            link.rows(&self.latest_order, (warehouse, district, customer)).await?;
        if let Some(order) = orders.first() {
            let order_id: u32 = order.get(0).ok_or(RequestError::NoRow)?;
            let _: Vec<mysql_async::Row> =
                link.rows(&self.order_lines, (warehouse, district, order_id)).await?;
        }
        Ok(Outcome::COMMITTED)
    }

    async fn delivery(
        &self,
        link: &mut Link<'_>,
        delivery: &Delivery,
    ) -> Result<Outcome, RequestError> {
        let mut skipped = 0;
        link.text(BEGIN).await?;
        for district in 1..=DISTRICTS {
            let found: Vec<u32> =
                link.rows(&self.oldest_new_order, (delivery.warehouse, district)).await?;
            match found.first() {
                Some(order_id) => {
                    let order = (delivery.warehouse, district, *order_id);
                    self.deliver(link, order, delivery.carrier).await?;
                }
                None => skipped += 1,
            }
        }
        Ok(Outcome { skipped_deliveries: skipped, ..Outcome::COMMITTED })
    }

    async fn deliver(
        &self,
        link: &mut Link<'_>,
        (warehouse, district, order_id): (u32, u32, u32),
        carrier: u32,
    ) -> Result<(), RequestError> {
        let order = (warehouse, district, order_id);
        link.change(&self.delete_new_order, order).await?;
        let customer: u32 = link.row(&self.order_customer, order).await?;
        link.change(&self.carry_order, (carrier, warehouse, district, order_id)).await?;
        link.change(&self.deliver_lines, order).await?;
        let cents: i64 = link.row(&self.lines_amount, order).await?;
        let values = (decimal(cents), warehouse, district, customer);
        link.change(&self.credit_customer, values).await
    }

    async fn stock_level(
        &self,
        link: &mut Link<'_>,
        level: &StockLevel,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (level.warehouse, level.district);
        // Read committed is enough here (clause 3.4): two statements, two snapshots.
        link.text(BEGIN).await?;
        let next: i32 = link.row(&self.district_peek, (warehouse, district)).await?;
        let values = (level.threshold, warehouse, district, next - 20, next);
        let _: u64 = link.row(&self.low_stock, values).await?;
        Ok(Outcome::COMMITTED)
    }
}

/// Number, price in cents, name and data of the items that exist.
async fn items(
    link: &mut Link<'_>,
    items: &[i32],
) -> Result<Vec<(i32, i64, String, String)>, RequestError> {
    let numbers: Vec<String> = items.iter().map(i32::to_string).collect();
    Ok(link.0.query(format!("{ITEMS}{})", numbers.join(", "))).await?)
}

fn distinct(items: &[i32]) -> usize {
    let mut sorted = items.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}
