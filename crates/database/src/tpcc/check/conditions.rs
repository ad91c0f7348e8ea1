//! The conditions as queries: one number = rows in violation, and one of them in words.
//!
//! `c1` to `c12` are the conditions of clause 3.3.2; condition 11 is stated so that it also holds after
//! transactions have run (orders - new orders - deliveries = 2,100). `i1`... cover what the conditions
//! leave open, and known errors of drivers.
//!
//! For the placeholders see [`super::text`]; the tables `check_...` are made of [`super::sql`]'s queries.

use super::CheckMoment;
use super::condition::Condition;

/// Of every population.
const ALWAYS: &[CheckMoment] = &[CheckMoment::AfterLoad, CheckMoment::AfterRun];
/// Of one that was never used.
const AFTER_LOAD: &[CheckMoment] = &[CheckMoment::AfterLoad];

/// Declares the conditions.
macro_rules! conditions {
    ($($id:literal $moments:ident $title:literal: $sql:literal;)+) => {
        /// All conditions, in the order of their report.
        pub(super) const CONDITIONS: &[Condition] =
            &[$(Condition { id: $id, title: $title, moments: $moments, sql: $sql },)+];
    };
}

conditions! {
"c1" ALWAYS "W_YTD is the sum of the districts' D_YTD": "
  SELECT count(*), min(say('warehouse [w]: W_YTD [w_ytd], districts [ytd]'))
    FROM (SELECT w, max(w_ytd) AS w_ytd, max(ytd) AS ytd
            FROM (SELECT w_id AS w, w_ytd, NULL AS ytd FROM {warehouse} WHERE w_id BETWEEN $first AND $last
                  UNION ALL
                  SELECT w, NULL, sum(d_ytd) FROM check_district GROUP BY w) AS part
           GROUP BY w) AS both_sides
   WHERE NOT (w_ytd <=> ytd)";
"c2" ALWAYS "D_NEXT_O_ID - 1 is the highest O_ID and the highest NO_O_ID": "
  SELECT count(*), min(say('warehouse [w] district [d]: next [d_next_o_id], orders to [last_order], new orders to [last_new_order]'))
    FROM check_district
   WHERE NOT (d_next_o_id - 1 <=> last_order)
      OR (last_new_order IS NOT NULL AND NOT (d_next_o_id - 1 <=> last_new_order))";
"c3" ALWAYS "new orders of a district are numbered without gaps": "
  SELECT count(*), min(say('warehouse [w] district [d]: [first_new_order] to [last_new_order], [new_orders] rows'))
    FROM check_district
   WHERE new_orders > 0 AND NOT (last_new_order - first_new_order + 1 <=> new_orders)";
"c4" ALWAYS "the sum of O_OL_CNT is the number of order lines of the district": "
  SELECT count(*), min(say('warehouse [w] district [d]: O_OL_CNT [wanted_lines], lines [line_count]'))
    FROM check_district
   WHERE NOT (wanted_lines <=> line_count)";
"c5" ALWAYS "an order has no carrier exactly while it is a new order": "
  SELECT count(*), min(say('warehouse [w] district [d] order [o]: order row [o_id], carrier [o_carrier_id], new-order row [no_o_id]'))
    FROM check_order
   WHERE CASE WHEN o_id IS NULL THEN no_o_id IS NOT NULL
              ELSE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) END";
"c6" ALWAYS "O_OL_CNT is the number of lines of the order": "
  SELECT count(*), min(say('warehouse [w] district [d] order [o]: O_OL_CNT [o_ol_cnt], lines [line_count]'))
    FROM check_order
   WHERE NOT (o_ol_cnt <=> line_count)";
"c7" ALWAYS "lines have a delivery date exactly when their order has a carrier": "
  SELECT count(*), min(say('warehouse [w] district [d] order [o]: carrier [o_carrier_id], [delivered] of [line_count] lines delivered'))
    FROM check_order
   WHERE line_count > 0 AND NOT (delivered <=> CASE WHEN o_carrier_id IS NULL THEN 0 ELSE line_count END)";
"c8" ALWAYS "W_YTD is the sum of the warehouse's H_AMOUNT": "
  SELECT count(*), min(say('warehouse [w]: W_YTD [w_ytd], history [paid]'))
    FROM (SELECT w, max(w_ytd) AS w_ytd, max(paid) AS paid
            FROM (SELECT w_id AS w, w_ytd, NULL AS paid FROM {warehouse} WHERE w_id BETWEEN $first AND $last
                  UNION ALL
                  SELECT w, NULL, sum(paid) FROM check_district GROUP BY w) AS part
           GROUP BY w) AS both_sides
   WHERE NOT (w_ytd <=> paid)";
"c9" ALWAYS "D_YTD is the sum of the district's H_AMOUNT": "
  SELECT count(*), min(say('warehouse [w] district [d]: D_YTD [d_ytd], history [paid]'))
    FROM check_district
   WHERE NOT (d_ytd <=> paid)";
"c10" ALWAYS "C_BALANCE is the customer's delivered lines less the payments": "
  SELECT count(*), min(say('customer [w]/[d]/[c]: balance [c_balance], delivered [delivered_amount], paid [paid]'))
    FROM check_customer
   WHERE NOT (c_balance <=> coalesce(delivered_amount, 0) - coalesce(paid, 0))";
"c11" ALWAYS "orders less new orders less deliveries are 2,100 per district": "
  SELECT count(*), min(say('warehouse [w] district [d]: [orders] orders, [new_orders] new orders, [deliveries] deliveries'))
    FROM check_district
   WHERE NOT (orders - new_orders - deliveries <=> 2100)";
"c12" ALWAYS "C_BALANCE and C_YTD_PAYMENT add up to the customer's delivered lines": "
  SELECT count(*), min(say('customer [w]/[d]/[c]: balance [c_balance], paid [c_ytd_payment], delivered [delivered_amount]'))
    FROM check_customer
   WHERE NOT (c_balance + c_ytd_payment <=> coalesce(delivered_amount, 0))";
"i1" ALWAYS "S_YTD and S_ORDER_CNT are what the order lines took, item by item": "
  SELECT count(*), min(say('stock [w]/[i]: S_YTD [s_ytd], S_ORDER_CNT [s_order_cnt]; lines took [quantity] in [line_count]'))
    FROM check_stock
   WHERE NOT (s_ytd <=> coalesce(quantity, 0)) OR NOT (s_order_cnt <=> coalesce(line_count, 0))";
"i2" ALWAYS "S_REMOTE_CNT is the number of remote lines, item by item": "
  SELECT count(*), min(say('stock [w]/[i]: S_REMOTE_CNT [s_remote_cnt], remote lines [remote]'))
    FROM check_stock
   WHERE NOT (s_remote_cnt <=> coalesce(remote, 0))";
"i3" ALWAYS "S_QUANTITY stays between 10 and 100": "
  SELECT count(*), min(say('stock [w]/[i]: [s_quantity]'))
    FROM check_stock
   WHERE (s_quantity BETWEEN 10 AND 100) IS NOT TRUE";
"i4" ALWAYS "C_PAYMENT_CNT is the number of the customer's payments": "
  SELECT count(*), min(say('customer [w]/[d]/[c]: C_PAYMENT_CNT [c_payment_cnt], history rows [payments]'))
    FROM check_customer
   WHERE NOT (c_payment_cnt <=> coalesce(payments, 0))";
"i5" ALWAYS "O_ALL_LOCAL is 1 exactly when all lines are local": "
  SELECT count(*), min(say('warehouse [w] district [d] order [o]: O_ALL_LOCAL [o_all_local], [remote] remote lines'))
    FROM check_order
   WHERE o_id IS NOT NULL AND NOT (o_all_local <=> CASE WHEN remote > 0 THEN 0 ELSE 1 END)";
"i6" ALWAYS "every line has an amount, and the text of its supplier's stock for the district": "
  SELECT count(*), min(line)
    FROM (SELECT say('warehouse [w] district [d] order [o]: [incomplete] lines without amount or text') AS line
            FROM check_order WHERE incomplete > 0
          UNION ALL
          SELECT say('warehouse [w] district [d] order [o] line [number]: the text of other stock')
            FROM check_line WHERE has_wrong_text) AS wrong";
"i7" ALWAYS "OL_AMOUNT of a new line is quantity times price": "
  SELECT count(*), min(say('warehouse [w] district [d] order [o] line [number]: [amount] for [quantity] of item [i] at [price]'))
    FROM check_line WHERE has_wrong_amount";
"i8" ALWAYS "every order and payment belongs to a customer, every customer has an order and a payment": "
  SELECT count(*), min(say('customer [w]/[d]/[c]: row [c_id], orders [orders], payments [payments]'))
    FROM check_customer
   WHERE c_id IS NULL OR orders IS NULL OR payments IS NULL";
"i9" ALWAYS "the tables that never grow have their number of rows": "
  SELECT count(*), min(say('[what]: [n] instead of [wanted]'))
    FROM (SELECT what, sum(n) AS n, sum(wanted) AS wanted
            FROM (SELECT 'items' AS what, count(*) AS n, NULL AS wanted FROM {item}
                  UNION ALL SELECT concat('rows of warehouse ', w), NULL, 1 FROM $warehouses AS a
                  UNION ALL SELECT concat('districts of warehouse ', w), NULL, 10 FROM $warehouses AS b
                  UNION ALL SELECT concat('customers of warehouse ', w), NULL, 30000 FROM $warehouses AS c
                  UNION ALL SELECT concat('stock of warehouse ', w), NULL, 100000 FROM $warehouses AS d
                  UNION ALL SELECT 'items', NULL, 100000
                  UNION ALL SELECT concat('rows of warehouse ', w_id), count(*), NULL
                              FROM {warehouse} WHERE w_id BETWEEN $first AND $last GROUP BY w_id
                  UNION ALL SELECT concat('districts of warehouse ', d_w_id), count(*), NULL
                              FROM {district} WHERE d_w_id BETWEEN $first AND $last GROUP BY d_w_id
                  UNION ALL SELECT concat('customers of warehouse ', w), coalesce(sum(customers), 0), NULL
                              FROM check_district GROUP BY w
                  UNION ALL SELECT concat('stock of warehouse ', s_w_id), count(*), NULL
                              FROM {stock} WHERE s_w_id BETWEEN $first AND $last GROUP BY s_w_id) AS part
           GROUP BY what) AS counted
   WHERE NOT (n <=> wanted)";
"i10" AFTER_LOAD "nothing has run since the load": "
  SELECT count(*), min(say('warehouse [w] district [d]: next order [d_next_o_id], [orders] orders, [new_orders] new orders from [first_new_order], [payments] payments, [deliveries] deliveries, D_YTD [d_ytd]'))
    FROM check_district
   WHERE NOT (d_next_o_id <=> 3001 AND orders <=> 3000 AND new_orders <=> 900 AND first_new_order <=> 2101
              AND payments <=> 3000 AND deliveries <=> 0 AND d_ytd <=> 30000.00)";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::piece::pieces;
    use super::super::sql::dialect;
    use super::super::text::sql_of;
    use super::CONDITIONS;
    use crate::Engine;
    use crate::tpcc::TableNames;

    #[test]
    fn identities_are_unique_and_texts_complete() {
        let ids: BTreeSet<&str> = CONDITIONS.iter().map(|condition| condition.id).collect();
        assert_eq!(ids.len(), CONDITIONS.len());
        for number in 1..=12 {
            assert!(ids.contains(format!("c{number}").as_str()), "condition {number} is missing");
        }
        let piece = pieces(3, 1)[0];
        let tables = TableNames::mapped(|table| format!("x.{table}"));
        for dialect in Engine::ALL.map(dialect) {
            let texts = CONDITIONS.iter().map(|condition| (condition.id, condition.sql));
            for (name, text) in texts.chain(dialect.shared.tables()) {
                let sql = sql_of(text, dialect, &piece, &tables);
                assert!(!sql.contains(['{', '$', '[']), "{name}: not all is replaced: {sql}");
                let limited = text.contains("$first") || text.contains("check_");
                assert!(limited, "{name}: not limited to some warehouses");
            }
        }
    }
}
