//! PostgreSQL's texts.
//!
//! Words are compared by the configuration `simple` on both sides: the index and the query would otherwise cut words
//! differently, and a name would not be found. A search is fenced (`OFFSET 0`) so that the planner does not walk along the
//! primary key in the hope of early matches.

use super::dialect::{Dialect, Statements};
use crate::connection::Kind::{Big, Int, Ints, Text};
use crate::connection::Sql;
use crate::postgres::CHECK_SETTINGS;

/// Reviews, by how helpful they were found: the best of those that `$which` names, then all that is known of them.
macro_rules! reviews {
    ($which:literal, $limit:literal) => {
        concat!(
            "SELECT r.review_id, r.prod_id, p.title, p.actor, r.review_date, r.stars, r.customerid, \
                    r.review_summary, r.review_text, best.total \
               FROM (SELECT f.review_id, coalesce((SELECT sum(h.helpfulness) \
                         FROM dvdstore.reviews_helpfulness h WHERE h.review_id = f.review_id), 0) AS total \
                       FROM (",
            $which,
            ") f ORDER BY total DESC, f.review_id LIMIT ",
            $limit,
            ") best JOIN dvdstore.reviews r ON r.review_id = best.review_id \
               JOIN dvdstore.products p ON p.prod_id = r.prod_id ORDER BY best.total DESC, r.review_id"
        )
    };
}

/// Every access is by a key, and plans do not depend on the values: see the session of TPC-C.
pub(super) const DIALECT: Dialect = Dialect {
    schema: include_str!("postgres/schema.sql"),
    keys: include_str!("postgres/keys.sql"),
    references: include_str!("postgres/references.sql"),
    routines: include_str!("postgres/routines.sql"),
    marker: "CREATE TABLE dvdstore.underlay_dvdstore (format integer NOT NULL, nominal_kb bigint NOT NULL, \
        seed bigint NOT NULL, identity text NOT NULL, complete boolean NOT NULL)",
    settings: &["SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"],
    check_begin: &[
        CHECK_SETTINGS,
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = dvdstore",
    ],
    next_key: Some("SELECT setval(pg_get_serial_sequence('dvdstore.{table}', '{key}'), {last})"),
    stored_bytes: "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
        WHERE relnamespace = 'dvdstore'::regnamespace AND relkind = 'r'",
    all_words: str::to_string,
    // The schema may be there already.
    definitions: |text| vec![text.replace("CREATE SCHEMA dvdstore;", "")],
    statements: &STATEMENTS,
};

const STATEMENTS: Statements<Sql<'static>> = Statements {
    login: Sql::typed(
        "SELECT c.customerid, p.title, p.actor, q.title \
        FROM dvdstore.customers c \
        LEFT JOIN LATERAL (SELECT prod_id, orderid FROM dvdstore.cust_hist \
                            WHERE customerid = c.customerid ORDER BY orderid DESC LIMIT 10) h ON true \
        LEFT JOIN dvdstore.products p ON p.prod_id = h.prod_id \
        LEFT JOIN dvdstore.products q ON q.prod_id = p.common_prod_id \
        WHERE c.username = $1 AND c.password = $2 ORDER BY h.orderid DESC",
        &[Text, Text],
    ),
    new_customer: Sql::typed(
        "INSERT INTO dvdstore.customers \
        (firstname, lastname, address1, address2, city, state, zip, country, region, email, phone, \
         creditcardtype, creditcard, creditcardexpiration, username, password, age, income, gender) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
        ON CONFLICT (username) DO NOTHING RETURNING customerid",
        &[
            Text, Text, Text, Text, Text, Text, Text, Text, Int, Text, Text, Int, Text, Text, Text,
            Text, Int, Int, Text,
        ],
    ),
    new_member: Sql::typed(
        "INSERT INTO dvdstore.membership (customerid, membershiptype, expiredate) \
        VALUES ($1, $2, current_date + 365) ON CONFLICT (customerid) DO NOTHING RETURNING customerid",
        &[Int, Int],
    ),
    browse_category: Sql::typed(
        "SELECT * FROM (SELECT prod_id, category, title, actor, price, special, \
          common_prod_id FROM dvdstore.products WHERE category = $1 AND special = 1 OFFSET 0) found \
        ORDER BY prod_id LIMIT $2",
        &[Int, Big],
    ),
    browse_actor: Sql::typed(
        "SELECT * FROM (SELECT prod_id, category, title, actor, price, special, \
          common_prod_id FROM dvdstore.products \
          WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) OFFSET 0) found \
        ORDER BY prod_id LIMIT $2",
        &[Text, Big],
    ),
    browse_title: Sql::typed(
        "SELECT * FROM (SELECT prod_id, category, title, actor, price, special, \
          common_prod_id FROM dvdstore.products \
          WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) OFFSET 0) found \
        ORDER BY prod_id LIMIT $2",
        &[Text, Big],
    ),
    reviews_by_actor: Sql::typed(
        reviews!(
            "SELECT r.review_id FROM (SELECT prod_id FROM dvdstore.products \
            WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) OFFSET 0) p \
          JOIN dvdstore.reviews r ON r.prod_id = p.prod_id LIMIT $2",
            "$3"
        ),
        &[Text, Big, Big],
    ),
    reviews_by_title: Sql::typed(
        reviews!(
            "SELECT r.review_id FROM (SELECT prod_id FROM dvdstore.products \
            WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) OFFSET 0) p \
          JOIN dvdstore.reviews r ON r.prod_id = p.prod_id LIMIT $2",
            "$3"
        ),
        &[Text, Big, Big],
    ),
    product_reviews: Sql::typed(
        reviews!("SELECT review_id FROM dvdstore.reviews WHERE prod_id = $1", "$2"),
        &[Int, Big],
    ),
    reviews_by_stars: Sql::typed(
        reviews!("SELECT review_id FROM dvdstore.reviews WHERE prod_id = $1 AND stars = $2", "$3"),
        &[Int, Int, Big],
    ),
    reviews_by_date: Sql::typed(
        "SELECT r.review_id, r.prod_id, p.title, p.actor, r.review_date, r.stars, \
          r.customerid, r.review_summary, r.review_text, coalesce((SELECT sum(h.helpfulness) \
            FROM dvdstore.reviews_helpfulness h WHERE h.review_id = r.review_id), 0) AS total \
        FROM dvdstore.reviews r JOIN dvdstore.products p ON p.prod_id = r.prod_id \
        WHERE r.prod_id = $1 ORDER BY r.review_date DESC, r.review_id DESC LIMIT $2",
        &[Int, Big],
    ),
    new_review: Sql::typed(
        "INSERT INTO dvdstore.reviews \
        (prod_id, review_date, stars, customerid, review_summary, review_text) \
        VALUES ($1, current_date, $2, $3, $4, $5) RETURNING review_id",
        &[Int, Int, Int, Text, Text],
    ),
    rate_review: Sql::typed(
        "INSERT INTO dvdstore.reviews_helpfulness \
        (review_id, customerid, helpfulness) VALUES ($1, $2, $3) RETURNING review_helpfulness_id",
        &[Int, Int, Int],
    ),
    prices: Sql::typed(
        "SELECT prod_id, (price * 100)::bigint FROM dvdstore.products \
        WHERE prod_id = ANY ($1)",
        &[Ints],
    ),
    purchase: Sql::typed(
        "SELECT dvdstore.purchase($1, $2, $3, $4, $5)",
        &[Int, Big, Big, Ints, Ints],
    ),
};
