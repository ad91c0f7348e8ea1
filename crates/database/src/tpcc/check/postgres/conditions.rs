//! The conditions as queries: one number = rows in violation, and one of them in words.
//!
//! `c1` to `c12` are the conditions of clause 3.3.2; condition 11 is stated so that it also holds after
//! transactions have run (orders - new orders - deliveries = 2,100). `i1`... cover what the conditions
//! leave open, and known errors of drivers.
//!
//! Texts contain `{table}` for the table names, `$first` and `$last` for the bounds of the warehouse
//! numbers, `$lowest` and `$highest` for the warehouses that must exist, and name the tables of
//! `super::shared`.

use crate::tpcc::check::conditions;

conditions! {
"c1" ALWAYS "W_YTD is the sum of the districts' D_YTD": "
  SELECT count(*), min(format('warehouse %s: W_YTD %s, districts %s', w, w_ytd, ytd))
    FROM (SELECT w_id AS w, w_ytd FROM {warehouse} WHERE w_id BETWEEN $first AND $last) AS warehouse
    FULL JOIN (SELECT w, sum(d_ytd) AS ytd FROM check_district GROUP BY 1) AS district USING (w)
   WHERE w_ytd IS DISTINCT FROM ytd";
"c2" ALWAYS "D_NEXT_O_ID - 1 is the highest O_ID and the highest NO_O_ID": "
  SELECT count(*), min(format('warehouse %s district %s: next %s, orders to %s, new orders to %s',
                              w, d, d_next_o_id, last_order, last_new_order))
    FROM check_district
   WHERE d_next_o_id - 1 IS DISTINCT FROM last_order
      OR (last_new_order IS NOT NULL AND d_next_o_id - 1 IS DISTINCT FROM last_new_order)";
"c3" ALWAYS "new orders of a district are numbered without gaps": "
  SELECT count(*), min(format('warehouse %s district %s: %s to %s, %s rows',
                              w, d, first_new_order, last_new_order, new_orders))
    FROM check_district
   WHERE new_orders > 0 AND last_new_order - first_new_order + 1 IS DISTINCT FROM new_orders";
"c4" ALWAYS "the sum of O_OL_CNT is the number of order lines of the district": "
  SELECT count(*), min(format('warehouse %s district %s: O_OL_CNT %s, lines %s', w, d, wanted_lines, lines))
    FROM check_district
   WHERE wanted_lines IS DISTINCT FROM lines";
"c5" ALWAYS "an order has no carrier exactly while it is a new order": "
  SELECT count(*), min(format('warehouse %s district %s order %s: order row %s, carrier %s, new-order row %s',
                              w, d, o, o_id IS NOT NULL, coalesce(o_carrier_id::text, 'none'),
                              no_o_id IS NOT NULL))
    FROM check_order
   WHERE CASE WHEN o_id IS NULL THEN no_o_id IS NOT NULL
              ELSE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) END";
"c6" ALWAYS "O_OL_CNT is the number of lines of the order": "
  SELECT count(*), min(format('warehouse %s district %s order %s: O_OL_CNT %s, lines %s', w, d, o, o_ol_cnt, lines))
    FROM check_order
   WHERE o_ol_cnt IS DISTINCT FROM lines";
"c7" ALWAYS "lines have a delivery date exactly when their order has a carrier": "
  SELECT count(*), min(format('warehouse %s district %s order %s: carrier %s, %s of %s lines delivered',
                              w, d, o, coalesce(o_carrier_id::text, 'none'), delivered, lines))
    FROM check_order
   WHERE lines > 0 AND delivered IS DISTINCT FROM CASE WHEN o_carrier_id IS NULL THEN 0 ELSE lines END";
"c8" ALWAYS "W_YTD is the sum of the warehouse's H_AMOUNT": "
  SELECT count(*), min(format('warehouse %s: W_YTD %s, history %s', w, w_ytd, paid))
    FROM (SELECT w_id AS w, w_ytd FROM {warehouse} WHERE w_id BETWEEN $first AND $last) AS warehouse
    FULL JOIN (SELECT w, sum(paid) AS paid FROM check_district GROUP BY 1) AS district USING (w)
   WHERE w_ytd IS DISTINCT FROM paid";
"c9" ALWAYS "D_YTD is the sum of the district's H_AMOUNT": "
  SELECT count(*), min(format('warehouse %s district %s: D_YTD %s, history %s', w, d, d_ytd, paid))
    FROM check_district
   WHERE d_ytd IS DISTINCT FROM paid";
"c10" ALWAYS "C_BALANCE is the customer's delivered lines less the payments": "
  SELECT count(*), min(format('customer %s/%s/%s: balance %s, delivered %s, paid %s',
                              w, d, c, c_balance, delivered_amount, paid))
    FROM check_customer
   WHERE c_balance IS DISTINCT FROM coalesce(delivered_amount, 0) - coalesce(paid, 0)";
"c11" ALWAYS "orders less new orders less deliveries are 2,100 per district": "
  SELECT count(*), min(format('warehouse %s district %s: %s orders, %s new orders, %s deliveries',
                              w, d, orders, new_orders, deliveries))
    FROM check_district
   WHERE orders - new_orders - deliveries IS DISTINCT FROM 2100";
"c12" ALWAYS "C_BALANCE and C_YTD_PAYMENT add up to the customer's delivered lines": "
  SELECT count(*), min(format('customer %s/%s/%s: balance %s, paid %s, delivered %s',
                              w, d, c, c_balance, c_ytd_payment, delivered_amount))
    FROM check_customer
   WHERE c_balance + c_ytd_payment IS DISTINCT FROM coalesce(delivered_amount, 0)";
"i1" ALWAYS "S_YTD and S_ORDER_CNT are what the order lines took, item by item": "
  SELECT count(*), min(format('stock %s/%s: S_YTD %s, S_ORDER_CNT %s; lines took %s in %s',
                              w, i, s_ytd, s_order_cnt, quantity, lines))
    FROM check_stock
   WHERE s_ytd IS DISTINCT FROM coalesce(quantity, 0) OR s_order_cnt IS DISTINCT FROM coalesce(lines, 0)";
"i2" ALWAYS "S_REMOTE_CNT is the number of remote lines, item by item": "
  SELECT count(*), min(format('stock %s/%s: S_REMOTE_CNT %s, remote lines %s', w, i, s_remote_cnt, remote))
    FROM check_stock
   WHERE s_remote_cnt IS DISTINCT FROM coalesce(remote, 0)";
"i3" ALWAYS "S_QUANTITY stays between 10 and 100": "
  SELECT count(*), min(format('stock %s/%s: %s', w, i, s_quantity))
    FROM check_stock
   WHERE (s_quantity BETWEEN 10 AND 100) IS NOT TRUE";
"i4" ALWAYS "C_PAYMENT_CNT is the number of the customer's payments": "
  SELECT count(*), min(format('customer %s/%s/%s: C_PAYMENT_CNT %s, history rows %s', w, d, c, c_payment_cnt, payments))
    FROM check_customer
   WHERE c_payment_cnt IS DISTINCT FROM coalesce(payments, 0)";
"i5" ALWAYS "O_ALL_LOCAL is 1 exactly when all lines are local": "
  SELECT count(*), min(format('warehouse %s district %s order %s: O_ALL_LOCAL %s, %s remote lines',
                              w, d, o, o_all_local, remote))
    FROM check_order
   WHERE o_id IS NOT NULL AND o_all_local IS DISTINCT FROM CASE WHEN remote > 0 THEN 0 ELSE 1 END";
"i6" ALWAYS "every line has an amount, and the text of its supplier's stock for the district": "
  SELECT count(*), min(line)
    FROM (SELECT format('warehouse %s district %s order %s: %s lines without amount or text', w, d, o, incomplete)
                   AS line
            FROM check_order WHERE incomplete > 0
          UNION ALL
          SELECT format('warehouse %s district %s order %s line %s: the text of other stock', w, d, o, number)
            FROM check_line WHERE has_wrong_text) AS wrong";
"i7" ALWAYS "OL_AMOUNT of a new line is quantity times price": "
  SELECT count(*), min(format('warehouse %s district %s order %s line %s: %s for %s of item %s at %s',
                              w, d, o, number, amount, quantity, i, price))
    FROM check_line WHERE has_wrong_amount";
"i8" ALWAYS "every order and payment belongs to a customer, every customer has an order and a payment": "
  SELECT count(*), min(format('customer %s/%s/%s: row %s, orders %s, payments %s',
                              w, d, c, c_id IS NOT NULL, coalesce(orders, 0), coalesce(payments, 0)))
    FROM check_customer
   WHERE c_id IS NULL OR orders IS NULL OR payments IS NULL";
"i9" ALWAYS "the tables that never grow have their number of rows": "
  SELECT count(*), min(format('%s: %s instead of %s', what, coalesce(n, 0), coalesce(wanted, 0)))
    FROM (SELECT format(kind, w) AS what, wanted
            FROM generate_series($lowest, $highest) AS w,
                 (VALUES ('rows of warehouse %s', 1), ('districts of warehouse %s', 10),
                         ('customers of warehouse %s', 30000), ('stock of warehouse %s', 100000))
                   AS specified (kind, wanted)
          UNION ALL SELECT 'items', 100000) AS expected
    FULL JOIN (SELECT format('rows of warehouse %s', w_id) AS what, count(*) AS n
                 FROM {warehouse} WHERE w_id BETWEEN $first AND $last GROUP BY w_id
               UNION ALL
               SELECT format('districts of warehouse %s', w), count(d_id) FROM check_district GROUP BY w
               UNION ALL
               SELECT format('customers of warehouse %s', w), sum(customers) FROM check_district GROUP BY w
               UNION ALL
               SELECT format('stock of warehouse %s', s_w_id), count(*)
                 FROM {stock} WHERE s_w_id BETWEEN $first AND $last GROUP BY s_w_id
               UNION ALL SELECT 'items', count(*) FROM {item}) AS counted USING (what)
   WHERE n IS DISTINCT FROM wanted";
"i10" AFTER_LOAD "nothing has run since the load": "
  SELECT count(*), min(format('warehouse %s district %s: next order %s, %s orders, %s new orders from %s, %s payments, \
                               %s deliveries, D_YTD %s',
                              w, d, d_next_o_id, orders, new_orders, first_new_order, payments, deliveries, d_ytd))
    FROM check_district
   WHERE ROW(d_next_o_id, orders, new_orders, first_new_order, payments, deliveries, d_ytd)
         IS DISTINCT FROM ROW(3001, 3000, 900, 2101, 3000, 0, 30000.00)";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::shared::SHARED;
    use super::CONDITIONS;
    use crate::tpcc::TableNames;

    #[test]
    fn identities_are_unique_and_texts_complete() {
        let ids: BTreeSet<&str> = CONDITIONS.iter().map(|condition| condition.id).collect();
        assert_eq!(ids.len(), CONDITIONS.len());
        for number in 1..=12 {
            assert!(ids.contains(format!("c{number}").as_str()), "condition {number} is missing");
        }
        let texts = CONDITIONS.iter().map(|condition| (condition.id, condition.sql));
        for (name, sql) in texts.chain(SHARED.iter().map(|shared| (shared.name, shared.sql))) {
            let sql = TableNames::underlay().insert_into(sql);
            assert!(!sql.contains('{'), "{name}: a table is not named: {sql}");
            let limited = sql.contains("$first") || sql.contains("check_");
            assert!(limited, "{name}: not limited to some warehouses");
        }
    }
}
