//! Transactions statement by statement: what a chatty application sends. One round trip each, nothing
//! pipelined.
//!
//! The effects are those of the functions in `sql/procedures.sql`; a test runs both over the same inputs
//! and compares the databases. This mode exists to show what the round trips cost.
//!
//! Statements are texts with the types of their parameters in one table, because all of them belong to
//! the workload's identity.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, Statement};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction,
};

use super::session::Failure;
use crate::error::CommitState;
use crate::postgres::link::{Link, RequestError};
use crate::postgres::numeric::Cents;
use crate::tpcc::{Outcome, SortedLines, int, selector, small};

const DISTRICTS: i32 = 10;

const I: Type = Type::INT4;

/// Declares the statements: a name, a text, its parameter types.
macro_rules! statements {
    ($($name:ident = $text:expr, [$($kind:expr),*];)+) => {
        /// All prepared statements.
        pub struct Statements { $($name: Statement,)+ }

        impl Statements {
            /// Prepares all statements.
            pub async fn prepare(link: &mut Link) -> Result<Statements, RequestError> {
                Ok(Statements { $($name: link.prepare($text, &[$($kind),*]).await?,)+ })
            }
        }

        /// The texts of all statements, for the workload's identity.
        pub fn texts() -> Vec<&'static str> {
            vec![$($text,)+]
        }
    };
}

statements! {
    begin = "BEGIN", [];
    commit = "COMMIT", [];
    rollback = "ROLLBACK", [];

    district_next = "UPDATE tpcc.district SET d_next_o_id = d_next_o_id + 1 \
        WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax::float8", [I, I];
    warehouse_and_customer = "SELECT w_tax::float8, c_discount::float8, c_last, c_credit \
        FROM tpcc.warehouse, tpcc.customer \
        WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3", [I, I, I];
    insert_order = "INSERT INTO tpcc.orders \
        (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
        VALUES ($1, $2, $3, $4, clock_timestamp(), NULL, $5, $6)",
        [I, I, I, I, Type::INT2, Type::INT2];
    insert_new_order = "INSERT INTO tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)", [I, I, I];
    items = "SELECT i_id, (i_price * 100)::int8, i_name, i_data LIKE '%ORIGINAL%' \
        FROM tpcc.item WHERE i_id = ANY ($1)", [Type::INT4_ARRAY];
    take_stock = "UPDATE tpcc.stock SET \
          s_quantity = CASE WHEN s_quantity >= $3 + 10 THEN s_quantity - $3 ELSE s_quantity - $3 + 91 END, \
          s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4 \
        WHERE s_w_id = $1 AND s_i_id = $2 \
        RETURNING s_quantity, s_data LIKE '%ORIGINAL%', \
          CASE $5::int WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
                  WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
                  WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 \
                  ELSE s_dist_10 END", [I, I, I, I, I];
    insert_lines = "INSERT INTO tpcc.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_quantity, ol_i_id, \
          ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info) \
        SELECT $1, $2, $3, number, quantity, item, supply, NULL, cents::numeric / 100, dist_info \
          FROM unnest($4, $5, $6, $7, $8, $9) AS l (number, quantity, item, supply, cents, dist_info)",
        [I, I, I, Type::INT2_ARRAY, Type::INT2_ARRAY, Type::INT4_ARRAY, Type::INT4_ARRAY,
         Type::INT8_ARRAY, Type::TEXT_ARRAY];

    customer_by_name = "SELECT (array_agg(c_id ORDER BY c_first, c_id))[(count(*) + 1) / 2] FROM tpcc.customer \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3", [I, I, Type::VARCHAR];
    pay_warehouse = "UPDATE tpcc.warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
        RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip", [I, Type::NUMERIC];
    pay_district = "UPDATE tpcc.district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
        RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip", [I, I, Type::NUMERIC];
    pay_customer = "UPDATE tpcc.customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
          c_payment_cnt = c_payment_cnt + 1, \
          c_data = CASE WHEN c_credit = 'BC' \
                        THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $6::int, $5::int, $4) || '|' || c_data, 500) \
                        ELSE c_data END \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
        RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since::text, \
          c_credit, c_credit_lim::float8, c_discount::float8, c_balance::float8, \
          CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END", [I, I, I, Type::NUMERIC, I, I];
    insert_history = "INSERT INTO tpcc.history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6, $7)",
        [I, I, I, I, I, Type::NUMERIC, Type::VARCHAR];

    begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", [];
    customer_status = "SELECT c_first, c_middle, c_last, c_balance::float8 FROM tpcc.customer \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", [I, I, I];
    latest_order = "SELECT o_id, o_entry_d::text, o_carrier_id FROM tpcc.orders \
        WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1", [I, I, I];
    order_lines = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d::text \
        FROM tpcc.order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 ORDER BY ol_number", [I, I, I];

    oldest_new_order = "SELECT no_o_id FROM tpcc.new_order WHERE no_w_id = $1 AND no_d_id = $2 \
        ORDER BY no_o_id LIMIT 1 FOR UPDATE", [I, I];
    any_new_order = "SELECT 1 FROM tpcc.new_order WHERE no_w_id = $1 AND no_d_id = $2 LIMIT 1", [I, I];
    delete_new_order = "DELETE FROM tpcc.new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3", [I, I, I];
    carry_order = "UPDATE tpcc.orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 \
        RETURNING o_c_id", [I, I, I, I];
    deliver_lines = "WITH line AS (UPDATE tpcc.order_line SET ol_delivery_d = now() \
          WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount) \
        SELECT (sum(ol_amount) * 100)::int8 FROM line", [I, I, I];
    credit_customer = "UPDATE tpcc.customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", [I, I, I, Type::NUMERIC];

    district_peek = "SELECT d_next_o_id FROM tpcc.district WHERE d_w_id = $1 AND d_id = $2", [I, I];
    low_stock = "SELECT count(DISTINCT ol_i_id) FROM tpcc.order_line \
        JOIN tpcc.stock ON s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4 \
        WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3", [I, I, I, I];
}

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Statements {
    /// Carries out one transaction.
    pub async fn run(
        &self,
        link: &mut Link,
        transaction: &Transaction,
    ) -> Result<Outcome, Failure> {
        let done = match transaction {
            Transaction::NewOrder(order) => self.new_order(link, order).await,
            Transaction::Payment(payment) => self.payment(link, payment).await,
            Transaction::OrderStatus(status) => self.order_status(link, status).await,
            Transaction::Delivery(delivery) => self.delivery(link, delivery).await,
            Transaction::StockLevel(level) => self.stock_level(link, level).await,
        };
        let outcome = done.map_err(|error| Failure { error, commit: CommitState::NotSent })?;
        let (end, commit) = match outcome.committed {
            true => (&self.commit, CommitState::InFlight),
            false => (&self.rollback, CommitState::NotSent),
        };
        match link.execute(end, &[]).await {
            Ok(_) => Ok(outcome),
            Err(error) => Err(Failure { error, commit }),
        }
    }

    async fn new_order(&self, link: &mut Link, order: &NewOrder) -> Result<Outcome, RequestError> {
        let (warehouse, district, customer) =
            (int(order.warehouse), int(order.district), int(order.customer));
        let lines = SortedLines::of(order);
        link.execute(&self.begin, &[]).await?;
        let numbered = link.row(&self.district_next, &[&warehouse, &district]).await?;
        let order_id: i32 = numbered.try_get(0)?;
        link.row(&self.warehouse_and_customer, &[&warehouse, &district, &customer]).await?;
        let all_local = i16::from(lines.supplies.iter().all(|supply| *supply == warehouse));
        let count = small(lines.items.len());
        link.execute(
            &self.insert_order,
            &[&warehouse, &district, &order_id, &customer, &count, &all_local],
        )
        .await?;
        link.execute(&self.insert_new_order, &[&warehouse, &district, &order_id]).await?;
        let prices = Prices::of(link.rows(&self.items, &[&lines.items]).await?)?;
        let mut taken = TakenLines::default();
        for index in 0..lines.items.len() {
            // The 1 % of orders with an item that does not exist: all their valid lines are carried out
            // before the transaction is undone, as clause 2.4.2.3 wants.
            let Some(price) = prices.cents(lines.items[index]) else { continue };
            let (supply, quantity) = (lines.supplies[index], i32::from(lines.quantities[index]));
            let remote = i32::from(supply != warehouse);
            let stock = link
                .row(
                    &self.take_stock,
                    &[&supply, &lines.items[index], &quantity, &remote, &district],
                )
                .await?;
            taken.push(&lines, index, price * i64::from(quantity), stock.try_get(2)?);
        }
        self.insert_lines(link, [warehouse, district, order_id], &taken).await?;
        if taken.items.len() < lines.items.len() {
            return Ok(Outcome::ROLLED_BACK);
        }
        Ok(Outcome { order_id: Some(order_id.cast_unsigned()), ..Outcome::COMMITTED })
    }

    async fn insert_lines(
        &self,
        link: &mut Link,
        order: [i32; 3],
        lines: &TakenLines,
    ) -> Result<(), RequestError> {
        let [warehouse, district, order_id] = order;
        let parameters: Parameters<'_> = &[
            &warehouse,
            &district,
            &order_id,
            &lines.numbers,
            &lines.quantities,
            &lines.items,
            &lines.supplies,
            &lines.cents,
            &lines.dist_info,
        ];
        link.execute(&self.insert_lines, parameters).await?;
        Ok(())
    }

    /// The customer's number, looked up when named by last name.
    async fn customer(
        &self,
        link: &mut Link,
        warehouse: i32,
        district: i32,
        customer: &CustomerSelector,
    ) -> Result<i32, RequestError> {
        match selector(customer) {
            (Some(id), _) => Ok(id),
            (None, last) => {
                let row = link.row(&self.customer_by_name, &[&warehouse, &district, &last]).await?;
                // An aggregate has a row also when nobody has the name.
                row.try_get::<_, Option<i32>>(0)?.ok_or(RequestError::NoRow)
            }
        }
    }

    async fn payment(&self, link: &mut Link, payment: &Payment) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(payment.warehouse), int(payment.district));
        let (c_warehouse, c_district) =
            (int(payment.customer_warehouse), int(payment.customer_district));
        let amount = Cents(payment.amount_cents);
        link.execute(&self.begin, &[]).await?;
        let customer = self.customer(link, c_warehouse, c_district, &payment.customer).await?;
        let paid = link.row(&self.pay_warehouse, &[&warehouse, &amount]).await?;
        let warehouse_name: &str = paid.try_get(0)?;
        let paid = link.row(&self.pay_district, &[&warehouse, &district, &amount]).await?;
        let district_name: &str = paid.try_get(0)?;
        let parameters: Parameters<'_> =
            &[&c_warehouse, &c_district, &customer, &amount, &warehouse, &district];
        link.row(&self.pay_customer, parameters).await?;
        let data = format!("{warehouse_name}    {district_name}");
        let parameters: Parameters<'_> =
            &[&customer, &c_district, &c_warehouse, &district, &warehouse, &amount, &data];
        link.execute(&self.insert_history, parameters).await?;
        Ok(Outcome::COMMITTED)
    }

    async fn order_status(
        &self,
        link: &mut Link,
        status: &OrderStatus,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(status.warehouse), int(status.district));
        // Three statements must see one state of the order: hence one snapshot.
        link.execute(&self.begin_snapshot, &[]).await?;
        let customer = self.customer(link, warehouse, district, &status.customer).await?;
        link.row(&self.customer_status, &[&warehouse, &district, &customer]).await?;
        let orders = link.rows(&self.latest_order, &[&warehouse, &district, &customer]).await?;
        if let Some(order) = orders.first() {
            let order_id: i32 = order.try_get(0)?;
            link.rows(&self.order_lines, &[&warehouse, &district, &order_id]).await?;
        }
        Ok(Outcome::COMMITTED)
    }

    async fn delivery(
        &self,
        link: &mut Link,
        delivery: &Delivery,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, carrier) = (int(delivery.warehouse), int(delivery.carrier));
        let mut skipped = 0;
        link.execute(&self.begin, &[]).await?;
        for district in 1..=DISTRICTS {
            match self.oldest(link, warehouse, district).await? {
                Some(order_id) => {
                    self.deliver(link, [warehouse, district, order_id], carrier).await?
                }
                None => skipped += 1,
            }
        }
        Ok(Outcome { skipped_deliveries: skipped, ..Outcome::COMMITTED })
    }

    /// The oldest new order, locked. Looks again when the one it waited for was delivered meanwhile.
    async fn oldest(
        &self,
        link: &mut Link,
        warehouse: i32,
        district: i32,
    ) -> Result<Option<i32>, RequestError> {
        loop {
            let found = link.rows(&self.oldest_new_order, &[&warehouse, &district]).await?;
            if let Some(row) = found.first() {
                return Ok(Some(row.try_get(0)?));
            }
            if link.rows(&self.any_new_order, &[&warehouse, &district]).await?.is_empty() {
                return Ok(None);
            }
        }
    }

    async fn deliver(
        &self,
        link: &mut Link,
        order: [i32; 3],
        carrier: i32,
    ) -> Result<(), RequestError> {
        let [warehouse, district, order_id] = order;
        link.execute(&self.delete_new_order, &[&warehouse, &district, &order_id]).await?;
        let carried =
            link.row(&self.carry_order, &[&warehouse, &district, &order_id, &carrier]).await?;
        let customer: i32 = carried.try_get(0)?;
        let lines = link.row(&self.deliver_lines, &[&warehouse, &district, &order_id]).await?;
        let amount = Cents(lines.try_get(0)?);
        link.execute(&self.credit_customer, &[&warehouse, &district, &customer, &amount]).await?;
        Ok(())
    }

    async fn stock_level(
        &self,
        link: &mut Link,
        level: &StockLevel,
    ) -> Result<Outcome, RequestError> {
        let (warehouse, district, threshold) =
            (int(level.warehouse), int(level.district), int(level.threshold));
        // Read committed is enough here (clause 3.4): two statements, two snapshots.
        link.execute(&self.begin, &[]).await?;
        let next: i32 =
            link.row(&self.district_peek, &[&warehouse, &district]).await?.try_get(0)?;
        link.row(&self.low_stock, &[&warehouse, &district, &next, &threshold]).await?;
        Ok(Outcome::COMMITTED)
    }
}

/// The lines of an order whose stock was taken, as arrays.
#[derive(Default)]
struct TakenLines {
    numbers: Vec<i16>,
    quantities: Vec<i16>,
    items: Vec<i32>,
    supplies: Vec<i32>,
    cents: Vec<i64>,
    dist_info: Vec<String>,
}

impl TakenLines {
    fn push(&mut self, lines: &SortedLines, index: usize, cents: i64, dist_info: String) {
        self.numbers.push(lines.numbers[index]);
        self.quantities.push(lines.quantities[index]);
        self.items.push(lines.items[index]);
        self.supplies.push(lines.supplies[index]);
        self.cents.push(cents);
        self.dist_info.push(dist_info);
    }
}

/// Prices of the items of one order.
struct Prices(Vec<(i32, i64)>);

impl Prices {
    fn of(rows: Vec<Row>) -> Result<Prices, Error> {
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, Error>>()
            .map(Prices)
    }

    fn cents(&self, item: i32) -> Option<i64> {
        self.0.iter().find(|(id, _)| *id == item).map(|(_, cents)| *cents)
    }
}
