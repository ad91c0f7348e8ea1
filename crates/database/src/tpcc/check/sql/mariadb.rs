//! The texts of MariaDB and MySQL.
//!
//! For a consistent state over one transaction, the server would lock every row that a temporary table is made from. So
//! each statement sees its own state, and the fingerprint tells whether another session wrote in the meantime.
//!
//! This SQL has no full join: the two sides are put below each other with nulls for what the other side has, and grouped by
//! what they have in common.

use super::dialect::{Dialect, SharedQueries};

pub(super) const DIALECT: Dialect = Dialect {
    // No limit that an account may have for its work, and numbers as the tables hold them.
    settings: &[
        "SET NAMES latin1 COLLATE latin1_bin",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION autocommit = 1, innodb_lock_wait_timeout = 3600, sql_mode = 'STRICT_ALL_TABLES' \
         /*M!100100 , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */",
    ],
    rights: &[
        "CREATE TEMPORARY TABLE check_rights (nothing int) ENGINE=MyISAM",
        "DROP TEMPORARY TABLE check_rights",
    ],
    begin: &[],
    end: &[],
    begin_part: &[],
    undo_part: &[],
    // Not InnoDB: nothing of this is to be logged, or to push the database out of its cache.
    temporary_table: &[
        "DROP TEMPORARY TABLE IF EXISTS {name}",
        "CREATE TEMPORARY TABLE {name} ENGINE=MyISAM AS {query}",
    ],
    fingerprint: Some(
        "SELECT concat_ws(' ', (SELECT sum(d_next_o_id) FROM {district}), \
         (SELECT sum(d_ytd) FROM {district}), (SELECT count(*) FROM {new_order}))",
    ),
    null_safe_equal: "<=>",
    shared: SharedQueries {
        order: "
  SELECT w, d, o, max(o_id) AS o_id, max(c) AS c, max(o_carrier_id) AS o_carrier_id, max(o_ol_cnt) AS o_ol_cnt,
         max(o_all_local) AS o_all_local, max(line_count) AS line_count, max(delivered) AS delivered,
         max(delivered_amount) AS delivered_amount, max(remote) AS remote, max(incomplete) AS incomplete,
         max(no_o_id) AS no_o_id
    FROM (SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_id, o_c_id AS c, o_carrier_id, o_ol_cnt, o_all_local,
                 NULL AS line_count, NULL AS delivered, NULL AS delivered_amount, NULL AS remote,
                 NULL AS incomplete, NULL AS no_o_id
            FROM {orders} WHERE o_w_id BETWEEN $first AND $last
          UNION ALL
          SELECT ol_w_id, ol_d_id, ol_o_id, NULL, NULL, NULL, NULL, NULL, count(*), count(ol_delivery_d),
                 sum(CASE WHEN ol_delivery_d IS NOT NULL THEN ol_amount END),
                 sum(NOT (ol_supply_w_id <=> ol_w_id)), sum(ol_amount IS NULL OR ol_dist_info IS NULL), NULL
            FROM {order_line} WHERE ol_w_id BETWEEN $first AND $last GROUP BY ol_w_id, ol_d_id, ol_o_id
          UNION ALL
          SELECT no_w_id, no_d_id, no_o_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, no_o_id
            FROM {new_order} WHERE no_w_id BETWEEN $first AND $last) AS part
   GROUP BY w, d, o",
        customer: "
  SELECT w, d, c, max(c_id) AS c_id, max(c_balance) AS c_balance, max(c_ytd_payment) AS c_ytd_payment,
         max(c_payment_cnt) AS c_payment_cnt, max(c_delivery_cnt) AS c_delivery_cnt, max(orders) AS orders,
         max(delivered_amount) AS delivered_amount, max(payments) AS payments, max(paid) AS paid
    FROM (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_id, c_balance, c_ytd_payment, c_payment_cnt,
                 c_delivery_cnt, NULL AS orders, NULL AS delivered_amount, NULL AS payments, NULL AS paid
            FROM {customer} WHERE c_w_id BETWEEN $first AND $last
          UNION ALL
          SELECT w, d, c, NULL, NULL, NULL, NULL, NULL, count(*), sum(delivered_amount), NULL, NULL
            FROM check_order WHERE o_id IS NOT NULL GROUP BY w, d, c
          UNION ALL
          SELECT h_c_w_id, h_c_d_id, h_c_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*), sum(h_amount)
            FROM {history} WHERE h_c_w_id BETWEEN $first AND $last GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS part
   GROUP BY w, d, c",
        district: "
  SELECT w, d, max(d_id) AS d_id, max(d_next_o_id) AS d_next_o_id, max(d_ytd) AS d_ytd, max(orders) AS orders,
         max(last_order) AS last_order, max(wanted_lines) AS wanted_lines, max(line_count) AS line_count,
         max(new_orders) AS new_orders, max(first_new_order) AS first_new_order,
         max(last_new_order) AS last_new_order, max(customers) AS customers, max(deliveries) AS deliveries,
         max(payments) AS payments, max(paid) AS paid
    FROM (SELECT d_w_id AS w, d_id AS d, d_id, d_next_o_id, d_ytd, NULL AS orders, NULL AS last_order,
                 NULL AS wanted_lines, NULL AS line_count, NULL AS new_orders, NULL AS first_new_order,
                 NULL AS last_new_order, NULL AS customers, NULL AS deliveries, NULL AS payments, NULL AS paid
            FROM {district} WHERE d_w_id BETWEEN $first AND $last
          UNION ALL
          SELECT w, d, NULL, NULL, NULL, count(o_id), max(o_id), sum(o_ol_cnt), sum(line_count), count(no_o_id),
                 min(no_o_id), max(no_o_id), NULL, NULL, NULL, NULL
            FROM check_order GROUP BY w, d
          UNION ALL
          SELECT w, d, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(c_id),
                 sum(c_delivery_cnt), NULL, NULL
            FROM check_customer GROUP BY w, d
          UNION ALL
          SELECT h_w_id, h_d_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                 count(*), sum(h_amount)
            FROM {history} WHERE h_w_id BETWEEN $first AND $last GROUP BY h_w_id, h_d_id) AS part
   GROUP BY w, d",
        stock: "
  SELECT w, i, max(s_quantity) AS s_quantity, max(s_ytd) AS s_ytd, max(s_order_cnt) AS s_order_cnt,
         max(s_remote_cnt) AS s_remote_cnt, max(quantity) AS quantity, max(line_count) AS line_count,
         max(remote) AS remote
    FROM (SELECT s_w_id AS w, s_i_id AS i, s_quantity, s_ytd, s_order_cnt, s_remote_cnt, NULL AS quantity,
                 NULL AS line_count, NULL AS remote
            FROM {stock} WHERE s_w_id BETWEEN $first AND $last
          UNION ALL
          SELECT ol_supply_w_id, ol_i_id, NULL, NULL, NULL, NULL, sum(ol_quantity), count(*),
                 sum(NOT (ol_supply_w_id <=> ol_w_id))
            FROM {district} STRAIGHT_JOIN {order_line}
              ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id > 3000
           WHERE ol_supply_w_id BETWEEN $first AND $last GROUP BY ol_supply_w_id, ol_i_id) AS part
   GROUP BY w, i
  HAVING NOT (s_ytd <=> coalesce(quantity, 0)) OR NOT (s_order_cnt <=> coalesce(line_count, 0))
      OR NOT (s_remote_cnt <=> coalesce(remote, 0)) OR s_quantity IS NULL OR s_quantity NOT BETWEEN 10 AND 100",
        line: "
  SELECT * FROM (
    SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, ol_number AS number, ol_i_id AS i, ol_quantity AS quantity,
           ol_amount AS amount, i_price AS price,
           NOT (ol_amount <=> ol_quantity * i_price) AS has_wrong_amount,
           NOT (ol_dist_info <=> CASE ol_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                                              WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                                              WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                                              ELSE s_dist_10 END) AS has_wrong_text
      FROM {district}
      STRAIGHT_JOIN {order_line} ON ol_w_id = d_w_id AND ol_d_id = d_id AND ol_o_id > 3000
      LEFT JOIN {item} ON i_id = ol_i_id
      LEFT JOIN {stock} ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
     WHERE ol_supply_w_id BETWEEN $first AND $last) AS line
   WHERE has_wrong_amount OR has_wrong_text",
    },
};
