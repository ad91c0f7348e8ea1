//! PostgreSQL's texts. A piece is looked at in one transaction, which sees one state of the database.

use super::dialect::{Dialect, SharedQueries};
use crate::postgres::CHECK_SETTINGS;

pub(super) const DIALECT: Dialect = Dialect {
    settings: &[CHECK_SETTINGS],
    rights: &[],
    // Writing, for the temporary tables: also where the default is to refuse writes. The rollback removes them.
    begin: &["BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE"],
    end: &["ROLLBACK"],
    begin_part: &["SAVEPOINT part"],
    undo_part: &["ROLLBACK TO part"],
    temporary_table: &["CREATE TEMPORARY TABLE {name} AS {query}"],
    fingerprint: None,
    null_safe_equal: "IS NOT DISTINCT FROM",
    shared: SharedQueries {
        order: "
  SELECT w, d, o, o_id, c, o_carrier_id, o_ol_cnt, o_all_local, line_count, delivered, delivered_amount, remote,
         incomplete, no_o_id
    FROM (SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_id, o_c_id AS c, o_carrier_id, o_ol_cnt, o_all_local
            FROM {orders} WHERE o_w_id BETWEEN $first AND $last) AS ordered
    FULL JOIN (SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS line_count,
                      count(ol_delivery_d) AS delivered,
                      sum(ol_amount) FILTER (WHERE ol_delivery_d IS NOT NULL) AS delivered_amount,
                      count(*) FILTER (WHERE ol_supply_w_id IS DISTINCT FROM ol_w_id) AS remote,
                      count(*) FILTER (WHERE ol_amount IS NULL OR ol_dist_info IS NULL) AS incomplete
                 FROM {order_line} WHERE ol_w_id BETWEEN $first AND $last GROUP BY 1, 2, 3) AS line
      USING (w, d, o)
    FULL JOIN (SELECT no_w_id AS w, no_d_id AS d, no_o_id AS o, no_o_id
                 FROM {new_order} WHERE no_w_id BETWEEN $first AND $last) AS announced USING (w, d, o)",
        customer: "
  SELECT w, d, c, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, orders, delivered_amount,
         payments, paid
    FROM (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_id, c_balance, c_ytd_payment, c_payment_cnt,
                 c_delivery_cnt
            FROM {customer} WHERE c_w_id BETWEEN $first AND $last) AS customer
    FULL JOIN (SELECT w, d, c, count(*) AS orders, sum(delivered_amount) AS delivered_amount
                 FROM check_order WHERE o_id IS NOT NULL GROUP BY 1, 2, 3) AS ordered USING (w, d, c)
    FULL JOIN (SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, count(*) AS payments, sum(h_amount) AS paid
                 FROM {history} WHERE h_c_w_id BETWEEN $first AND $last GROUP BY 1, 2, 3) AS paid
      USING (w, d, c)",
        district: "
  SELECT w, d, d_id, d_next_o_id, d_ytd, orders, last_order, wanted_lines, line_count, new_orders, first_new_order,
         last_new_order, customers, deliveries, payments, paid
    FROM (SELECT d_w_id AS w, d_id AS d, d_id, d_next_o_id, d_ytd
            FROM {district} WHERE d_w_id BETWEEN $first AND $last) AS district
    FULL JOIN (SELECT w, d, count(o_id) AS orders, max(o_id) AS last_order, sum(o_ol_cnt) AS wanted_lines,
                      sum(line_count) AS line_count, count(no_o_id) AS new_orders, min(no_o_id) AS first_new_order,
                      max(no_o_id) AS last_new_order
                 FROM check_order GROUP BY 1, 2) AS ordered USING (w, d)
    FULL JOIN (SELECT w, d, count(c_id) AS customers, sum(c_delivery_cnt) AS deliveries
                 FROM check_customer GROUP BY 1, 2) AS customer USING (w, d)
    FULL JOIN (SELECT h_w_id AS w, h_d_id AS d, count(*) AS payments, sum(h_amount) AS paid
                 FROM {history} WHERE h_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS history USING (w, d)",
        stock: "
  SELECT w, i, s_quantity, s_ytd, s_order_cnt, s_remote_cnt, quantity, line_count, remote
    FROM (SELECT s_w_id AS w, s_i_id AS i, s_quantity, s_ytd, s_order_cnt, s_remote_cnt
            FROM {stock} WHERE s_w_id BETWEEN $first AND $last) AS stock
    FULL JOIN (SELECT ol_supply_w_id AS w, ol_i_id AS i, sum(ol_quantity) AS quantity, count(*) AS line_count,
                      count(*) FILTER (WHERE ol_supply_w_id IS DISTINCT FROM ol_w_id) AS remote
                 FROM {district} JOIN {order_line}
                   ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id > 3000
                WHERE ol_supply_w_id BETWEEN $first AND $last GROUP BY 1, 2) AS taken USING (w, i)
   WHERE s_ytd IS DISTINCT FROM coalesce(quantity, 0) OR s_order_cnt IS DISTINCT FROM coalesce(line_count, 0)
      OR s_remote_cnt IS DISTINCT FROM coalesce(remote, 0) OR (s_quantity BETWEEN 10 AND 100) IS NOT TRUE",
        line: "
  SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, ol_number AS number, ol_i_id AS i, ol_quantity AS quantity,
         ol_amount AS amount, i_price AS price,
         ol_amount IS DISTINCT FROM ol_quantity * i_price AS has_wrong_amount,
         ol_dist_info IS DISTINCT FROM dist_info AS has_wrong_text
    FROM {district}
    JOIN {order_line} ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id > 3000
    LEFT JOIN {item} ON i_id = ol_i_id
    LEFT JOIN (SELECT * FROM {stock} WHERE s_w_id BETWEEN $first AND $last) AS stock
      ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
    CROSS JOIN LATERAL (
      SELECT CASE ol_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                          WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                          WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                          ELSE s_dist_10 END AS dist_info) AS supplier
   WHERE ol_supply_w_id BETWEEN $first AND $last
     AND (ol_amount IS DISTINCT FROM ol_quantity * i_price OR ol_dist_info IS DISTINCT FROM dist_info)",
    },
};
