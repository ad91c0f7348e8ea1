//! Many sessions at once: nothing is lost, nothing is done twice, nobody waits for himself.

use futures_util::future::join_all;
use underlay_core::RootSeed;
use underlay_database::Engine;
use underlay_database::tpcc::{Mode, Session};
use underlay_testbed::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, or_skip};
use underlay_workload::tpcc::{Delivery, Ledger, Terminal, Transaction};

const SESSIONS: u64 = 8;
const TRANSACTIONS_PER_SESSION: usize = 250;

/// What one session did.
#[derive(Default)]
struct Done {
    new_orders: u64,
    rollbacks: u64,
    ledger: Ledger,
}

#[test]
fn the_mix_of_many_sessions_keeps_every_condition() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, TWO_WAREHOUSES));
    let before = database.order_numbers();
    let mut ledger = Ledger::new();
    let (mut new_orders, mut rollbacks) = (0, 0);
    for (mode, inputs) in [(Mode::Procedures, RootSeed(1)), (Mode::Statements, RootSeed(2))] {
        let done = database
            .bed
            .runtime
            .block_on(join_all((0..SESSIONS).map(|user| drive(&database, mode, user, inputs))));
        for one in done {
            ledger.merge(&one.ledger);
            new_orders += one.new_orders;
            rollbacks += one.rollbacks;
        }
    }
    // 16 sessions, of whose transactions 10 in 23 are new orders, 1 % of which are undone.
    assert!(new_orders > 1_500 && (5..60).contains(&rollbacks), "{new_orders}, {rollbacks}");
    assert_eq!(ledger.acknowledged_count(), new_orders);
    assert_eq!(database.order_numbers().sum() - before.sum(), new_orders);
    database.assert_consistent(Some((&ledger, &before)));
    // Remote lines and payments happened, or the conditions about them proved nothing.
    let remote = "SELECT (SELECT count(*) FROM tpcc.order_line WHERE ol_supply_w_id <> ol_w_id) > 50 \
                     AND (SELECT count(*) FROM tpcc.history WHERE h_c_w_id <> h_w_id) > 50";
    assert_eq!(database.text(remote), "t");
}

/// The transactions of one terminal. Any error fails the test: rows are locked in one order, so that not even
/// a deadlock happens.
async fn drive(database: &Database, mode: Mode, user: u64, inputs: RootSeed) -> Done {
    let parameters = database.parameters();
    let mut session = Session::connect(&database.target, &parameters, mode).await.unwrap();
    let mut terminal = Terminal::with_inputs(&parameters, user, inputs);
    let mut done = Done::default();
    for _ in 0..TRANSACTIONS_PER_SESSION {
        let transaction = terminal.next();
        let outcome = session.run(&transaction).await.unwrap();
        let Transaction::NewOrder(order) = transaction else {
            assert!(outcome.committed && outcome.order_id.is_none());
            continue;
        };
        assert_eq!(outcome.committed, !order.rolls_back());
        match outcome.order_id {
            Some(id) => {
                done.new_orders += 1;
                done.ledger.acknowledge(order.warehouse, order.district, id);
            }
            None => done.rollbacks += 1,
        }
    }
    done
}

#[test]
fn concurrent_deliveries_deliver_each_order_once() {
    for mode in Mode::ALL {
        let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
        deliver_all_but(&database, 20);
        let oldest =
            "SELECT DISTINCT min(no_o_id) || ' ' || count(*) FROM tpcc.new_order GROUP BY no_d_id";
        assert_eq!(database.texts(oldest), ["2981 20"]);
        // 24 deliveries for 20 orders in each district: four find none.
        let skipped = deliver(&database, mode, 3);
        assert_eq!(skipped, 4 * 10, "{mode}");
        assert_eq!(database.number("SELECT count(*) FROM tpcc.new_order"), 0, "{mode}");
        database.assert_consistent(None);
    }
}

#[test]
fn concurrent_deliveries_take_the_oldest_first() {
    let database = or_skip!(Database::loaded(Engine::Postgresql, ONE_WAREHOUSE));
    for mode in Mode::ALL {
        assert_eq!(deliver(&database, mode, 5), 0, "{mode}");
    }
    // 80 deliveries took 80 orders of each district, without a gap.
    let left = "SELECT DISTINCT min(no_o_id) || ' ' || max(no_o_id) || ' ' || count(*) FROM tpcc.new_order GROUP BY no_d_id";
    assert_eq!(database.texts(left), ["2181 3000 820"]);
    database.assert_consistent(None);
}

/// Eight sessions deliver warehouse 1 this many times each; returns the number of skipped districts.
fn deliver(database: &Database, mode: Mode, times: u32) -> u32 {
    let parameters = database.parameters();
    let sessions = (1..=SESSIONS as u32).map(|carrier| async move {
        let mut session = Session::connect(&database.target, &parameters, mode).await.unwrap();
        let delivery = Transaction::Delivery(Delivery { warehouse: 1, carrier });
        let mut skipped = 0;
        for _ in 0..times {
            skipped += session.run(&delivery).await.unwrap().skipped_deliveries;
        }
        skipped
    });
    database.bed.runtime.block_on(join_all(sessions)).into_iter().sum()
}

/// Delivers all but the latest orders of each district at once.
fn deliver_all_but(database: &Database, left: u32) {
    database.execute(&format!(
        "WITH taken AS (DELETE FROM tpcc.new_order WHERE no_o_id <= 3000 - {left} RETURNING *),
              carried AS (UPDATE tpcc.orders SET o_carrier_id = 1 FROM taken
                           WHERE o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id RETURNING orders.*),
              line AS (UPDATE tpcc.order_line SET ol_delivery_d = now() FROM taken
                        WHERE ol_w_id = no_w_id AND ol_d_id = no_d_id AND ol_o_id = no_o_id RETURNING order_line.*)
         UPDATE tpcc.customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
           FROM (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS amount
                   FROM carried JOIN line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                  GROUP BY 1, 2, 3) AS owed
          WHERE c_w_id = o_w_id AND c_d_id = o_d_id AND c_id = o_c_id"
    ));
}
