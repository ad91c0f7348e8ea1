//! Every step by itself: what it returns and what it changes.

use underlay_database::dvdstore::Session;
use underlay_testbed::TestServer;
use underlay_workload::dvdstore::population::{Catalogue, Table};
use underlay_workload::dvdstore::{
    DvdStore, DvdStoreAccounting, Line, Outcome, Step, Transaction, tax_cents,
};
use underlay_workload::transactional::Workload;

use super::{assert_clean, number, parameters, tally_now, texts, wait};

pub fn every_step_does_what_it_says(host: &TestServer) {
    let before = tally_now(host);
    let mut session = wait(host, Session::connect(&host.target(), &parameters())).unwrap();
    let mut run = |transaction: &Transaction| wait(host, session.run(transaction)).unwrap();
    let catalogue = Catalogue::new(&parameters());
    let mut accounting = DvdStoreAccounting::default();
    let workload = DvdStore::new(parameters());
    let mut book = |transaction: &Transaction, outcome: &Outcome| {
        workload.book(&mut accounting, transaction, outcome);
    };

    // Logging in shows the last purchases, at most ten.
    let bought = number(host, "SELECT count(*) FROM cust_hist WHERE customerid = 7");
    let login = run(&Transaction::Login { customer: 7 });
    assert_eq!((login.id, i64::from(login.rows_read)), (Some(7), bought.clamp(1, 10)));

    // A name is given once.
    let new = Transaction::NewCustomer { username: "somebody".to_string(), draw: 11 };
    let outcome = run(&new);
    assert_eq!(outcome, Outcome::wrote(201));
    book(&new, &outcome);
    assert_eq!(run(&new), Outcome::REFUSED);
    let row = "SELECT concat_ws('|', username, password, region, age > 17, income > 0, length(firstname) > 4) \
               FROM customers WHERE username = 'somebody'";
    let row = texts(host, row).remove(0);
    assert!(row.starts_with("somebody|password|"), "{row}");
    assert!(row.ends_with("|t|t|t") || row.ends_with("|1|1|1"), "{row}");

    // A customer is a member once.
    let member = Transaction::NewMember { customer: 201, level: 2 };
    let outcome = run(&member);
    assert_eq!(outcome, Outcome::wrote(201));
    book(&member, &outcome);
    assert_eq!(run(&member), Outcome::REFUSED);

    searches_find_what_they_look_for(host, &mut run, &catalogue);

    let review = Transaction::NewReview {
        product: 3,
        customer: 201,
        stars: 4,
        summary: "one two three".to_string(),
        text: "a text".to_string(),
    };
    let outcome = run(&review);
    assert_eq!(outcome, Outcome::wrote(2_001));
    book(&review, &outcome);
    let rating = Transaction::RateReview { review: 2_001, customer: 7, helpfulness: 9 };
    let outcome = run(&rating);
    assert_eq!(outcome.id.unwrap() as u64, Table::ReviewsHelpfulness.rows(&parameters()) + 1);
    book(&rating, &outcome);

    purchases_take_stock_or_nothing(host, &mut run, &mut book, &catalogue);
    assert_clean(host, Some((&before, &accounting)), "after each step by itself");
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
        (1..=100).filter(|product| catalogue.initial_stock(*product) > 20).take(2).collect();
    let line = |product: u32, quantity| Line { product, quantity };
    let lines = vec![line(stocked[0], 2), line(stocked[0], 3), line(stocked[1], 1)];
    let prices = run(&Transaction::Prices { lines: lines.clone() });
    let net_cents = 5 * catalogue.price_cents(stocked[0]) + catalogue.price_cents(stocked[1]);
    assert_eq!((prices.net_cents, prices.rows_read), (net_cents, 2));
    let buy = |lines: Vec<Line>| {
        let price = |line: &Line| catalogue.price_cents(line.product) * i64::from(line.quantity);
        let net_cents = lines.iter().map(price).sum();
        Transaction::Purchase { customer: 201, lines, net_cents, tax_cents: tax_cents(net_cents) }
    };
    let purchase = buy(lines);
    let outcome = run(&purchase);
    assert!(outcome.committed && outcome.id.unwrap() > 120, "{outcome:?}");
    book(&purchase, &outcome);
    let stock = |product: u32| {
        number(host, &format!("SELECT quan_in_stock FROM inventory WHERE prod_id = {product}"))
    };
    assert_eq!(stock(stocked[0]), i64::from(catalogue.initial_stock(stocked[0])) - 5);
    // Logging in now shows the three lines.
    assert_eq!(number(host, "SELECT count(*) FROM cust_hist WHERE customerid = 201"), 3);

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
    let last = (1..=100).find(|product| (6..=30).contains(&catalogue.initial_stock(*product)));
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
