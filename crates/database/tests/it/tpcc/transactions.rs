//! What each of the five transactions does to the rows, to the row.

use underlay_database::Engine;
use underlay_database::tpcc::{Mode, Session};
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip};
use underlay_workload::tpcc::{
    CustomerSelector, Delivery, NewOrder, OrderLineInput, OrderStatus, Payment, StockLevel,
    Transaction, UNUSED_ITEM,
};

/// An order of (item, supplying warehouse, quantity) by customer 11.
fn order(warehouse: u32, district: u32, lines: &[(u32, u32, u32)]) -> Transaction {
    let line = |&(item, supply_warehouse, quantity): &(u32, u32, u32)| OrderLineInput {
        item,
        supply_warehouse,
        quantity,
    };
    let lines = lines.iter().map(line).collect();
    Transaction::NewOrder(NewOrder { warehouse, district, customer: 11, lines })
}

fn payment(warehouse: u32, district: u32, customer: CustomerSelector, cents: i64) -> Payment {
    Payment {
        warehouse,
        district,
        customer_warehouse: warehouse,
        customer_district: district,
        customer,
        amount_cents: cents,
    }
}

/// The rows of stock that were ever touched.
const TOUCHED_STOCK: &str = "SELECT format('%s/%s: %s %s %s %s', s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, \
     s_remote_cnt) FROM tpcc.stock WHERE s_order_cnt > 0 ORDER BY s_w_id, s_i_id";

/// S_QUANTITY after taking from it (clause 2.4.2.2).
fn taken(stock: i64, quantity: i64) -> i64 {
    if stock >= quantity + 10 { stock - quantity } else { stock - quantity + 91 }
}

#[test]
fn remote_lines_take_from_the_remote_stock() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    // Items whose stock is just enough, and just not.
    let with = |warehouse: u32, quantity: i64| {
        let sql = format!(
            "SELECT s_i_id FROM tpcc.stock WHERE s_w_id = {warehouse} AND s_quantity = {quantity} \
             ORDER BY s_i_id LIMIT 5"
        );
        database.texts(&sql).iter().map(|item| item.parse().unwrap()).collect::<Vec<u32>>()
    };
    let (enough, short) = (with(1, 15), with(2, 14));
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let (local, remote) = (enough[index], short[index]);
        let mut session = database.session(mode);
        let lines = [(remote, 2, 5), (local, 1, 5), (90_000 + index as u32, 1, 1)];
        let outcome = database.run(&mut session, &order(1, 3, &lines)).unwrap();
        let order_id = outcome.order_id.unwrap();
        assert_eq!((outcome.committed, order_id), (true, 3001 + index as u32));
        let touched = database.texts(TOUCHED_STOCK);
        assert_eq!(touched.len(), 3 * (index + 1), "{mode}: {touched:?}");
        assert!(touched.contains(&format!("1/{local}: 10 5 1 0")), "{mode}: {touched:?}");
        assert!(touched.contains(&format!("2/{remote}: 100 5 1 1")), "{mode}: {touched:?}");
        let sql = format!(
            "SELECT format('%s %s %s %s %s %s', o_c_id, o_ol_cnt, o_all_local, o_carrier_id IS NULL, \
                           no_o_id IS NOT NULL, abs(extract(epoch FROM clock_timestamp() - o_entry_d)) < 60) \
               FROM tpcc.orders LEFT JOIN tpcc.new_order \
                 ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
              WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = {order_id}"
        );
        assert_eq!(database.text(&sql), "11 3 0 t t t", "{mode}");
        // Lines keep the client's numbers, and have the text of their supplier for the home district.
        let sql = format!(
            "SELECT format('%s %s %s %s %s', ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_delivery_d IS NULL) \
               FROM tpcc.order_line JOIN tpcc.stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id \
               JOIN tpcc.item ON i_id = ol_i_id \
              WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = {order_id} \
                AND ol_dist_info = s_dist_03 AND ol_amount = ol_quantity * i_price ORDER BY ol_number"
        );
        let expected = [
            format!("1 {remote} 2 5 t"),
            format!("2 {local} 1 5 t"),
            format!("3 {} 1 1 t", 90_000 + index),
        ];
        assert_eq!(database.texts(&sql), expected, "{mode}");
    }
    database.assert_consistent(None);
}

#[test]
fn the_same_item_twice_counts_twice() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let item = 500 + index as u32;
        let stock =
            database.number(&format!("SELECT s_quantity FROM tpcc.stock WHERE s_i_id = {item}"));
        let mut session = database.session(mode);
        // Three times the same, between others.
        let lines = [(item, 1, 9), (7, 1, 1), (item, 1, 10), (800, 1, 1), (item, 1, 8)];
        let order_id = database.run(&mut session, &order(1, 1, &lines)).unwrap().order_id;
        let left = taken(taken(taken(stock, 9), 10), 8);
        let row = format!("1/{item}: {left} 27 3 0");
        assert!(database.texts(TOUCHED_STOCK).contains(&row), "{mode}: {row}");
        let sql = format!(
            "SELECT string_agg(format('%s:%s:%s', ol_number, ol_i_id, ol_quantity), ' ' ORDER BY ol_number) \
               FROM tpcc.order_line WHERE ol_d_id = 1 AND ol_o_id = {}",
            order_id.unwrap()
        );
        let expected = format!("1:{item}:9 2:7:1 3:{item}:10 4:800:1 5:{item}:8");
        assert_eq!(database.text(&sql), expected, "{mode}");
    }
    database.assert_consistent(None);
}

#[test]
fn an_intended_rollback_does_its_work_and_leaves_nothing() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let before = database.content();
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let item = 100 + index as u32;
        // A row version that some transaction replaced carries its number, even if that was undone.
        let tried = |item: u32, warehouse: u32| {
            database.text(&format!(
                "SELECT xmax::text <> '0' FROM tpcc.stock WHERE s_i_id = {item} AND s_w_id = {warehouse}"
            ))
        };
        assert_eq!((tried(item, 1), tried(item, 2)), ("f".to_string(), "f".to_string()));
        let lines = [(item, 1, 5), (item, 2, 5), (item, 1, 5), (200, 1, 1), (UNUSED_ITEM, 1, 1)];
        let undone = order(1, 2, &lines);
        let mut session = database.session(mode);
        let outcome = database.run(&mut session, &undone).unwrap();
        assert_eq!((outcome.committed, outcome.order_id), (false, None), "{mode}");
        assert_eq!((tried(item, 1), tried(item, 2)), ("t".to_string(), "t".to_string()), "{mode}");
        let outcome = database.run(&mut session, &order(1, 2, &[(UNUSED_ITEM, 2, 1)])).unwrap();
        assert!(!outcome.committed, "{mode}");
    }
    assert_eq!(database.content(), before);
    // The number that was given back is given to the next: no gaps.
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let mut session = database.session(mode);
        database.run(&mut session, &order(1, 2, &[(1, 1, 1), (UNUSED_ITEM, 1, 1)])).unwrap();
        let outcome = database.run(&mut session, &order(1, 2, &[(1, 1, 1)])).unwrap();
        assert_eq!(outcome.order_id, Some(3001 + index as u32), "{mode}");
    }
    database.assert_consistent(None);
}

/// Names of warehouse 1, district 5 that one, two, three, four and five customers have, and the number of
/// the customer in the middle, found another way than the transactions find it.
fn names_with_middle(database: &Database) -> Vec<(String, i64, i64)> {
    (1..=5)
        .map(|count| {
            let name = database.text(&format!(
                "SELECT min(c_last) FROM (SELECT c_last FROM tpcc.customer WHERE c_w_id = 1 AND c_d_id = 5 \
                  GROUP BY 1 HAVING count(*) = {count}) AS name"
            ));
            let place = (count + 1) / 2;
            let middle = database.number(&format!(
                "SELECT c_id FROM (SELECT c_id, row_number() OVER (ORDER BY c_first) AS place \
                   FROM tpcc.customer WHERE c_w_id = 1 AND c_d_id = 5 AND c_last = '{name}') AS named \
                  WHERE place = {place}"
            ));
            (name, count, middle)
        })
        .collect()
}

#[test]
fn a_payment_by_name_is_for_the_customer_in_the_middle() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let mut cents = 100_000;
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        for (name, count, middle) in names_with_middle(&database) {
            cents += 1;
            let by_name = CustomerSelector::ByLastName(name);
            let paid = Payment {
                customer_warehouse: 1,
                customer_district: 5,
                ..payment(2, 7, by_name, cents)
            };
            database.run(&mut session, &Transaction::Payment(paid)).unwrap();
            let sql = format!(
                "SELECT format('%s %s %s %s %s', h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id) \
                   FROM tpcc.history WHERE h_amount = {cents} / 100.0"
            );
            assert_eq!(database.text(&sql), format!("{middle} 5 1 7 2"), "{mode}, one of {count}");
        }
    }
    database.assert_consistent(None);
}

#[test]
fn a_payment_moves_money_and_notes_bad_credit() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let customer = |credit: &str, place: usize| {
        database.number(&format!(
            "SELECT c_id FROM tpcc.customer WHERE c_w_id = 2 AND c_d_id = 9 AND c_credit = '{credit}' \
              ORDER BY c_id LIMIT 1 OFFSET {place}"
        ))
    };
    let state = |id: i64| {
        database.text(&format!(
            "SELECT format('%s %s %s %s', c_balance, c_ytd_payment, c_payment_cnt, c_data) FROM tpcc.customer \
              WHERE c_w_id = 2 AND c_d_id = 9 AND c_id = {id}"
        ))
    };
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let mut session = database.session(mode);
        for credit in ["GC", "BC"] {
            let id = customer(credit, index);
            let data = state(id).split_once("10.00 1 ").unwrap().1.to_string();
            let by_id = CustomerSelector::ById(id as u32);
            let paid = Payment {
                customer_warehouse: 2,
                customer_district: 9,
                ..payment(1, 4, by_id, 123_456)
            };
            database.run(&mut session, &Transaction::Payment(paid)).unwrap();
            let data = match credit {
                "BC" => format!("{id} 9 2 4 1 1234.56|{data}").chars().take(500).collect(),
                _ => data,
            };
            assert_eq!(state(id), format!("-1244.56 1244.56 2 {data}"), "{mode} {credit}");
        }
    }
    // Two modes, two payments each, all through warehouse 1, district 4.
    let sums = "SELECT w_ytd || ' ' || d_ytd FROM tpcc.warehouse JOIN tpcc.district ON d_w_id = w_id \
                 WHERE w_id = 1 AND d_id = 4";
    assert_eq!(database.text(sums), "304938.24 34938.24");
    let text = "SELECT DISTINCT h_data = w_name || '    ' || d_name FROM tpcc.history \
          JOIN tpcc.warehouse ON w_id = h_w_id JOIN tpcc.district ON d_w_id = h_w_id AND d_id = h_d_id \
         WHERE h_amount = 1234.56";
    assert_eq!(database.texts(text), ["t"]);
    database.assert_consistent(None);
}

#[test]
fn a_delivery_takes_the_oldest_order_of_each_district() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    // Nothing to deliver in district 3.
    database.execute(
        "DELETE FROM tpcc.order_line WHERE ol_w_id = 2 AND ol_d_id = 3 AND ol_o_id > 2100; \
         DELETE FROM tpcc.orders WHERE o_w_id = 2 AND o_d_id = 3 AND o_id > 2100; \
         DELETE FROM tpcc.new_order WHERE no_w_id = 2 AND no_d_id = 3; \
         UPDATE tpcc.district SET d_next_o_id = 2101 WHERE d_w_id = 2 AND d_id = 3",
    );
    for (index, mode) in Mode::ALL.into_iter().enumerate() {
        let order_id = 2101 + index;
        let owed = database.texts(&format!(
            "SELECT format('%s %s %s', o_d_id, o_c_id, sum(ol_amount) - 10) FROM tpcc.orders \
               JOIN tpcc.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
              WHERE o_w_id = 2 AND o_id = {order_id} GROUP BY o_d_id, o_c_id ORDER BY o_d_id"
        ));
        let carrier = 6 + index;
        let mut session = database.session(mode);
        let delivery = Delivery { warehouse: 2, carrier: carrier as u32 };
        let outcome = database.run(&mut session, &Transaction::Delivery(delivery)).unwrap();
        assert_eq!((outcome.committed, outcome.skipped_deliveries), (true, 1), "{mode}");
        let delivered = format!(
            "SELECT format('%s %s %s', o_d_id, c_id, c_balance) FROM tpcc.orders \
               JOIN tpcc.customer ON c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id \
              WHERE o_w_id = 2 AND o_id = {order_id} AND o_carrier_id = {carrier} AND c_delivery_cnt = 1 \
              ORDER BY o_d_id"
        );
        assert_eq!(database.texts(&delivered), owed, "{mode}");
        assert_eq!(owed.len(), 9);
        let oldest =
            "SELECT DISTINCT min(no_o_id) FROM tpcc.new_order WHERE no_w_id = 2 GROUP BY no_d_id";
        assert_eq!(database.texts(oldest), [(order_id + 1).to_string()], "{mode}");
    }
    let others = "SELECT count(*) FROM tpcc.new_order WHERE no_w_id = 1";
    assert_eq!(database.number(others), 9_000);
}

/// Calls a function and returns columns of its row.
fn call(database: &Database, columns: &str, function: &str) -> String {
    database.text(&format!("SELECT concat_ws(' ', {columns}) FROM tpcc.{function}"))
}

#[test]
fn an_order_status_is_the_latest_order_of_the_customer() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    for (name, count, middle) in names_with_middle(&database) {
        let by_name = format!("order_status_transaction(1, 5, NULL, '{name}')");
        assert_eq!(call(&database, "out_c_id", &by_name), middle.to_string(), "one of {count}");
    }
    let mut session = database.session(Mode::Procedures);
    for lines in [&[(1, 1, 1)][..], &[(30, 2, 4), (20, 1, 5), (30, 2, 6)]] {
        database.run(&mut session, &order(1, 5, lines)).unwrap();
    }
    let columns = "out_c_id, out_o_id, out_carrier IS NULL, out_item, out_supply, out_quantity, \
                   out_delivery_d[1] IS NULL, cardinality(out_amount), out_balance";
    let latest = call(&database, columns, "order_status_transaction(1, 5, 11, NULL)");
    assert_eq!(latest, "11 3002 t {30,20,30} {2,1,2} {4,5,6} t 3 -10.00");
    let expected = database.text(
        "SELECT concat_ws(' ', c_first, c_middle, c_last, array_agg(ol_amount ORDER BY ol_number), o_entry_d) \
           FROM tpcc.customer JOIN tpcc.orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
           JOIN tpcc.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
          WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 11 AND o_id = 3002 \
          GROUP BY c_first, c_middle, c_last, o_entry_d",
    );
    let columns = "out_first, out_middle, out_last, out_amount, out_entry_d";
    assert_eq!(call(&database, columns, "order_status_transaction(1, 5, 11, NULL)"), expected);
    // Both modes ask without changing anything, also for somebody who never ordered.
    database.execute(
        "UPDATE tpcc.orders SET o_c_id = 12 WHERE o_w_id = 1 AND o_d_id = 6 AND o_c_id = 13",
    );
    assert_eq!(
        call(&database, "out_c_id, out_o_id", "order_status_transaction(1, 6, 13, NULL)"),
        "13"
    );
    let before = database.content();
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        let (name, ..) = names_with_middle(&database).remove(3);
        for customer in [CustomerSelector::ById(13), CustomerSelector::ByLastName(name)] {
            let status = OrderStatus { warehouse: 1, district: 6, customer };
            // The name is of district 5; in district 6 somebody has it as well.
            let outcome = database.run(&mut session, &Transaction::OrderStatus(status)).unwrap();
            assert!(outcome.committed, "{mode}");
        }
    }
    assert_eq!(database.content(), before);
}

#[test]
fn a_stock_level_counts_items_of_the_last_twenty_orders() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let mut session = database.session(Mode::Procedures);
    // A remote line: its item counts by the stock of the home warehouse, and once however often it occurs.
    for _ in 0..3 {
        database.run(&mut session, &order(2, 8, &[(40, 1, 1), (41, 2, 1), (40, 2, 1)])).unwrap();
    }
    database.execute("UPDATE tpcc.stock SET s_quantity = 12 WHERE s_w_id = 2 AND s_i_id = 40");
    let before = database.content();
    let mut counts = Vec::new();
    for threshold in [10, 13, 20, 101] {
        let expected = database.text(&format!(
            "SELECT count(*) FROM tpcc.stock WHERE s_w_id = 2 AND s_quantity < {threshold} AND s_i_id IN \
              (SELECT ol_i_id FROM tpcc.order_line WHERE ol_w_id = 2 AND ol_d_id = 8 \
                  AND ol_o_id BETWEEN 3003 - 19 AND 3003)"
        ));
        let function = format!("stock_level_transaction(2, 8, {threshold})");
        assert_eq!(call(&database, "out_low_stock", &function), expected, "{threshold}");
        counts.push(expected.parse::<u32>().unwrap());
    }
    assert!(counts.is_sorted() && counts[0] == 0 && counts[1] > 0 && counts[3] > 100, "{counts:?}");
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        let level = StockLevel { warehouse: 2, district: 8, threshold: 15 };
        assert!(database.run(&mut session, &Transaction::StockLevel(level)).unwrap().committed);
    }
    assert_eq!(database.content(), before);
}

#[test]
fn a_new_order_answers_with_all_that_the_specification_asks_for() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    // Both texts contain ORIGINAL, one of them does, none does.
    let original = |item: u32, text: &str, stock_text: &str| {
        database.execute(&format!(
            "UPDATE tpcc.item SET i_data = '{text}' WHERE i_id = {item}; \
             UPDATE tpcc.stock SET s_data = '{stock_text}', s_quantity = 50 WHERE s_i_id = {item}"
        ));
    };
    original(61, "an ORIGINAL item", "ORIGINAL");
    original(62, "an ORIGINAL item", "original");
    original(63, "copy", "copy");
    let answer = database.text(
        "SELECT concat_ws(' ', out_o_id, out_line, out_stock, out_brand_generic, out_item_name, out_price, out_amount, out_last, \
                          out_credit, out_discount, out_w_tax, out_d_tax, out_total) \
           FROM tpcc.new_order_transaction(2, 6, 77, '{3,1,2}', '{61,62,63}', '{2,2,2}', '{4,5,6}', '{1,1,1}')",
    );
    let expected = database.text(
        "SELECT concat_ws(' ', 3001, '{3,1,2}', '{46,45,44}', '{B,G,G}', array_agg(i_name ORDER BY i_id), \
                          array_agg(i_price ORDER BY i_id), array_agg(i_price * (i_id - 57) ORDER BY i_id), c_last, \
                          c_credit, c_discount, w_tax, d_tax, \
                          round(sum(i_price * (i_id - 57)) * (1 - c_discount) * (1 + w_tax + d_tax), 2)) \
           FROM tpcc.item, tpcc.customer JOIN tpcc.warehouse ON w_id = c_w_id \
           JOIN tpcc.district ON d_w_id = c_w_id AND d_id = c_d_id \
          WHERE i_id IN (61, 62, 63) AND c_w_id = 2 AND c_d_id = 6 AND c_id = 77 \
          GROUP BY c_last, c_credit, c_discount, w_tax, d_tax",
    );
    assert_eq!(answer, expected);
}

#[test]
fn a_customer_who_does_not_exist_is_an_error_and_changes_nothing() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    let before = database.content();
    let nobody = || CustomerSelector::ByLastName("NOBODY".to_string());
    for mode in Mode::ALL {
        let mut session = database.session(mode);
        let paid = Transaction::Payment(payment(1, 1, nobody(), 100));
        let asked = OrderStatus { warehouse: 1, district: 1, customer: nobody() };
        for transaction in [paid, Transaction::OrderStatus(asked)] {
            let error = database.run(&mut session, &transaction).unwrap_err();
            assert!(!error.commit_unknown, "{mode}: {error:?}");
        }
        let ordered = Transaction::NewOrder(NewOrder {
            warehouse: 1,
            district: 1,
            customer: 3_001,
            lines: vec![OrderLineInput { item: 1, supply_warehouse: 1, quantity: 1 }],
        });
        assert!(!database.run(&mut session, &ordered).unwrap_err().commit_unknown, "{mode}");
        still_works(&database, &mut session);
    }
    assert_eq!(database.content(), before);
}

/// After an error the session carries out the next transaction.
fn still_works(database: &Database, session: &mut Session) {
    let level = StockLevel { warehouse: 1, district: 1, threshold: 10 };
    assert!(database.run(session, &Transaction::StockLevel(level)).unwrap().committed);
}
