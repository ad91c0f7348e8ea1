//! The statements of the steps, each one round trip.
//!
//! Searches ask for all words (`+` before each, in boolean mode); `innodb_ft_min_token_size` must not be above 5, the
//! length of the shortest word.

use crate::mariadb::error::RequestError;
use crate::mariadb::link::{Link, Prepared};

/// Reviews, by how helpful they were found: the best of those that `$which` names, then all that is known of them.
/// Texts are fetched for what is shown alone: they would turn every temporary table into one on disk.
macro_rules! reviews {
    ($which:literal) => {
        concat!(
            "SELECT r.review_id, r.prod_id, p.title, p.actor, r.review_date, r.stars, r.customerid, \
                    r.review_summary, r.review_text, best.total \
               FROM (SELECT f.review_id, coalesce((SELECT sum(h.helpfulness) \
                         FROM reviews_helpfulness h WHERE h.review_id = f.review_id), 0) AS total \
                       FROM (",
            $which,
            ") f ORDER BY total DESC, f.review_id LIMIT ?) best \
               JOIN reviews r ON r.review_id = best.review_id \
               JOIN products p ON p.prod_id = r.prod_id ORDER BY best.total DESC, r.review_id"
        )
    };
}

/// Declares the prepared statements: a name, a text.
macro_rules! statements {
    ($($name:ident = $text:expr;)+) => {
        /// All prepared statements.
        pub struct Statements { $(pub $name: Prepared,)+ }

        impl Statements {
            /// Prepares all statements.
            pub async fn prepare(link: &mut Link) -> Result<Statements, RequestError> {
                Ok(Statements { $($name: link.prepare($text).await?,)+ })
            }
        }

        /// The texts of all statements, for the workload's identity.
        pub fn texts() -> Vec<&'static str> {
            vec![$($text,)+]
        }
    };
}

statements! {
    login = "SELECT c.customerid, p.title, p.actor, q.title FROM customers c \
        LEFT JOIN (SELECT h.customerid, h.prod_id, h.orderid FROM cust_hist h \
                    WHERE h.customerid = (SELECT customerid FROM customers WHERE username = ? AND password = ?) \
                    ORDER BY h.orderid DESC LIMIT 10) h ON h.customerid = c.customerid \
        LEFT JOIN products p ON p.prod_id = h.prod_id \
        LEFT JOIN products q ON q.prod_id = p.common_prod_id \
        WHERE c.username = ? AND c.password = ? ORDER BY h.orderid DESC";
    new_customer = "INSERT INTO customers \
        (firstname, lastname, address1, address2, city, state, zip, country, region, email, phone, \
         creditcardtype, creditcard, creditcardexpiration, username, password, age, income, gender) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    new_member = "INSERT INTO membership (customerid, membershiptype, expiredate) \
        VALUES (?, ?, current_date() + INTERVAL 365 DAY)";
    browse_category = "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
        WHERE category = ? AND special = 1 ORDER BY prod_id LIMIT ?";
    browse_actor = "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
        WHERE MATCH (actor) AGAINST (? IN BOOLEAN MODE) ORDER BY prod_id LIMIT ?";
    browse_title = "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
        WHERE MATCH (title) AGAINST (? IN BOOLEAN MODE) ORDER BY prod_id LIMIT ?";
    reviews_by_actor = reviews!(
        "SELECT r.review_id FROM products p STRAIGHT_JOIN reviews r ON r.prod_id = p.prod_id \
          WHERE MATCH (p.actor) AGAINST (? IN BOOLEAN MODE) LIMIT ?"
    );
    reviews_by_title = reviews!(
        "SELECT r.review_id FROM products p STRAIGHT_JOIN reviews r ON r.prod_id = p.prod_id \
          WHERE MATCH (p.title) AGAINST (? IN BOOLEAN MODE) LIMIT ?"
    );
    product_reviews = reviews!("SELECT review_id FROM reviews WHERE prod_id = ?");
    reviews_by_stars = reviews!("SELECT review_id FROM reviews WHERE prod_id = ? AND stars = ?");
    reviews_by_date = "SELECT r.review_id, r.prod_id, p.title, p.actor, r.review_date, r.stars, \
          r.customerid, r.review_summary, r.review_text, coalesce((SELECT sum(h.helpfulness) \
            FROM reviews_helpfulness h WHERE h.review_id = r.review_id), 0) AS total \
        FROM reviews r JOIN products p ON p.prod_id = r.prod_id \
        WHERE r.prod_id = ? ORDER BY r.review_date DESC, r.review_id DESC LIMIT ?";
    new_review = "INSERT INTO reviews (prod_id, review_date, stars, customerid, review_summary, review_text) \
        VALUES (?, current_date(), ?, ?, ?, ?)";
    rate_review = "INSERT INTO reviews_helpfulness (review_id, customerid, helpfulness) VALUES (?, ?, ?)";
    prices = "SELECT prod_id, CAST(price * 100 AS signed) FROM products \
        WHERE prod_id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    purchase = "CALL purchase_transaction(?, ?, ?, ?)";
}
