//! Transactions statement by statement on engines that take arrays of parameters but return no changed rows: what a chatty
//! application sends. One round trip each, nothing
//! pipelined. A statement that changes several rows alike is sent once, with an array of values, where the server takes
//! such; where it does not, once per row. Sessions do not commit by themselves, as those of JDBC and ODBC with that
//! turned off: a transaction begins with its first statement.
//!
//! The effects are those of the procedures in `sql/procedures.sql`; a test runs both over the same inputs
//! and compares the databases. This mode exists to show what the round trips cost.
//!
//! Statements are texts in one table, because all of them belong to the workload's identity. A prepared statement has a
//! fixed number of parameters: those that name several items have room for the longest order, and a shorter one names its
//! last item again. Order lines are sent as text each time. New-Order is in `arrays_new_order`.

use underlay_workload::tpcc::{
    CustomerSelector, Delivery, OrderStatus, Payment, StockLevel, Transaction,
};

use crate::connection::Value::{Cents, Int, Text};
use crate::connection::{Connection, RequestError, Row, Sql};
use crate::error::CommitState;
use crate::tpcc::Outcome;
use crate::tpcc::failure::Failure;
use crate::tpcc::inputs::int;

const DISTRICTS: usize = 10;

/// Sent with the lines' values.
pub(super) const INSERT_LINES: &str = "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_quantity, \
    ol_i_id, ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info) VALUES ";
const COMMIT_WHEN_TOLD: &str = "SET SESSION autocommit = 0";
/// For the next transaction alone.
const ONE_SNAPSHOT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// The oldest new order of a district.
macro_rules! oldest {
    ($district:literal) => {
        concat!(
            "(SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ",
            $district,
            " ORDER BY no_o_id LIMIT 1 FOR UPDATE)"
        )
    };
}

/// Declares the prepared statements: a name, a text.
macro_rules! statements {
    ($($name:ident = $text:expr;)+) => {
        /// All prepared statements.
        pub(in crate::tpcc) struct Arrays<C: Connection> { $(pub(super) $name: C::Statement,)+ }

        impl<C: Connection> Arrays<C> {
            /// Prepares all statements, and the connection for them.
            pub async fn prepare(link: &mut C) -> Result<Arrays<C>, RequestError> {
                let statements = Arrays { $($name: link.prepare(Sql::new($text)).await?,)+ };
                link.query(COMMIT_WHEN_TOLD.as_bytes()).await?;
                Ok(statements)
            }
        }

        /// The texts of all statements, for the workload's identity.
        pub(in crate::tpcc) fn texts() -> Vec<&'static str> {
            vec![
                COMMIT_WHEN_TOLD, ONE_SNAPSHOT, COMMIT, ROLLBACK, INSERT_LINES,
                $($text,)+
            ]
        }
    };
}

statements! {
    // The number is in the answer: LAST_INSERT_ID with an argument.
    district_next = "UPDATE district SET d_next_o_id = last_insert_id(d_next_o_id) + 1 WHERE d_w_id = ? AND d_id = ?";
    terms = "SELECT w_tax, d_tax, c_discount, c_last, c_credit FROM warehouse, district, customer \
        WHERE w_id = ? AND d_w_id = w_id AND d_id = ? AND c_w_id = w_id AND c_d_id = d_id AND c_id = ?";
    insert_order = "INSERT INTO orders \
        (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, now(), NULL, ?, ?)";
    insert_new_order = "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)";
    items = "SELECT i_id, cast(i_price * 100 AS signed), i_name, i_data FROM item \
        WHERE i_id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    // In the order of the key, hence that in which all transactions lock stock.
    stock = "SELECT s_w_id, s_i_id, s_quantity, s_data LIKE '%ORIGINAL%', \
          CASE ? WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
                 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
                 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 \
                 ELSE s_dist_10 END \
        FROM stock WHERE (s_w_id, s_i_id) IN ((?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), \
          (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)) FOR UPDATE";
    take_stock = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
          s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";

    namesakes = "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
        ORDER BY c_first, c_id";
    pay_warehouse = "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
    pay_district = "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
    pay_customer = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
          c_payment_cnt = c_payment_cnt + 1, \
          c_data = CASE WHEN c_credit = 'BC' \
                        THEN left(concat(concat_ws(' ', c_id, c_d_id, c_w_id, ?, ?, ?), '|', c_data), 500) \
                        ELSE c_data END \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    // Of rows that the transaction has changed.
    receipt = "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip, \
          d_name, d_street_1, d_street_2, d_city, d_state, d_zip, \
          c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
          c_since, c_credit, c_credit_lim, c_discount, c_balance, \
          CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END FROM warehouse, district, customer \
        WHERE w_id = ? AND d_w_id = w_id AND d_id = ? AND c_w_id = ? AND c_d_id = ? AND c_id = ?";
    insert_history = "INSERT INTO history \
        (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES (?, ?, ?, ?, ?, now(), ?, ?)";

    customer_status = "SELECT c_first, c_middle, c_last, c_balance FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    latest_order = "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
        WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
    order_lines = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? ORDER BY ol_number";

    // In the order of the districts, hence that in which all deliveries lock new orders.
    oldest_new_orders = concat!(
        oldest!(1), " UNION ALL ", oldest!(2), " UNION ALL ", oldest!(3), " UNION ALL ", oldest!(4), " UNION ALL ",
        oldest!(5), " UNION ALL ", oldest!(6), " UNION ALL ", oldest!(7), " UNION ALL ", oldest!(8), " UNION ALL ",
        oldest!(9), " UNION ALL ", oldest!(10)
    );
    delete_new_order = "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    carry_order = "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    deliver_lines = "UPDATE order_line SET ol_delivery_d = now() \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    delivered = "SELECT o_d_id, max(o_c_id), cast(sum(ol_amount) * 100 AS signed) FROM orders, order_line \
        WHERE (o_w_id, o_d_id, o_id) IN ((?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), \
          (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?), (?, ?, ?)) \
          AND ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id GROUP BY o_d_id ORDER BY o_d_id";
    credit_customer = "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";

    district_peek = "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    low_stock = "SELECT STRAIGHT_JOIN count(DISTINCT ol_i_id) FROM order_line \
        JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < ? \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ?";
}

impl<C: Connection> Arrays<C> {
    /// Carries out one transaction.
    pub async fn run(&self, link: &mut C, transaction: &Transaction) -> Result<Outcome, Failure> {
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
        match link.query(end.as_bytes()).await {
            Ok(_) => Ok(outcome),
            Err(error) => Err(Failure { error, commit }),
        }
    }

    /// The customer's number, looked up when named by last name: the middle one, rounded up.
    async fn customer(
        &self,
        link: &mut C,
        warehouse: i32,
        district: i32,
        customer: &CustomerSelector,
    ) -> Result<i32, RequestError> {
        let last = match customer {
            CustomerSelector::ById(id) => return Ok(int(*id)),
            CustomerSelector::ByLastName(last) => last,
        };
        let values = [Int(warehouse), Int(district), Text(last.as_bytes())];
        let ids = link.list(&self.namesakes, &values, |row| row.number(0)).await?;
        ids.len().checked_sub(1).map(|top| ids[top / 2]).ok_or_else(RequestError::no_row)
    }

    async fn payment(&self, link: &mut C, payment: &Payment) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(payment.warehouse), int(payment.district));
        let (c_warehouse, c_district) =
            (int(payment.customer_warehouse), int(payment.customer_district));
        let amount = Cents(payment.amount_cents);
        let customer = self.customer(link, c_warehouse, c_district, &payment.customer).await?;
        link.change(&self.pay_warehouse, &[amount, Int(warehouse)]).await?;
        link.change(&self.pay_district, &[amount, Int(warehouse), Int(district)]).await?;
        let [home_warehouse, home_district] = [Int(warehouse), Int(district)];
        let [c_warehouse, c_district, customer] = [c_warehouse, c_district, customer].map(Int);
        let values = [
            amount,
            amount,
            home_district,
            home_warehouse,
            amount,
            c_warehouse,
            c_district,
            customer,
        ];
        link.change(&self.pay_customer, &values).await?;
        let values = [home_warehouse, home_district, c_warehouse, c_district, customer];
        let names =
            link.row(&self.receipt, &values, |row| {
                Ok([row.bytes(0)?, row.bytes(6)?].join(&b"    "[..]))
            })
            .await?;
        let values = [
            customer,
            c_district,
            c_warehouse,
            home_district,
            home_warehouse,
            amount,
            Text(&names),
        ];
        link.change(&self.insert_history, &values).await?;
        Ok(Outcome::COMMITTED)
    }

    async fn order_status(
        &self,
        link: &mut C,
        status: &OrderStatus,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(status.warehouse), int(status.district));
        // Several statements must see one state of the order: hence one snapshot.
        link.query(ONE_SNAPSHOT.as_bytes()).await?;
        let customer = self.customer(link, warehouse, district, &status.customer).await?;
        let values = [warehouse, district, customer].map(Int);
        link.row(&self.customer_status, &values, |_| Ok(())).await?;
        let order = match link.row(&self.latest_order, &values, |row| row.number(0)).await {
            Err(error) if error.is_no_row() => return Ok(Outcome::COMMITTED),
            order => order?,
        };
        link.execute(&self.order_lines, &[warehouse, district, order].map(Int)).await?;
        Ok(Outcome::COMMITTED)
    }

    /// Each step for all districts, so that rows are locked in one order of tables.
    async fn delivery(&self, link: &mut C, delivery: &Delivery) -> Result<Outcome, RequestError> {
        let (warehouse, carrier) = (Int(int(delivery.warehouse)), Int(int(delivery.carrier)));
        let read = |row: C::Row<'_>| Ok([warehouse, Int(row.number(0)?), Int(row.number(1)?)]);
        let orders = link.list(&self.oldest_new_orders, &[warehouse; DISTRICTS], read).await?;
        let skipped_deliveries = (DISTRICTS - orders.len()) as u32;
        let outcome = Outcome { skipped_deliveries, ..Outcome::COMMITTED };
        let Some(last) = orders.last() else { return Ok(outcome) };
        link.change_each(&self.delete_new_order, &orders).await?;
        let carried: Vec<_> = orders
            .iter()
            .map(|&[warehouse, district, id]| [carrier, warehouse, district, id])
            .collect();
        link.change_each(&self.carry_order, &carried).await?;
        link.change_each(&self.deliver_lines, &orders).await?;
        let mut named = [*last; DISTRICTS];
        named[..orders.len()].copy_from_slice(&orders);
        let read = |row: C::Row<'_>| {
            let (district, customer) = (Int(row.number(0)?), Int(row.number(1)?));
            Ok([Cents(row.number(2)?), warehouse, district, customer])
        };
        let credits = link.list(&self.delivered, named.as_flattened(), read).await?;
        if credits.len() < orders.len() {
            return Err(RequestError::no_row());
        }
        link.change_each(&self.credit_customer, &credits).await?;
        Ok(outcome)
    }

    async fn stock_level(&self, link: &mut C, level: &StockLevel) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(level.warehouse), int(level.district));
        // Read committed is enough here (clause 3.4): two statements, two snapshots.
        let next: i32 = link
            .row(&self.district_peek, &[warehouse, district].map(Int), |row| row.number(0))
            .await?;
        let values = [int(level.threshold), warehouse, district, next - 20, next].map(Int);
        link.row(&self.low_stock, &values, |_| Ok(())).await?;
        Ok(Outcome::COMMITTED)
    }
}
