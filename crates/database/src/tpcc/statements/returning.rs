//! Transactions statement by statement on engines whose updates return rows: what a chatty application sends. One round
//! trip each, nothing pipelined.
//!
//! The effects are those of the functions in `sql/procedures.sql`; a test runs both over the same inputs
//! and compares the databases. This mode exists to show what the round trips cost.
//!
//! Statements are texts with the types of their parameters in one table, because all of them belong to
//! the workload's identity.

use underlay_workload::tpcc::{
    CustomerSelector, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction,
};

use crate::connection::Kind::{Bigs, Decimal, Ints, Small, Smalls, Texts, Varchar};
use crate::connection::Value::{self, Cents, Int, Text};
use crate::connection::{Connection, Kind, RequestError, Row, Sql};
use crate::error::CommitState;
use crate::tpcc::Outcome;
use crate::tpcc::failure::Failure;
use crate::tpcc::inputs::{SortedLines, int};

const DISTRICTS: i32 = 10;

const I: Kind = Kind::Int;

/// Declares the statements: a name, a text, its parameter types.
macro_rules! statements {
    ($($name:ident = $text:expr, [$($kind:expr),*];)+) => {
        /// All prepared statements.
        pub(in crate::tpcc) struct Returning<C: Connection> { $($name: C::Statement,)+ }

        impl<C: Connection> Returning<C> {
            /// Prepares all statements.
            pub async fn prepare(link: &mut C) -> Result<Returning<C>, RequestError> {
                Ok(Returning { $($name: link.prepare(Sql::typed($text, &[$($kind),*])).await?,)+ })
            }
        }

        /// The texts of all statements, for the workload's identity.
        pub(in crate::tpcc) fn texts() -> Vec<&'static str> {
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
        [I, I, I, I, Small, Small];
    insert_new_order = "INSERT INTO tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)", [I, I, I];
    items = "SELECT i_id, (i_price * 100)::int8, i_name, i_data LIKE '%ORIGINAL%' \
        FROM tpcc.item WHERE i_id = ANY ($1)", [Ints];
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
        [I, I, I, Smalls, Smalls, Ints, Ints,
         Bigs, Texts];

    customer_by_name = "SELECT (array_agg(c_id ORDER BY c_first, c_id))[(count(*) + 1) / 2] FROM tpcc.customer \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3", [I, I, Varchar];
    pay_warehouse = "UPDATE tpcc.warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
        RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip", [I, Decimal];
    pay_district = "UPDATE tpcc.district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
        RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip", [I, I, Decimal];
    pay_customer = "UPDATE tpcc.customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
          c_payment_cnt = c_payment_cnt + 1, \
          c_data = CASE WHEN c_credit = 'BC' \
                        THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $6::int, $5::int, $4) || '|' || c_data, 500) \
                        ELSE c_data END \
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
        RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since::text, \
          c_credit, c_credit_lim::float8, c_discount::float8, c_balance::float8, \
          CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END", [I, I, I, Decimal, I, I];
    insert_history = "INSERT INTO tpcc.history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES ($1, $2, $3, $4, $5, clock_timestamp(), $6, $7)",
        [I, I, I, I, I, Decimal, Varchar];

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
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", [I, I, I, Decimal];

    district_peek = "SELECT d_next_o_id FROM tpcc.district WHERE d_w_id = $1 AND d_id = $2", [I, I];
    low_stock = "SELECT count(DISTINCT ol_i_id) FROM tpcc.order_line \
        JOIN tpcc.stock ON s_w_id = $1 AND s_i_id = ol_i_id AND s_quantity < $4 \
        WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3", [I, I, I, I];
}

impl<C: Connection> Returning<C> {
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
            true => (&self.commit, CommitState::InFlight),
            false => (&self.rollback, CommitState::NotSent),
        };
        match link.execute(end, &[]).await {
            Ok(_) => Ok(outcome),
            Err(error) => Err(Failure { error, commit }),
        }
    }

    async fn new_order(&self, link: &mut C, order: &NewOrder) -> Result<Outcome, RequestError> {
        let (warehouse, district) = (int(order.warehouse), int(order.district));
        let [w, d, c] = [warehouse, district, int(order.customer)].map(Int);
        let lines = SortedLines::of(order);
        link.execute(&self.begin, &[]).await?;
        let order_id: i32 = link.row(&self.district_next, &[w, d], |row| row.number(0)).await?;
        let o = Int(order_id);
        link.row(&self.warehouse_and_customer, &[w, d, c], |_| Ok(())).await?;
        let all_local = i32::from(lines.supplies.iter().all(|supply| *supply == warehouse));
        let count = lines.items.len() as i32;
        link.execute(&self.insert_order, &[w, d, o, c, Int(count), Int(all_local)]).await?;
        link.execute(&self.insert_new_order, &[w, d, o]).await?;
        let read = |row: C::Row<'_>| Ok((row.number(0)?, row.number(1)?));
        let prices: Vec<(i32, i64)> =
            link.list(&self.items, &[Value::Ints(&lines.items)], read).await?;
        let mut taken = TakenLines::default();
        for index in 0..lines.items.len() {
            // The 1 % of orders with an item that does not exist: all their valid lines are carried out
            // before the transaction is undone, as clause 2.4.2.3 wants.
            let item = lines.items[index];
            let Some((_, price)) = prices.iter().find(|(id, _)| *id == item) else { continue };
            let (supply, quantity) = (lines.supplies[index], lines.quantities[index]);
            let remote = i32::from(supply != warehouse);
            let values = [supply, item, quantity, remote, district].map(Int);
            let dist_info = link.row(&self.take_stock, &values, |row| row.bytes(2)).await?;
            taken.push(&lines, index, price * i64::from(quantity), dist_info);
        }
        let values = [
            w,
            d,
            o,
            Value::Ints(&taken.numbers),
            Value::Ints(&taken.quantities),
            Value::Ints(&taken.items),
            Value::Ints(&taken.supplies),
            Value::Bigs(&taken.cents),
            Value::Texts(&taken.dist_info),
        ];
        link.execute(&self.insert_lines, &values).await?;
        if taken.items.len() < lines.items.len() {
            return Ok(Outcome::ROLLED_BACK);
        }
        Ok(Outcome { order_id: Some(order_id.cast_unsigned()), ..Outcome::COMMITTED })
    }

    /// The customer's number, looked up when named by last name.
    async fn customer(
        &self,
        link: &mut C,
        [w, d]: [Value<'_>; 2],
        customer: &CustomerSelector,
    ) -> Result<Value<'static>, RequestError> {
        match customer {
            CustomerSelector::ById(id) => Ok(Int(int(*id))),
            CustomerSelector::ByLastName(last) => {
                // An aggregate has a row also when no customer has the name.
                let values = [w, d, Text(last.as_bytes())];
                link.row(&self.customer_by_name, &values, |row| Ok(Int(row.number(0)?))).await
            }
        }
    }

    async fn payment(&self, link: &mut C, payment: &Payment) -> Result<Outcome, RequestError> {
        let [w, d] = [payment.warehouse, payment.district].map(|number| Int(int(number)));
        let [c_w, c_d] =
            [payment.customer_warehouse, payment.customer_district].map(|number| Int(int(number)));
        let amount = Cents(payment.amount_cents);
        link.execute(&self.begin, &[]).await?;
        let c = self.customer(link, [c_w, c_d], &payment.customer).await?;
        let warehouse = link.row(&self.pay_warehouse, &[w, amount], |row| row.bytes(0)).await?;
        let district = link.row(&self.pay_district, &[w, d, amount], |row| row.bytes(0)).await?;
        link.row(&self.pay_customer, &[c_w, c_d, c, amount, w, d], |_| Ok(())).await?;
        let data = [warehouse, district].join(&b"    "[..]);
        let values = [c, c_d, c_w, d, w, amount, Text(&data)];
        link.execute(&self.insert_history, &values).await?;
        Ok(Outcome::COMMITTED)
    }

    async fn order_status(
        &self,
        link: &mut C,
        status: &OrderStatus,
    ) -> Result<Outcome, RequestError> {
        let [w, d] = [status.warehouse, status.district].map(|number| Int(int(number)));
        // Three statements must see one state of the order: hence one snapshot.
        link.execute(&self.begin_snapshot, &[]).await?;
        let c = self.customer(link, [w, d], &status.customer).await?;
        link.row(&self.customer_status, &[w, d, c], |_| Ok(())).await?;
        let orders: Vec<i32> =
            link.list(&self.latest_order, &[w, d, c], |row| row.number(0)).await?;
        if let Some(order) = orders.first() {
            link.execute(&self.order_lines, &[w, d, Int(*order)]).await?;
        }
        Ok(Outcome::COMMITTED)
    }

    async fn delivery(&self, link: &mut C, delivery: &Delivery) -> Result<Outcome, RequestError> {
        let (w, carrier) = (Int(int(delivery.warehouse)), Int(int(delivery.carrier)));
        let mut skipped = 0;
        link.execute(&self.begin, &[]).await?;
        for district in 1..=DISTRICTS {
            match self.oldest(link, [w, Int(district)]).await? {
                Some(order) => self.deliver(link, [w, Int(district), Int(order)], carrier).await?,
                None => skipped += 1,
            }
        }
        Ok(Outcome { skipped_deliveries: skipped, ..Outcome::COMMITTED })
    }

    /// The oldest new order, locked. Looks again when the one it waited for was delivered meanwhile.
    async fn oldest(
        &self,
        link: &mut C,
        district: [Value<'_>; 2],
    ) -> Result<Option<i32>, RequestError> {
        loop {
            let found: Vec<i32> =
                link.list(&self.oldest_new_order, &district, |row| row.number(0)).await?;
            if let Some(order) = found.first() {
                return Ok(Some(*order));
            }
            if link.execute(&self.any_new_order, &district).await?.returned == 0 {
                return Ok(None);
            }
        }
    }

    async fn deliver(
        &self,
        link: &mut C,
        [w, d, o]: [Value<'_>; 3],
        carrier: Value<'_>,
    ) -> Result<(), RequestError> {
        link.execute(&self.delete_new_order, &[w, d, o]).await?;
        let read = |row: C::Row<'_>| Ok(Int(row.number(0)?));
        let c = link.row(&self.carry_order, &[w, d, o, carrier], read).await?;
        let read = |row: C::Row<'_>| Ok(Cents(row.number(0)?));
        let amount = link.row(&self.deliver_lines, &[w, d, o], read).await?;
        link.execute(&self.credit_customer, &[w, d, c, amount]).await?;
        Ok(())
    }

    async fn stock_level(&self, link: &mut C, level: &StockLevel) -> Result<Outcome, RequestError> {
        let [w, d] = [level.warehouse, level.district].map(|number| Int(int(number)));
        // Read committed is enough here (clause 3.4): two statements, two snapshots.
        link.execute(&self.begin, &[]).await?;
        let next = link.row(&self.district_peek, &[w, d], |row| row.number(0)).await?;
        let values = [w, d, Int(next), Int(int(level.threshold))];
        link.row(&self.low_stock, &values, |_| Ok(())).await?;
        Ok(Outcome::COMMITTED)
    }
}

/// The lines of an order whose stock was taken, as arrays.
#[derive(Default)]
struct TakenLines {
    numbers: Vec<i32>,
    quantities: Vec<i32>,
    items: Vec<i32>,
    supplies: Vec<i32>,
    cents: Vec<i64>,
    dist_info: Vec<Vec<u8>>,
}

impl TakenLines {
    fn push(&mut self, lines: &SortedLines, index: usize, cents: i64, dist_info: Vec<u8>) {
        self.numbers.push(lines.numbers[index]);
        self.quantities.push(lines.quantities[index]);
        self.items.push(lines.items[index]);
        self.supplies.push(lines.supplies[index]);
        self.cents.push(cents);
        self.dist_info.push(dist_info);
    }
}
