//! The texts of MariaDB and MySQL.
//!
//! Searches require all words (`+` before each, in boolean mode); `innodb_ft_min_token_size` must not be above 5, the
//! length of the shortest word.

use underlay_workload::dvdstore::LINES_MAX;

use super::dialect::{Dialect, Statements};
use crate::connection::Input::{Digits, List, Value};
use crate::connection::Sql;
use crate::schema_ownership::state::BINARY_TEXT;

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

/// Settings as in the session of TPC-C.
pub(super) const DIALECT: Dialect = Dialect {
    schema: include_str!("mariadb/schema.sql"),
    keys: include_str!("mariadb/keys.sql"),
    references: include_str!("mariadb/references.sql"),
    routines: include_str!("mariadb/routines.sql"),
    marker: "CREATE TABLE underlay_dvdstore (format int NOT NULL, nominal_kb bigint NOT NULL, seed bigint NOT NULL, \
        identity varchar(100) NOT NULL, complete boolean NOT NULL, made_database boolean NOT NULL) ENGINE=InnoDB",
    settings: &[
        "SET NAMES latin1 COLLATE latin1_bin",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION autocommit = 1, time_zone = '+00:00', \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    ],
    check_begin: &[
        "SET NAMES latin1 COLLATE latin1_bin",
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES' /*M!100100 , max_statement_time = 0 */ \
         /*!50708 , max_execution_time = 0 */",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    ],
    next_key: None,
    // Full-text indexes are not counted.
    stored_bytes: "SELECT CAST(coalesce(sum(data_length + index_length), 0) AS unsigned) \
        FROM information_schema.tables WHERE table_schema = database()",
    all_words,
    definitions,
    statements: &STATEMENTS,
};

/// A search for all words of a text.
fn all_words(text: &str) -> String {
    text.split(' ').map(|word| format!("+{word}")).collect::<Vec<_>>().join(" ")
}

/// The statements of a text, with the remarks before them. A database that was there may have another character set.
fn definitions(text: &str) -> Vec<String> {
    let charset = format!("ENGINE=InnoDB {BINARY_TEXT}");
    if text.contains("CREATE TABLE") {
        let tables = text.split(";\n").filter(|sql| sql.contains("CREATE TABLE"));
        return tables.map(|sql| sql.replace("ENGINE=InnoDB", &charset)).collect();
    }
    text.split("\n$$\n").map(str::to_string).collect()
}

const STATEMENTS: Statements<Sql<'static>> = Statements {
    login: Sql::formed(
        "SELECT c.customerid, p.title, p.actor, q.title FROM customers c \
        LEFT JOIN (SELECT h.customerid, h.prod_id, h.orderid FROM cust_hist h \
                    WHERE h.customerid = (SELECT customerid FROM customers WHERE username = ? AND password = ?) \
                    ORDER BY h.orderid DESC LIMIT 10) h ON h.customerid = c.customerid \
        LEFT JOIN products p ON p.prod_id = h.prod_id \
        LEFT JOIN products q ON q.prod_id = p.common_prod_id \
        WHERE c.username = ? AND c.password = ? ORDER BY h.orderid DESC",
        &[Value(0), Value(1), Value(0), Value(1)],
    ),
    new_customer: Sql::new(
        "INSERT INTO customers \
        (firstname, lastname, address1, address2, city, state, zip, country, region, email, phone, \
         creditcardtype, creditcard, creditcardexpiration, username, password, age, income, gender) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    new_member: Sql::new(
        "INSERT INTO membership (customerid, membershiptype, expiredate) \
        VALUES (?, ?, current_date() + INTERVAL 365 DAY)",
    ),
    browse_category: Sql::new(
        "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
        WHERE category = ? AND special = 1 ORDER BY prod_id LIMIT ?",
    ),
    browse_actor: Sql::new(
        "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
        WHERE MATCH (actor) AGAINST (? IN BOOLEAN MODE) ORDER BY prod_id LIMIT ?",
    ),
    browse_title: Sql::new(
        "SELECT prod_id, category, title, actor, price, special, common_prod_id FROM products \
        WHERE MATCH (title) AGAINST (? IN BOOLEAN MODE) ORDER BY prod_id LIMIT ?",
    ),
    reviews_by_actor: Sql::new(reviews!(
        "SELECT r.review_id FROM products p STRAIGHT_JOIN reviews r ON r.prod_id = p.prod_id \
          WHERE MATCH (p.actor) AGAINST (? IN BOOLEAN MODE) LIMIT ?"
    )),
    reviews_by_title: Sql::new(reviews!(
        "SELECT r.review_id FROM products p STRAIGHT_JOIN reviews r ON r.prod_id = p.prod_id \
          WHERE MATCH (p.title) AGAINST (? IN BOOLEAN MODE) LIMIT ?"
    )),
    product_reviews: Sql::new(reviews!("SELECT review_id FROM reviews WHERE prod_id = ?")),
    reviews_by_stars: Sql::new(reviews!(
        "SELECT review_id FROM reviews WHERE prod_id = ? AND stars = ?"
    )),
    reviews_by_date: Sql::new(
        "SELECT r.review_id, r.prod_id, p.title, p.actor, r.review_date, r.stars, \
          r.customerid, r.review_summary, r.review_text, coalesce((SELECT sum(h.helpfulness) \
            FROM reviews_helpfulness h WHERE h.review_id = r.review_id), 0) AS total \
        FROM reviews r JOIN products p ON p.prod_id = r.prod_id \
        WHERE r.prod_id = ? ORDER BY r.review_date DESC, r.review_id DESC LIMIT ?",
    ),
    new_review: Sql::new(
        "INSERT INTO reviews (prod_id, review_date, stars, customerid, review_summary, review_text) \
        VALUES (?, current_date(), ?, ?, ?, ?)",
    ),
    rate_review: Sql::new(
        "INSERT INTO reviews_helpfulness (review_id, customerid, helpfulness) VALUES (?, ?, ?)",
    ),
    prices: Sql::formed(
        "SELECT prod_id, CAST(price * 100 AS signed) FROM products \
        WHERE prod_id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        &[List { value: 0, room: LINES_MAX as usize }],
    ),
    purchase: Sql::formed(
        "CALL purchase_transaction(?, ?, ?, ?)",
        &[Value(0), Value(1), Value(2), Digits(&[(3, 10), (4, 5)])],
    ),
};

#[cfg(test)]
mod tests {
    use super::{DIALECT, LINES_MAX, all_words, definitions};

    #[test]
    fn texts_are_cut_into_statements() {
        assert_eq!(definitions(DIALECT.schema).len(), 11);
        assert_eq!(definitions(DIALECT.routines).len(), 2);
        assert_eq!(all_words("ALBIN ASHBERG"), "+ALBIN +ASHBERG");
        assert_eq!(DIALECT.statements.prices.text.matches('?').count(), LINES_MAX as usize);
    }
}
