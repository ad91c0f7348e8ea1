//! The web shop on a real PostgreSQL and a real MariaDB: load, every step, a load with all checks, a server that is killed
//! under it, and every invariant broken on purpose.

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use support::TestServer;
use underlay_core::RootSeed;
use underlay_database::dvdstore::{
    CheckResult, DvdStoreConnector, DvdStoreError, Session, Tally, check, describe, drop_tables,
    identity, load, tally,
};
use underlay_database::managed::Listen;
use underlay_database::mariadb::connect;
use underlay_database::{Engine, ErrorClass, mariadb, postgres};
use underlay_driver::{DriveSpec, DriveSummary, Driver, Mix};
use underlay_host::skip;
use underlay_workload::dvdstore::population::{Catalogue, Table};
use underlay_workload::dvdstore::{
    Behaviour, DvdStore, DvdStoreBooks, Line, Outcome, Parameters, Step, Transaction, tax_cents,
};
use underlay_workload::transactional::Workload;

const USERS: u32 = 4;

/// 400 customers, 240 orders, 200 products, 4,000 reviews.
fn parameters() -> Parameters {
    Parameters::new("0.2MB".parse().unwrap(), RootSeed(5))
}

fn wait<T>(host: &TestServer, work: impl Future<Output = T>) -> T {
    host.runtime.block_on(work)
}

/// The first column of all rows of a statement as text.
fn texts(host: &TestServer, sql: &str) -> Vec<String> {
    let target = host.target();
    wait(host, async {
        match target.engine {
            Engine::Postgresql => {
                let client = target.connect().await.unwrap();
                client.batch_execute("SET search_path = dvdstore").await.unwrap();
                let messages = client.simple_query(sql).await.unwrap();
                let text = |message: &tokio_postgres::SimpleQueryMessage| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => {
                        Some(row.get(0).unwrap_or_default().to_string())
                    }
                    _ => None,
                };
                messages.iter().filter_map(text).collect()
            }
            Engine::Mariadb => {
                let mut conn = connect(&target).await.unwrap();
                let rows: Vec<mysql_async::Row> = conn.query(sql).await.unwrap();
                conn.disconnect().await.unwrap();
                rows.into_iter()
                    .map(|row| row.get::<Option<String>, _>(0).flatten().unwrap_or_default())
                    .collect()
            }
        }
    })
}

fn number(host: &TestServer, sql: &str) -> i64 {
    let texts = texts(host, sql);
    assert_eq!(texts.len(), 1, "{sql}: {texts:?}");
    texts[0].parse().unwrap_or_else(|_| panic!("{sql}: {}", texts[0]))
}

fn tally_now(host: &TestServer) -> Tally {
    wait(host, tally(&host.target())).unwrap()
}

fn assert_clean(host: &TestServer, run: Option<(&Tally, &DvdStoreBooks)>, when: &str) {
    let results = wait(host, check(&host.target(), &parameters(), run)).unwrap();
    assert_eq!(results.len(), if run.is_some() { 34 } else { 26 });
    let ids: BTreeSet<&str> = results.iter().map(|result| result.title).collect();
    assert_eq!(ids.len(), results.len());
    for result in results {
        assert_eq!(result.violation, None, "{}, {when}", result.id);
    }
}

#[test]
fn a_shop_is_driven_on_postgresql() {
    let Some(host) = TestServer::start(Engine::Postgresql, Listen::UnixSocket) else {
        skip!("no PostgreSQL server programs found")
    };
    scenes(host);
}

#[test]
fn a_shop_is_driven_on_mariadb() {
    let Some(mut host) = TestServer::start(Engine::Mariadb, Listen::UnixSocket) else {
        skip!("no MariaDB server programs found")
    };
    host.database = Some("shop");
    scenes(host);
}

/// One server for all scenes: starting it costs more than most of them.
fn scenes(mut host: TestServer) {
    a_load_makes_the_shop(&host);
    every_step_does_what_it_says(&host);
    purchases_at_once_lose_no_sale(&host);
    a_load_is_driven_and_accounted_for(&host);
    a_killed_server_keeps_what_it_acknowledged(&mut host);
    every_broken_invariant_is_caught(&host);
    only_what_underlay_made_is_removed(&host);
}

fn a_load_makes_the_shop(host: &TestServer) {
    let target = host.target();
    let absent = wait(host, describe(&target));
    assert!(matches!(absent, Err(DvdStoreError::NotLoaded)), "{absent:?}");
    let report = load(&target, &parameters(), 5).unwrap();
    let rows: u64 = Table::ALL.iter().map(|table| table.rows(&parameters())).sum();
    assert_eq!(report.rows, rows);
    assert!(report.stored_bytes > report.bytes, "{report:?}");
    let again = load(&target, &parameters(), 1);
    assert!(matches!(again, Err(DvdStoreError::AlreadyLoaded)), "{again:?}");
    assert_eq!(wait(host, describe(&target)).unwrap().parameters, parameters());
    assert_clean(host, None, "after the load");
    let before = tally_now(host);
    assert_eq!(
        (before.counts.customers, before.last_customer, before.counts.orders),
        (400, 400, 240)
    );
    let patient = Behaviour { search_depth: 7, ..Behaviour::default() };
    assert_ne!(
        identity(target.engine, &parameters()),
        identity(target.engine, &Parameters { behaviour: patient, ..parameters() })
    );
    // Another seed or size is another shop.
    let other = Parameters { seed: RootSeed(6), ..parameters() };
    let refused = wait(host, Session::connect(&target, &other)).err().unwrap();
    assert!(refused.message.contains("other size, seed or version"), "{refused}");
}

fn every_step_does_what_it_says(host: &TestServer) {
    let before = tally_now(host);
    let mut session = wait(host, Session::connect(&host.target(), &parameters())).unwrap();
    let mut run = |transaction: &Transaction| wait(host, session.run(transaction)).unwrap();
    let catalogue = Catalogue::new(&parameters());
    let mut books = DvdStoreBooks::default();
    let workload = DvdStore::new(parameters());
    let mut book = |transaction: &Transaction, outcome: &Outcome| {
        workload.book(&mut books, transaction, outcome);
    };

    // Logging in shows the last purchases, at most ten.
    let bought = number(host, "SELECT count(*) FROM cust_hist WHERE customerid = 7");
    let login = run(&Transaction::Login { customer: 7 });
    assert_eq!((login.id, i64::from(login.rows_read)), (Some(7), bought.clamp(1, 10)));

    // A name is given once.
    let new = Transaction::NewCustomer { username: "somebody".to_string(), draw: 11 };
    let outcome = run(&new);
    assert_eq!(outcome, Outcome::wrote(401));
    book(&new, &outcome);
    assert_eq!(run(&new), Outcome::REFUSED);
    let row = "SELECT concat_ws('|', username, password, region, age > 17, income > 0, length(firstname) > 4) \
               FROM customers WHERE username = 'somebody'";
    let row = texts(host, row).remove(0);
    assert!(row.starts_with("somebody|password|"), "{row}");
    assert!(row.ends_with("|t|t|t") || row.ends_with("|1|1|1"), "{row}");

    // A customer is a member once.
    let member = Transaction::NewMember { customer: 401, level: 2 };
    let outcome = run(&member);
    assert_eq!(outcome, Outcome::wrote(401));
    book(&member, &outcome);
    assert_eq!(run(&member), Outcome::REFUSED);

    searches_find_what_they_look_for(host, &mut run, &catalogue);

    let review = Transaction::NewReview {
        product: 3,
        customer: 401,
        stars: 4,
        summary: "one two three".to_string(),
        text: "a text".to_string(),
    };
    let outcome = run(&review);
    assert_eq!(outcome, Outcome::wrote(4_001));
    book(&review, &outcome);
    let rating = Transaction::RateReview { review: 4_001, customer: 7, helpfulness: 9 };
    let outcome = run(&rating);
    assert_eq!(outcome.id.unwrap() as u64, Table::ReviewsHelpfulness.rows(&parameters()) + 1);
    book(&rating, &outcome);

    purchases_take_stock_or_nothing(host, &mut run, &mut book, &catalogue);
    assert_clean(host, Some((&before, &books)), "after each step by itself");
}

type Run<'a> = &'a mut dyn FnMut(&Transaction) -> Outcome;

fn searches_find_what_they_look_for(host: &TestServer, run: Run<'_>, catalogue: &Catalogue) {
    let (mut title, mut actor, mut end, mut last) = Default::default();
    catalogue.push_title(&mut title, 42);
    catalogue.push_actor(&mut actor, 42);
    catalogue.push_title_end(&mut end, 42);
    catalogue.push_actor_last(&mut last, 42);
    let mut found = |step, text: &String, batch, depth| {
        run(&Transaction::Search { step, text: text.clone(), batch, depth }).rows_read
    };
    let count = |sql: &str| number(host, sql) as u32;
    // A search for a whole title or name finds all that have both words, in whichever order.
    let all = |column: &str, text: &String| {
        let (one, other) = text.split_once(' ').unwrap();
        count(&format!(
            "SELECT count(*) FROM products WHERE {column} LIKE '%{one}%' AND {column} LIKE '%{other}%'"
        ))
    };
    assert_eq!(found(Step::BrowseTitle, &title, 9, 0), all("title", &title));
    assert_eq!(found(Step::BrowseActor, &actor, 9, 0), all("actor", &actor));
    assert_eq!(found(Step::BrowseTitle, &"NOBODY WROTE".to_string(), 9, 0), 0);
    let reviews = |condition: &str| {
        count(&format!(
            "SELECT count(*) FROM reviews r JOIN products p ON p.prod_id = r.prod_id WHERE {condition}"
        ))
    };
    let by_title = reviews(&format!("p.title LIKE '%{end}%'"));
    let by_actor = reviews(&format!("p.actor LIKE '% {last}'"));
    assert!(by_title > 9 && by_actor > 9, "{by_title}, {by_actor}");
    assert_eq!(found(Step::ReviewsByTitle, &end, 10_000, 10_000), by_title);
    assert_eq!(found(Step::ReviewsByActor, &last, 10_000, 10_000), by_actor);
    assert_eq!(found(Step::ReviewsByActor, &last, 5, 10_000), 5);
    // No more are looked at than the depth says.
    assert_eq!(found(Step::ReviewsByTitle, &end, 10_000, 7), 7);

    for category in 1..=16 {
        let special = count(&format!(
            "SELECT count(*) FROM products WHERE special = 1 AND category = {category}"
        ));
        let browse = Transaction::BrowseCategory { category, batch: 9 };
        assert_eq!(run(&browse).rows_read, special.min(9));
    }
    let of_product = reviews("r.prod_id = 42");
    let of_stars = reviews("r.prod_id = 42 AND r.stars = 5");
    for (step, all) in [
        (Step::ProductReviews, of_product),
        (Step::ProductReviewsByDate, of_product),
        (Step::ProductReviewsByStars, of_stars),
    ] {
        for batch in [1, 3, 10_000] {
            let read = Transaction::Reviews { step, product: 42, stars: 5, batch };
            assert_eq!(run(&read).rows_read, all.min(batch), "{step:?} {batch}");
        }
    }
}

fn purchases_take_stock_or_nothing(
    host: &TestServer,
    run: Run<'_>,
    book: &mut dyn FnMut(&Transaction, &Outcome),
    catalogue: &Catalogue,
) {
    // Something in stock, one product twice.
    let stocked: Vec<u32> =
        (1..=200).filter(|product| catalogue.initial_stock(*product) > 20).take(2).collect();
    let line = |product: u32, quantity| Line { product, quantity };
    let lines = vec![line(stocked[0], 2), line(stocked[0], 3), line(stocked[1], 1)];
    let prices = run(&Transaction::Prices { lines: lines.clone() });
    let net_cents = 5 * catalogue.price_cents(stocked[0]) + catalogue.price_cents(stocked[1]);
    assert_eq!((prices.net_cents, prices.rows_read), (net_cents, 2));
    let buy = |lines: Vec<Line>| {
        let price = |line: &Line| catalogue.price_cents(line.product) * i64::from(line.quantity);
        let net_cents = lines.iter().map(price).sum();
        Transaction::Purchase { customer: 401, lines, net_cents, tax_cents: tax_cents(net_cents) }
    };
    let purchase = buy(lines);
    let outcome = run(&purchase);
    assert!(outcome.committed && outcome.id.unwrap() > 240, "{outcome:?}");
    book(&purchase, &outcome);
    let stock = |product: u32| {
        number(host, &format!("SELECT quan_in_stock FROM inventory WHERE prod_id = {product}"))
    };
    assert_eq!(stock(stocked[0]), i64::from(catalogue.initial_stock(stocked[0])) - 5);
    // Logging in now shows the three lines.
    assert_eq!(number(host, "SELECT count(*) FROM cust_hist WHERE customerid = 401"), 3);

    // What is not in stock takes nothing: neither header nor the lines before it.
    let counts = "SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM orderlines) \
                  + (SELECT count(*) FROM cust_hist) + (SELECT sum(sales) FROM inventory)";
    let before = number(host, counts);
    let all_of_it = |product| stock(product) as u32 + 1;
    let greedy = buy(vec![line(stocked[0], 1), line(stocked[1], all_of_it(stocked[1]))]);
    assert_eq!(run(&greedy), Outcome::REFUSED);
    book(&greedy, &Outcome::REFUSED);
    assert_eq!(number(host, counts), before);

    // Three at a time until it is nearly sold out: then there are 250 again.
    let last = (1..=200).find(|product| (6..=30).contains(&catalogue.initial_stock(*product)));
    let product = last.expect("a product of which few are there");
    let pieces = catalogue.initial_stock(product);
    for _ in 0..pieces / 3 {
        let purchase = buy(vec![line(product, 3)]);
        let outcome = run(&purchase);
        assert!(outcome.committed);
        book(&purchase, &outcome);
    }
    assert_eq!(stock(product), 250);
    let reordered =
        format!("SELECT quan_reordered + quan_low FROM reorder WHERE prod_id = {product}");
    assert_eq!(number(host, &reordered), 250);
}

/// Many users buy the same few products at once: nobody waits in a circle, and no sale is lost.
fn purchases_at_once_lose_no_sale(host: &TestServer) {
    let weights =
        underlay_driver::Weights::parse("purchase=1", &underlay_workload::dvdstore::SHAPE).unwrap();
    let before = tally_now(host);
    let summary = drive(host, 16, Duration::from_millis(1_500), Mix::Weighted(weights));
    let counts = summary.totals.of(Step::Purchase.index());
    assert!(counts.committed > 50, "{:?}", summary.totals.samples);
    assert_eq!((counts.failed, counts.unknown), (0, 0), "{:?}", summary.totals.samples);
    let deadlocks = counts.errors.of(ErrorClass::Deadlock);
    assert_eq!(deadlocks, 0, "{:?}", summary.totals.samples);
    assert_clean(host, Some((&before, &summary.books)), "after purchases at once");
}

fn drive(host: &TestServer, users: u32, length: Duration, mix: Mix) -> DriveSummary<DvdStoreBooks> {
    let last = tally_now(host).last_customer;
    let workload = DvdStore { parameters: parameters(), first_new_customer: last + 1 };
    let connector = DvdStoreConnector::new(host.target(), workload);
    let driver =
        Driver::start(DriveSpec::new(RootSeed(9), users), connector, Instant::now()).unwrap();
    if mix != Mix::Prescribed {
        driver.set_mix(mix).unwrap();
    }
    driver.set_users(users);
    std::thread::sleep(length);
    driver.stop()
}

fn a_load_is_driven_and_accounted_for(host: &TestServer) {
    // Twice with one seed: names of new customers must not meet.
    for _ in 0..2 {
        let before = tally_now(host);
        let summary = drive(host, USERS, Duration::from_millis(1_500), Mix::Prescribed);
        let books = &summary.books;
        assert!(books.acknowledged.orders > 10, "{:?}", summary.totals.samples);
        assert_eq!(books.names_taken, 0);
        for step in Step::ALL {
            let counts = summary.totals.of(step.index());
            assert_eq!(
                (counts.failed, counts.unknown),
                (0, 0),
                "{step:?} {:?}",
                summary.totals.samples
            );
            let is_rare = matches!(step, Step::NewMember | Step::NewReview | Step::RateReview);
            assert!(counts.committed > 0 || is_rare, "{step:?} never came");
        }
        let purchases = summary.totals.of(Step::Purchase.index());
        assert_eq!(purchases.committed, books.acknowledged.orders);
        assert_clean(host, Some((&before, books)), "after a load");
    }
}

fn a_killed_server_keeps_what_it_acknowledged(host: &mut TestServer) {
    let before = tally_now(host);
    let workload =
        DvdStore { parameters: parameters(), first_new_customer: before.last_customer + 1 };
    let connector = DvdStoreConnector::new(host.target(), workload);
    let driver =
        Driver::start(DriveSpec::new(RootSeed(3), USERS), connector, Instant::now()).unwrap();
    driver.set_users(USERS);
    std::thread::sleep(Duration::from_millis(500));
    host.server.kill().unwrap();
    host.server.start().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let summary = driver.stop();
    assert!(!summary.outages.is_empty());
    assert!(summary.books.acknowledged.orders > 5, "{:?}", summary.totals.samples);
    assert_clean(host, Some((&before, &summary.books)), "after the server was killed");
}

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
    ("history", "UPDATE cust_hist SET customerid = customerid % 400 + 1 WHERE orderid = 5"),
    ("history-rows", "INSERT INTO cust_hist VALUES (1, 900000, 1)"),
    ("sales", "UPDATE inventory SET sales = sales + 1 WHERE prod_id = 5"),
    ("sales", "DELETE FROM orderlines WHERE orderid > 240"),
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
    ("new-members", "DELETE FROM membership WHERE customerid = 401"),
    ("new-reviews", "DELETE FROM reviews WHERE review_id = 4001"),
    ("new-ratings", "DELETE FROM reviews_helpfulness WHERE review_id = 4001"),
    ("new-orders", "DELETE FROM orders WHERE orderid > 240"),
    ("new-lines", "DELETE FROM orderlines WHERE orderid > 240"),
    ("pieces-sold", "UPDATE inventory SET sales = sales - 1 WHERE sales > 3"),
    ("amounts", "UPDATE orders SET netamount = netamount - 1 WHERE orderid = 241"),
];

fn every_broken_invariant_is_caught(host: &TestServer) {
    let before = tally_now(host);
    let books = DvdStoreBooks::default();
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
        let results = broken(host, sql, (&before, &books));
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
    assert_clean(host, Some((&before, &books)), "after everything was rolled back");
}

/// The checks of a shop in which `sql` was carried out, which is then undone. Triggers, foreign keys and unique names do
/// not stand in the way.
fn broken(host: &TestServer, sql: &str, run: (&Tally, &DvdStoreBooks)) -> Vec<CheckResult> {
    let target = host.target();
    wait(host, async {
        match target.engine {
            Engine::Postgresql => {
                let client = target.connect().await.unwrap();
                client
                    .batch_execute(&format!(
                        "BEGIN; SET LOCAL search_path = dvdstore; \
                         SET LOCAL session_replication_role = replica; \
                         DROP INDEX customers_username, customers_login; {sql}"
                    ))
                    .await
                    .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                postgres::dvdstore::check_here(&client, &parameters(), Some(run)).await.unwrap()
            }
            Engine::Mariadb => {
                let mut checks = mariadb::dvdstore::CheckConnection::open(&target).await.unwrap();
                checks
                    .execute("SET SESSION foreign_key_checks = 0, unique_checks = 0")
                    .await
                    .unwrap();
                checks.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
                checks.check(&parameters(), Some(run)).await.unwrap()
            }
        }
    })
}

fn only_what_underlay_made_is_removed(host: &TestServer) {
    let target = host.target();
    wait(host, drop_tables(&target)).unwrap();
    let again = wait(host, drop_tables(&target));
    assert!(matches!(again, Err(DvdStoreError::NotLoaded)), "{again:?}");
    // Somebody else's tables are neither loaded over, nor driven, nor removed.
    wait(host, async {
        match target.engine {
            Engine::Postgresql => {
                let client = target.connect().await.unwrap();
                let sql = "CREATE SCHEMA dvdstore; CREATE TABLE dvdstore.orders (orderid integer)";
                client.batch_execute(sql).await.unwrap();
            }
            Engine::Mariadb => {
                let mut conn = connect(&target.with_database("")).await.unwrap();
                conn.query_drop("CREATE DATABASE shop").await.unwrap();
                conn.query_drop("CREATE TABLE shop.orders (orderid int)").await.unwrap();
                conn.disconnect().await.unwrap();
            }
        }
    });
    assert!(matches!(load(&target, &parameters(), 1), Err(DvdStoreError::Foreign)));
    assert!(matches!(wait(host, drop_tables(&target)), Err(DvdStoreError::Foreign)));
    let refused = wait(host, Session::connect(&target, &parameters())).err().unwrap();
    assert_eq!((refused.class, refused.commit_unknown), (ErrorClass::Other, false));
    assert!(refused.message.contains("no shop that underlay made"), "{refused}");
    assert_eq!(number(host, "SELECT count(*) FROM orders"), 0);
}
