//! The statements of the steps, each one round trip.
//!
//! Words are compared by the configuration `simple` on both sides: the index and the query would otherwise cut words
//! differently, and a name would not be found. A search is fenced (`OFFSET 0`) so that the planner does not walk along the
//! primary key in the hope of early matches.

use tokio_postgres::Statement;
use tokio_postgres::types::Type;

use crate::postgres::link::{Link, RequestError};

const INT: Type = Type::INT4;
const LIMIT: Type = Type::INT8;
const TEXT: Type = Type::TEXT;

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

/// Declares the prepared statements: a name, types of parameters, a text.
macro_rules! statements {
    ($($name:ident ($($kind:expr),*) = $text:expr;)+) => {
        /// All prepared statements.
        pub struct Statements { $(pub $name: Statement,)+ }

        impl Statements {
            /// Prepares all statements.
            pub async fn prepare(link: &mut Link) -> Result<Statements, RequestError> {
                Ok(Statements { $($name: link.prepare($text, &[$($kind),*]).await?,)+ })
            }
        }

        /// The texts of all statements, for the workload's identity.
        pub fn texts() -> Vec<&'static str> {
            vec![$($text,)+]
        }
    };
}

statements! {
    login(TEXT, TEXT) = "SELECT c.customerid, p.title, p.actor, q.title \
        FROM dvdstore.customers c \
        LEFT JOIN LATERAL (SELECT prod_id, orderid FROM dvdstore.cust_hist \
                            WHERE customerid = c.customerid ORDER BY orderid DESC LIMIT 10) h ON true \
        LEFT JOIN dvdstore.products p ON p.prod_id = h.prod_id \
        LEFT JOIN dvdstore.products q ON q.prod_id = p.common_prod_id \
        WHERE c.username = $1 AND c.password = $2 ORDER BY h.orderid DESC";
    new_customer(TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, INT, TEXT, TEXT, INT, TEXT, TEXT, TEXT, TEXT,
                 INT, INT, TEXT) = "INSERT INTO dvdstore.customers \
        (firstname, lastname, address1, address2, city, state, zip, country, region, email, phone, \
         creditcardtype, creditcard, creditcardexpiration, username, password, age, income, gender) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) \
        ON CONFLICT (username) DO NOTHING RETURNING customerid";
    new_member(INT, INT) = "INSERT INTO dvdstore.membership (customerid, membershiptype, expiredate) \
        VALUES ($1, $2, current_date + 365) ON CONFLICT (customerid) DO NOTHING RETURNING customerid";
    browse_category(INT, LIMIT) = "SELECT * FROM (SELECT prod_id, category, title, actor, price, special, \
          common_prod_id FROM dvdstore.products WHERE category = $1 AND special = 1 OFFSET 0) found \
        ORDER BY prod_id LIMIT $2";
    browse_actor(TEXT, LIMIT) = "SELECT * FROM (SELECT prod_id, category, title, actor, price, special, \
          common_prod_id FROM dvdstore.products \
          WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) OFFSET 0) found \
        ORDER BY prod_id LIMIT $2";
    browse_title(TEXT, LIMIT) = "SELECT * FROM (SELECT prod_id, category, title, actor, price, special, \
          common_prod_id FROM dvdstore.products \
          WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) OFFSET 0) found \
        ORDER BY prod_id LIMIT $2";
    reviews_by_actor(TEXT, LIMIT, LIMIT) = reviews!(
        "SELECT r.review_id FROM (SELECT prod_id FROM dvdstore.products \
            WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', $1) OFFSET 0) p \
          JOIN dvdstore.reviews r ON r.prod_id = p.prod_id LIMIT $2",
        "$3"
    );
    reviews_by_title(TEXT, LIMIT, LIMIT) = reviews!(
        "SELECT r.review_id FROM (SELECT prod_id FROM dvdstore.products \
            WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', $1) OFFSET 0) p \
          JOIN dvdstore.reviews r ON r.prod_id = p.prod_id LIMIT $2",
        "$3"
    );
    product_reviews(INT, LIMIT) = reviews!(
        "SELECT review_id FROM dvdstore.reviews WHERE prod_id = $1",
        "$2"
    );
    reviews_by_stars(INT, INT, LIMIT) = reviews!(
        "SELECT review_id FROM dvdstore.reviews WHERE prod_id = $1 AND stars = $2",
        "$3"
    );
    reviews_by_date(INT, LIMIT) = "SELECT r.review_id, r.prod_id, p.title, p.actor, r.review_date, r.stars, \
          r.customerid, r.review_summary, r.review_text, coalesce((SELECT sum(h.helpfulness) \
            FROM dvdstore.reviews_helpfulness h WHERE h.review_id = r.review_id), 0) AS total \
        FROM dvdstore.reviews r JOIN dvdstore.products p ON p.prod_id = r.prod_id \
        WHERE r.prod_id = $1 ORDER BY r.review_date DESC, r.review_id DESC LIMIT $2";
    new_review(INT, INT, INT, TEXT, TEXT) = "INSERT INTO dvdstore.reviews \
        (prod_id, review_date, stars, customerid, review_summary, review_text) \
        VALUES ($1, current_date, $2, $3, $4, $5) RETURNING review_id";
    rate_review(INT, INT, INT) = "INSERT INTO dvdstore.reviews_helpfulness \
        (review_id, customerid, helpfulness) VALUES ($1, $2, $3) RETURNING review_helpfulness_id";
    prices(Type::INT4_ARRAY) = "SELECT prod_id, (price * 100)::bigint FROM dvdstore.products \
        WHERE prod_id = ANY ($1)";
    purchase(INT, LIMIT, LIMIT, Type::INT4_ARRAY, Type::INT4_ARRAY) =
        "SELECT dvdstore.purchase($1, $2, $3, $4, $5)";
}
