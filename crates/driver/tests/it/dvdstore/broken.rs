//! Every invariant broken on purpose, and caught.

use std::collections::BTreeSet;

use underlay_database::Engine;
use underlay_database::dvdstore::{self, CheckResult, Tally};
use underlay_testbed::TestServer;
use underlay_workload::dvdstore::DvdStoreAccounting;

use super::{assert_clean, parameters, tally_now, texts, wait};

/// What breaks a condition, and its id. Portable; carried out with foreign keys switched off, never committed.
const BREAKAGES: &[(&str, &str)] = &[
    ("cust_hist-customers", "UPDATE cust_hist SET customerid = 900000 WHERE orderid = 5"),
    ("membership-customers", "INSERT INTO membership VALUES (900000, 1, '2013-01-01')"),
    ("reviews-customers", "UPDATE reviews SET customerid = 900000 WHERE review_id = 5"),
    ("orders-customers", "UPDATE orders SET customerid = NULL WHERE orderid = 5"),
    ("orderlines-orders", "DELETE FROM orders WHERE orderid = 5"),
    ("reviews-products", "UPDATE reviews SET prod_id = 900000 WHERE review_id = 5"),
    ("reviews_helpfulness-reviews", "DELETE FROM reviews WHERE review_id = 5"),
    (
        "reviews_helpfulness-customers",
        "UPDATE reviews_helpfulness SET customerid = 0 WHERE review_id = 5",
    ),
    ("cust_hist-orders", "UPDATE cust_hist SET orderid = 900000 WHERE orderid = 5"),
    ("cust_hist-products", "UPDATE cust_hist SET prod_id = 900000 WHERE orderid = 5"),
    ("orderlines-products", "UPDATE orderlines SET prod_id = 900000 WHERE orderid = 5"),
    ("products-categories", "UPDATE products SET category = 17 WHERE prod_id = 5"),
    ("products-inventory", "DELETE FROM inventory WHERE prod_id = 5"),
    ("inventory-products", "DELETE FROM products WHERE prod_id = 5"),
    ("reorder-products", "UPDATE reorder SET prod_id = 900000"),
    ("lines", "UPDATE orderlines SET quantity = 4 WHERE orderid = 5"),
    ("lines", "DELETE FROM orderlines WHERE orderid = 5"),
    ("lines", "UPDATE orderlines SET orderlineid = 11 WHERE orderid = 5 AND orderlineid = 1"),
    ("lines", "UPDATE orderlines SET orderdate = '2014-01-01' WHERE orderid = 5"),
    ("totals", "UPDATE orders SET netamount = netamount + 0.01 WHERE orderid = 5"),
    (
        "totals",
        "UPDATE orders SET tax = tax + 0.01, totalamount = totalamount + 0.01 WHERE orderid = 5",
    ),
    ("totals", "UPDATE orders SET totalamount = totalamount - 1 WHERE orderid = 5"),
    ("totals", "UPDATE products SET price = price + 1"),
    ("history", "UPDATE cust_hist SET prod_id = prod_id + 1 WHERE orderid = 5"),
    ("history", "UPDATE cust_hist SET customerid = customerid % 200 + 1 WHERE orderid = 5"),
    ("history-rows", "INSERT INTO cust_hist VALUES (1, 900000, 1)"),
    ("sales", "UPDATE inventory SET sales = sales + 1 WHERE prod_id = 5"),
    ("sales", "DELETE FROM orderlines WHERE orderid > 120"),
    ("stock", "UPDATE inventory SET quan_in_stock = quan_in_stock + 1000 WHERE prod_id = 5"),
    ("stock", "DELETE FROM reorder"),
    ("low-stock", "UPDATE inventory SET quan_in_stock = -1 WHERE prod_id = 5"),
    ("low-stock", "UPDATE inventory SET quan_in_stock = 2 WHERE sales > 0"),
    ("reorder", "UPDATE reorder SET quan_reordered = 250"),
    ("reorder", "UPDATE reorder SET quan_low = 3, quan_reordered = 247"),
    ("values", "UPDATE reviews SET stars = 6 WHERE review_id = 5"),
    ("values", "UPDATE reviews_helpfulness SET helpfulness = 0 WHERE review_id = 5"),
    ("values", "UPDATE membership SET membershiptype = 4"),
    ("values", "UPDATE customers SET region = 3 WHERE customerid = 5"),
    ("population", "DELETE FROM customers WHERE customerid = 5"),
    ("population", "DELETE FROM reviews_helpfulness WHERE review_helpfulness_id = 5"),
    ("population", "DELETE FROM categories WHERE category = 16"),
    ("usernames", "UPDATE customers SET username = 'user6' WHERE customerid = 5"),
    ("new-customers", "DELETE FROM customers WHERE username = 'somebody'"),
    ("new-members", "DELETE FROM membership WHERE customerid = 201"),
    ("new-reviews", "DELETE FROM reviews WHERE review_id = 2001"),
    ("new-ratings", "DELETE FROM reviews_helpfulness WHERE review_id = 2001"),
    ("new-orders", "DELETE FROM orders WHERE orderid > 120"),
    ("new-lines", "DELETE FROM orderlines WHERE orderid > 120"),
    ("pieces-sold", "UPDATE inventory SET sales = sales - 1 WHERE sales > 3"),
    ("amounts", "UPDATE orders SET netamount = netamount - 1 WHERE orderid = 121"),
];

pub fn every_broken_invariant_is_caught(host: &TestServer) {
    let before = tally_now(host);
    let accounting = DvdStoreAccounting::default();
    if host.target().engine == Engine::Mariadb {
        // What is defined cannot be undone within a transaction there. The shop is dropped after this.
        texts(host, "DROP TRIGGER restock");
        texts(
            host,
            "ALTER TABLE customers DROP INDEX customers_username, DROP INDEX customers_login",
        );
    }
    let mut caught = BTreeSet::new();
    let all =
        |results: &[CheckResult]| results.iter().map(|result| result.id).collect::<BTreeSet<_>>();
    let mut known = BTreeSet::new();
    for (id, sql) in BREAKAGES {
        let results = broken(host, sql, (&before, &accounting));
        known = all(&results);
        let violated: Vec<&str> = results
            .iter()
            .filter(|result| result.violation.is_some())
            .map(|result| result.id)
            .collect();
        assert!(violated.contains(id), "{id} was not caught, but {violated:?}: {sql}");
        caught.insert(*id);
    }
    assert_eq!(caught, known, "not every check was seen to catch something");
    assert_clean(host, Some((&before, &accounting)), "after everything was rolled back");
}

/// The checks of a shop in which `sql` was carried out, which is then undone. Triggers, foreign keys and unique names do
/// not stand in the way.
fn broken(host: &TestServer, sql: &str, run: (&Tally, &DvdStoreAccounting)) -> Vec<CheckResult> {
    let target = host.target();
    wait(host, async {
        let of_postgresql = format!(
            "BEGIN; SET LOCAL search_path = dvdstore; SET LOCAL session_replication_role = replica; \
             DROP INDEX customers_username, customers_login; {sql}"
        );
        let of_mariadb = [
            "SET NAMES latin1 COLLATE latin1_bin",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "SET SESSION foreign_key_checks = 0, unique_checks = 0",
            sql,
        ];
        let begin: &[&str] = match target.engine {
            Engine::Postgresql => &[&of_postgresql],
            Engine::Mariadb => &of_mariadb,
        };
        let checks = dvdstore::check_after(&target, &parameters(), Some(run), begin).await;
        checks.unwrap_or_else(|error| panic!("{sql}: {error}"))
    })
}
