//! The conditions as queries: one number = rows in violation, and one of them in words.
//!
//! `c1` to `c12` are the conditions of clause 3.3.2; condition 11 is stated so that it also holds after
//! transactions have run (orders - new orders - deliveries = 2,100). `i1`... are what the conditions leave
//! open, and what drivers are known to get wrong.
//!
//! Texts contain `{table}` for the table names, `$first` and `$last` for the range of warehouses.

use tokio_postgres::Client;

use super::{CheckMoment, CheckOutcome, CheckResult};

/// The names of the nine tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNames {
    names: Vec<(&'static str, String)>,
}

const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "stock",
    "item",
];

impl TableNames {
    /// The names that Underlay uses.
    pub fn underlay() -> TableNames {
        TableNames::mapped(|table| format!("tpcc.{table}"))
    }

    /// Other names: `name` is asked for each of `warehouse`, `district`, `customer`, `history`, `orders`,
    /// `new_order`, `order_line`, `stock`, `item`.
    pub fn mapped(name: impl Fn(&str) -> String) -> TableNames {
        TableNames { names: TABLES.iter().map(|table| (*table, name(table))).collect() }
    }

    pub(super) fn insert_into(&self, sql: &str) -> String {
        self.names
            .iter()
            .fold(sql.to_string(), |sql, (table, name)| sql.replace(&format!("{{{table}}}"), name))
    }
}

/// One condition.
pub(super) struct Condition {
    pub id: &'static str,
    pub title: &'static str,
    moments: &'static [CheckMoment],
    sql: &'static str,
}

impl Condition {
    pub fn applies(&self, moment: CheckMoment) -> bool {
        self.moments.contains(&moment)
    }

    pub fn sql(&self, tables: &TableNames) -> String {
        tables.insert_into(self.sql)
    }

    pub fn result(&self, outcome: CheckOutcome) -> CheckResult {
        CheckResult { id: self.id, title: self.title, outcome }
    }
}

const ALWAYS: &[CheckMoment] = &[CheckMoment::AfterLoad, CheckMoment::AfterRun];

/// Aggregates that several conditions share, for the warehouses of one range:
/// orders with what their lines add up to, districts, customers, and stock with what the lines took.
const SHARED: &str = "
CREATE TEMPORARY TABLE check_line AS
  SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS lines, count(ol_delivery_d) AS delivered,
         sum(ol_amount) AS amount, bool_and(ol_supply_w_id = ol_w_id) AS all_local
    FROM {order_line} WHERE ol_w_id BETWEEN $first AND $last GROUP BY 1, 2, 3;
CREATE TEMPORARY TABLE check_customer AS
  SELECT w, d, c, sum(delivered_amount) AS delivered_amount, sum(paid) AS paid, sum(payments) AS payments
    FROM (SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, amount AS delivered_amount, 0 AS paid, 0 AS payments
            FROM {orders} JOIN check_line ON w = o_w_id AND d = o_d_id AND o = o_id
           WHERE o_w_id BETWEEN $first AND $last AND delivered = lines
          UNION ALL
          SELECT h_c_w_id, h_c_d_id, h_c_id, 0, h_amount, 1
            FROM {history} WHERE h_c_w_id BETWEEN $first AND $last) AS part
   GROUP BY 1, 2, 3;
CREATE TEMPORARY TABLE check_stock AS
  SELECT ol_supply_w_id AS w, ol_i_id AS i, sum(ol_quantity) AS quantity, count(*) AS lines,
         count(*) FILTER (WHERE ol_supply_w_id IS DISTINCT FROM ol_w_id) AS remote
    FROM {order_line} WHERE ol_o_id > 3000 AND ol_supply_w_id BETWEEN $first AND $last GROUP BY 1, 2;
ANALYZE check_line; ANALYZE check_customer; ANALYZE check_stock;
";

/// Creates the shared aggregates on this connection.
pub(super) async fn prepare(
    client: &Client,
    (first, last): (i32, i32),
    tables: &TableNames,
) -> Result<(), tokio_postgres::Error> {
    // Enough memory to aggregate the customers of many warehouses without spilling to the volume that
    // is being measured; only for this connection.
    client.batch_execute("SET work_mem = '64MB'; SET temp_buffers = '64MB'").await?;
    let sql = tables
        .insert_into(SHARED)
        .replace("$first", &first.to_string())
        .replace("$last", &last.to_string());
    client.batch_execute(&sql).await
}

/// Declares the conditions.
macro_rules! conditions {
    ($($id:literal $moments:ident $title:literal: $sql:literal;)+) => {
        /// All conditions, in the order of their report.
        pub(super) const CONDITIONS: &[Condition] =
            &[$(Condition { id: $id, title: $title, moments: $moments, sql: $sql },)+];
    };
}

conditions! {
"c1" ALWAYS "W_YTD is the sum of the district's D_YTD": "
  SELECT count(*), min(format('warehouse %s: W_YTD %s, districts %s', coalesce(w_id, d.w), w_ytd, d.ytd))
    FROM (SELECT w_id, w_ytd FROM {warehouse} WHERE w_id BETWEEN $first AND $last) AS w
    FULL JOIN (SELECT d_w_id AS w, sum(d_ytd) AS ytd FROM {district}
                WHERE d_w_id BETWEEN $first AND $last GROUP BY 1) AS d ON d.w = w_id
   WHERE w_ytd IS DISTINCT FROM d.ytd";
"c2" ALWAYS "D_NEXT_O_ID - 1 is the highest O_ID and the highest NO_O_ID": "
  SELECT count(*), min(format('warehouse %s district %s: next %s, orders to %s, new orders to %s',
                              coalesce(d_w_id, o.w, n.w), coalesce(d_id, o.d, n.d), d_next_o_id, o.last, n.last))
    FROM (SELECT d_w_id, d_id, d_next_o_id FROM {district} WHERE d_w_id BETWEEN $first AND $last) AS d
    FULL JOIN (SELECT o_w_id AS w, o_d_id AS d, max(o_id) AS last FROM {orders}
                WHERE o_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS o ON o.w = d_w_id AND o.d = d_id
    FULL JOIN (SELECT no_w_id AS w, no_d_id AS d, max(no_o_id) AS last FROM {new_order}
                WHERE no_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS n ON n.w = d_w_id AND n.d = d_id
   WHERE d_next_o_id - 1 IS DISTINCT FROM o.last
      OR (n.w IS NOT NULL AND d_next_o_id - 1 IS DISTINCT FROM n.last)";
"c3" ALWAYS "new orders of a district are numbered without gaps": "
  SELECT count(*), min(format('warehouse %s district %s: %s to %s, %s rows', w, d, first, last, n))
    FROM (SELECT no_w_id AS w, no_d_id AS d, min(no_o_id) AS first, max(no_o_id) AS last, count(*) AS n
            FROM {new_order} WHERE no_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS g
   WHERE last - first + 1 IS DISTINCT FROM n";
"c4" ALWAYS "the sum of O_OL_CNT is the number of order lines of the district": "
  SELECT count(*), min(format('warehouse %s district %s: O_OL_CNT %s, lines %s',
                              coalesce(o.w, l.w), coalesce(o.d, l.d), o.n, l.n))
    FROM (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS n FROM {orders}
           WHERE o_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS o
    FULL JOIN (SELECT w, d, sum(lines) AS n FROM check_line GROUP BY 1, 2) AS l ON l.w = o.w AND l.d = o.d
   WHERE o.n IS DISTINCT FROM l.n";
"c5" ALWAYS "an order has no carrier exactly while it is a new order": "
  SELECT count(*), min(format('warehouse %s district %s order %s: carrier %s, new order %s',
                              coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id),
                              coalesce(o_carrier_id::text, 'none'), no_o_id IS NOT NULL))
    FROM (SELECT o_w_id, o_d_id, o_id, o_carrier_id FROM {orders} WHERE o_w_id BETWEEN $first AND $last) AS o
    FULL JOIN (SELECT no_w_id, no_d_id, no_o_id FROM {new_order} WHERE no_w_id BETWEEN $first AND $last) AS n
      ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
   WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)";
"c6" ALWAYS "O_OL_CNT is the number of lines of the order": "
  SELECT count(*), min(format('warehouse %s district %s order %s: O_OL_CNT %s, lines %s',
                              coalesce(o_w_id, w), coalesce(o_d_id, d), coalesce(o_id, o), o_ol_cnt, lines))
    FROM (SELECT o_w_id, o_d_id, o_id, o_ol_cnt FROM {orders} WHERE o_w_id BETWEEN $first AND $last) AS ord
    FULL JOIN check_line ON w = o_w_id AND d = o_d_id AND o = o_id
   WHERE o_ol_cnt IS DISTINCT FROM lines";
"c7" ALWAYS "lines have a delivery date exactly when their order has a carrier": "
  SELECT count(*), min(format('warehouse %s district %s order %s: carrier %s, %s of %s lines delivered',
                              w, d, o, coalesce(o_carrier_id::text, 'none'), delivered, lines))
    FROM check_line JOIN {orders} ON o_w_id = w AND o_d_id = d AND o_id = o
   WHERE delivered IS DISTINCT FROM CASE WHEN o_carrier_id IS NULL THEN 0 ELSE lines END";
"c8" ALWAYS "W_YTD is the sum of the warehouse's H_AMOUNT": "
  SELECT count(*), min(format('warehouse %s: W_YTD %s, history %s', coalesce(w_id, h.w), w_ytd, h.amount))
    FROM (SELECT w_id, w_ytd FROM {warehouse} WHERE w_id BETWEEN $first AND $last) AS w
    FULL JOIN (SELECT h_w_id AS w, sum(h_amount) AS amount FROM {history}
                WHERE h_w_id BETWEEN $first AND $last GROUP BY 1) AS h ON h.w = w_id
   WHERE w_ytd IS DISTINCT FROM h.amount";
"c9" ALWAYS "D_YTD is the sum of the district's H_AMOUNT": "
  SELECT count(*), min(format('warehouse %s district %s: D_YTD %s, history %s',
                              coalesce(d_w_id, h.w), coalesce(d_id, h.d), d_ytd, h.amount))
    FROM (SELECT d_w_id, d_id, d_ytd FROM {district} WHERE d_w_id BETWEEN $first AND $last) AS d
    FULL JOIN (SELECT h_w_id AS w, h_d_id AS d, sum(h_amount) AS amount FROM {history}
                WHERE h_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS h ON h.w = d_w_id AND h.d = d_id
   WHERE d_ytd IS DISTINCT FROM h.amount";
"c10" ALWAYS "C_BALANCE is the customer's delivered lines less the payments": "
  SELECT count(*), min(format('customer %s/%s/%s: balance %s, delivered %s, paid %s',
                              coalesce(c_w_id, w), coalesce(c_d_id, d), coalesce(c_id, c), c_balance,
                              delivered_amount, paid))
    FROM (SELECT c_w_id, c_d_id, c_id, c_balance FROM {customer} WHERE c_w_id BETWEEN $first AND $last) AS cust
    FULL JOIN check_customer ON w = c_w_id AND d = c_d_id AND c = c_id
   WHERE c_balance IS DISTINCT FROM coalesce(delivered_amount, 0) - coalesce(paid, 0)";
"c11" ALWAYS "orders less new orders less deliveries are 2,100 per district": "
  SELECT count(*), min(format('warehouse %s district %s: %s orders, %s new orders, %s deliveries',
                              coalesce(d_w_id, o.w, c.w), coalesce(d_id, o.d, c.d), o.n, n.n, c.deliveries))
    FROM (SELECT d_w_id, d_id FROM {district} WHERE d_w_id BETWEEN $first AND $last) AS d
    FULL JOIN (SELECT o_w_id AS w, o_d_id AS d, count(*) AS n FROM {orders}
                WHERE o_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS o ON o.w = d_w_id AND o.d = d_id
    FULL JOIN (SELECT c_w_id AS w, c_d_id AS d, sum(c_delivery_cnt) AS deliveries FROM {customer}
                WHERE c_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS c ON c.w = d_w_id AND c.d = d_id
    LEFT JOIN (SELECT no_w_id AS w, no_d_id AS d, count(*) AS n FROM {new_order}
                WHERE no_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS n ON n.w = d_w_id AND n.d = d_id
   WHERE o.n - coalesce(n.n, 0) - c.deliveries IS DISTINCT FROM 2100";
"c12" ALWAYS "C_BALANCE and C_YTD_PAYMENT add up to the customer's delivered lines": "
  SELECT count(*), min(format('customer %s/%s/%s: balance %s, paid %s, delivered %s',
                              c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered_amount))
    FROM {customer} LEFT JOIN check_customer ON w = c_w_id AND d = c_d_id AND c = c_id
   WHERE c_w_id BETWEEN $first AND $last
     AND c_balance + c_ytd_payment IS DISTINCT FROM coalesce(delivered_amount, 0)";
"i1" ALWAYS "S_YTD and S_ORDER_CNT are what the order lines took, item by item": "
  SELECT count(*), min(format('stock %s/%s: S_YTD %s, S_ORDER_CNT %s; lines took %s in %s',
                              coalesce(s_w_id, w), coalesce(s_i_id, i), s_ytd, s_order_cnt, quantity, lines))
    FROM (SELECT s_w_id, s_i_id, s_ytd, s_order_cnt FROM {stock} WHERE s_w_id BETWEEN $first AND $last) AS s
    FULL JOIN check_stock ON w = s_w_id AND i = s_i_id
   WHERE s_ytd IS DISTINCT FROM coalesce(quantity, 0) OR s_order_cnt IS DISTINCT FROM coalesce(lines, 0)";
"i2" ALWAYS "S_REMOTE_CNT is the number of remote lines, item by item": "
  SELECT count(*), min(format('stock %s/%s: S_REMOTE_CNT %s, remote lines %s', s_w_id, s_i_id, s_remote_cnt, remote))
    FROM {stock} LEFT JOIN check_stock ON w = s_w_id AND i = s_i_id
   WHERE s_w_id BETWEEN $first AND $last AND s_remote_cnt IS DISTINCT FROM coalesce(remote, 0)";
"i3" ALWAYS "S_QUANTITY stays between 10 and 100": "
  SELECT count(*), min(format('stock %s/%s: %s', s_w_id, s_i_id, s_quantity))
    FROM {stock} WHERE s_w_id BETWEEN $first AND $last AND (s_quantity BETWEEN 10 AND 100) IS NOT TRUE";
"i4" ALWAYS "C_PAYMENT_CNT is the number of the customer's payments": "
  SELECT count(*), min(format('customer %s/%s/%s: C_PAYMENT_CNT %s, history rows %s',
                              c_w_id, c_d_id, c_id, c_payment_cnt, payments))
    FROM {customer} LEFT JOIN check_customer ON w = c_w_id AND d = c_d_id AND c = c_id
   WHERE c_w_id BETWEEN $first AND $last AND c_payment_cnt IS DISTINCT FROM coalesce(payments, 0)";
"i5" ALWAYS "O_ALL_LOCAL is 1 exactly when all lines are local": "
  SELECT count(*), min(format('warehouse %s district %s order %s: O_ALL_LOCAL %s', w, d, o, o_all_local))
    FROM check_line JOIN {orders} ON o_w_id = w AND o_d_id = d AND o_id = o
   WHERE o_all_local IS DISTINCT FROM CASE WHEN all_local THEN 1 ELSE 0 END";
"i6" ALWAYS "every line has an amount and the district's text of its supplier's stock": "
  SELECT count(*), min(format('warehouse %s district %s order %s line %s', ol_w_id, ol_d_id, ol_o_id, ol_number))
    FROM {order_line}
    LEFT JOIN {stock} ON ol_o_id > 3000 AND s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
   WHERE ol_w_id BETWEEN $first AND $last
     AND (ol_amount IS NULL OR ol_dist_info IS NULL
          OR (ol_o_id > 3000 AND ol_dist_info IS DISTINCT FROM
              CASE ol_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                           WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                           WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                           ELSE s_dist_10 END))";
"i7" ALWAYS "OL_AMOUNT of a new line is quantity times price": "
  SELECT count(*), min(format('warehouse %s district %s order %s line %s: %s for %s of item %s at %s',
                              ol_w_id, ol_d_id, ol_o_id, ol_number, ol_amount, ol_quantity, ol_i_id, i_price))
    FROM {order_line} LEFT JOIN {item} ON i_id = ol_i_id
   WHERE ol_w_id BETWEEN $first AND $last AND ol_o_id > 3000
     AND ol_amount IS DISTINCT FROM ol_quantity * i_price";
"i8" ALWAYS "every order belongs to a customer, every customer has an order and a payment": "
  SELECT count(*), min(format('customer %s/%s/%s: row %s, orders %s, payments %s',
                              coalesce(c_w_id, o.w, p.w), coalesce(c_d_id, o.d, p.d), coalesce(c_id, o.c, p.c),
                              c_id IS NOT NULL, coalesce(o.n, 0), coalesce(p.payments, 0)))
    FROM (SELECT c_w_id, c_d_id, c_id FROM {customer} WHERE c_w_id BETWEEN $first AND $last) AS cust
    FULL JOIN (SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, count(*) AS n FROM {orders}
                WHERE o_w_id BETWEEN $first AND $last GROUP BY 1, 2, 3) AS o
      ON o.w = c_w_id AND o.d = c_d_id AND o.c = c_id
    FULL JOIN check_customer AS p ON p.w = c_w_id AND p.d = c_d_id AND p.c = c_id
   WHERE c_id IS NULL OR o.n IS NULL OR coalesce(p.payments, 0) = 0";
"i9" ALWAYS "the population has the specified number of rows": "
  SELECT count(*), min(format('warehouse %s: %s of %s', w, n, what))
    FROM (SELECT w, (SELECT count(*) FROM {district} WHERE d_w_id = w) AS n, 10 AS wanted, 'districts' AS what
            FROM generate_series($first, $last) AS w
          UNION ALL
          SELECT w, (SELECT count(*) FROM {customer} WHERE c_w_id = w), 30000, 'customers'
            FROM generate_series($first, $last) AS w
          UNION ALL
          SELECT w, (SELECT count(*) FROM {stock} WHERE s_w_id = w), 100000, 'stock rows'
            FROM generate_series($first, $last) AS w
          UNION ALL
          SELECT w, (SELECT count(*) FROM {warehouse} WHERE w_id = w), 1, 'warehouse rows'
            FROM generate_series($first, $last) AS w
          UNION ALL
          SELECT 0, (SELECT count(*) FROM {item}), 100000, 'items') AS counted
   WHERE n <> wanted";
}

#[cfg(test)]
mod tests {
    use super::{CONDITIONS, TableNames};
    use std::collections::BTreeSet;

    #[test]
    fn identities_are_unique_and_texts_complete() {
        let ids: BTreeSet<&str> = CONDITIONS.iter().map(|condition| condition.id).collect();
        assert_eq!(ids.len(), CONDITIONS.len());
        for number in 1..=12 {
            assert!(ids.contains(format!("c{number}").as_str()), "condition {number} is missing");
        }
        for condition in CONDITIONS {
            let sql = condition.sql(&TableNames::underlay());
            assert!(!sql.contains('{'), "{}: a table is not named: {sql}", condition.id);
            assert!(sql.contains("$first"), "{}: not limited to a range", condition.id);
        }
    }
}
