//! The conditions that one statement verifies.
//!
//! Each statement gives one row: how many rows break the condition, and the key of one of them. The SQL is what both
//! engines understand; tables are found in the session's schema. `{orders}` stands for the number of the last order of
//! the population.

/// One condition.
pub(crate) struct Condition {
    pub id: &'static str,
    pub title: &'static str,
    pub sql: &'static str,
}

/// Rows of a table without the row that they name.
macro_rules! reference {
    ($child:literal, $column:literal, $key:literal, $parent:literal, $parent_key:literal) => {
        Condition {
            id: concat!($child, "-", $parent),
            title: concat!("every row of ", $child, " names a row of ", $parent),
            sql: concat!(
                "SELECT count(*), min(c.",
                $key,
                ") FROM ",
                $child,
                " c LEFT JOIN ",
                $parent,
                " p ON p.",
                $parent_key,
                " = c.",
                $column,
                " WHERE p.",
                $parent_key,
                " IS NULL"
            ),
        }
    };
}

/// All conditions of this kind. The first seven references are also declared to the database.
pub(crate) const CONDITIONS: &[Condition] = &[
    reference!("cust_hist", "customerid", "customerid", "customers", "customerid"),
    reference!("membership", "customerid", "customerid", "customers", "customerid"),
    reference!("reviews", "customerid", "review_id", "customers", "customerid"),
    reference!("orders", "customerid", "orderid", "customers", "customerid"),
    reference!("orderlines", "orderid", "orderid", "orders", "orderid"),
    reference!("reviews", "prod_id", "review_id", "products", "prod_id"),
    reference!("reviews_helpfulness", "review_id", "review_helpfulness_id", "reviews", "review_id"),
    reference!(
        "reviews_helpfulness",
        "customerid",
        "review_helpfulness_id",
        "customers",
        "customerid"
    ),
    reference!("cust_hist", "orderid", "orderid", "orders", "orderid"),
    reference!("cust_hist", "prod_id", "orderid", "products", "prod_id"),
    reference!("orderlines", "prod_id", "orderid", "products", "prod_id"),
    reference!("products", "category", "prod_id", "categories", "category"),
    reference!("products", "prod_id", "prod_id", "inventory", "prod_id"),
    reference!("inventory", "prod_id", "prod_id", "products", "prod_id"),
    reference!("reorder", "prod_id", "prod_id", "products", "prod_id"),
    Condition {
        id: "usernames",
        title: "no two customers have the same name",
        sql: "SELECT count(*) - count(DISTINCT username), 0 FROM customers",
    },
    Condition {
        id: "lines",
        title: "every order has 1 to 10 lines, numbered from 1, of 1 to 3 pieces, of the order's date",
        sql: "SELECT count(*), min(orderid) FROM ( \
                SELECT o.orderid FROM orders o LEFT JOIN orderlines l ON l.orderid = o.orderid \
                GROUP BY o.orderid, o.orderdate \
                HAVING count(l.orderlineid) NOT BETWEEN 1 AND 10 OR min(l.orderlineid) <> 1 \
                    OR max(l.orderlineid) <> count(*) \
                    OR sum(l.orderlineid) * 2 <> count(*) * (count(*) + 1) \
                    OR min(l.quantity) < 1 OR max(l.quantity) > 3 \
                    OR min(l.orderdate) <> o.orderdate OR max(l.orderdate) <> o.orderdate) wrong",
    },
    Condition {
        id: "totals",
        title: "every order's amount is the price of its lines, its tax 8.25 %, its total their sum",
        sql: "SELECT count(*), min(orderid) FROM ( \
                SELECT o.orderid FROM orders o JOIN orderlines l ON l.orderid = o.orderid \
                  JOIN products p ON p.prod_id = l.prod_id \
                GROUP BY o.orderid, o.netamount, o.tax, o.totalamount \
                HAVING o.netamount <> sum(l.quantity * p.price) OR o.tax <> round(o.netamount * 0.0825, 2) \
                    OR o.totalamount <> o.netamount + o.tax) wrong",
    },
    Condition {
        id: "history",
        title: "a customer's history has the products of each of the customer's orders",
        sql: "SELECT count(*), min(o.orderid) FROM orders o \
              LEFT JOIN (SELECT orderid, count(*) AS n, sum(prod_id) AS s, min(prod_id) AS a, max(prod_id) AS z \
                           FROM orderlines GROUP BY orderid) l ON l.orderid = o.orderid \
              LEFT JOIN (SELECT orderid, customerid, count(*) AS n, sum(prod_id) AS s, min(prod_id) AS a, \
                                max(prod_id) AS z FROM cust_hist GROUP BY orderid, customerid) h \
                ON h.orderid = o.orderid AND h.customerid = o.customerid \
              WHERE l.n IS NULL OR h.n IS NULL OR l.n <> h.n OR l.s <> h.s OR l.a <> h.a OR l.z <> h.z",
    },
    Condition {
        id: "history-rows",
        title: "histories have as many rows as orders have lines",
        sql: "SELECT abs(n), n FROM (SELECT (SELECT count(*) FROM cust_hist) - (SELECT count(*) FROM orderlines) \
              AS n) difference",
    },
    Condition {
        id: "sales",
        title: "a product's sales equal the pieces of its order lines since the load",
        sql: "SELECT count(*), min(i.prod_id) FROM inventory i \
              LEFT JOIN (SELECT prod_id, sum(quantity) AS sold FROM orderlines WHERE orderid > {orders} \
                          GROUP BY prod_id) l ON l.prod_id = i.prod_id \
              WHERE i.sales <> coalesce(l.sold, 0)",
    },
    Condition {
        id: "low-stock",
        title: "no stock is negative, and no stock of a sold product is below 3",
        sql: "SELECT count(*), min(prod_id) FROM inventory \
              WHERE quan_in_stock < 0 OR (quan_in_stock < 3 AND sales > 0)",
    },
    Condition {
        id: "reorder",
        title: "stock was reordered at 0 to 2 pieces, up to 250 (each 10,000th product: 2,500)",
        sql: "SELECT count(*), min(prod_id) FROM reorder \
              WHERE quan_low NOT BETWEEN 0 AND 2 OR quan_reordered IS NULL \
                 OR quan_low + quan_reordered <> CASE WHEN prod_id % 10000 = 0 THEN 2500 ELSE 250 END",
    },
    Condition {
        id: "values",
        title: "stars are 1 to 5, ratings 1 to 10, memberships 1 to 3, regions 1 and 2",
        sql: "SELECT sum(n), coalesce(min(example), 0) FROM ( \
                SELECT count(*) AS n, min(review_id) AS example FROM reviews WHERE stars NOT BETWEEN 1 AND 5 \
                UNION ALL SELECT count(*), min(review_helpfulness_id) FROM reviews_helpfulness \
                  WHERE helpfulness NOT BETWEEN 1 AND 10 \
                UNION ALL SELECT count(*), min(customerid) FROM membership WHERE membershiptype NOT BETWEEN 1 AND 3 \
                UNION ALL SELECT count(*), min(customerid) FROM customers WHERE region NOT BETWEEN 1 AND 2) wrong",
    },
];

#[cfg(test)]
mod tests {
    use super::CONDITIONS;

    #[test]
    fn statements_name_their_placeholders_only() {
        for condition in CONDITIONS {
            let text = condition.sql.replace("{orders}", "");
            assert!(!text.contains(['{', '}']), "{}", condition.title);
        }
    }
}
