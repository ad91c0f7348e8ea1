//! Ways to break a population, the conditions that must notice, and how each is tried, on every engine.

use std::collections::BTreeSet;

use underlay_database::tpcc::{CheckOutcome, CheckReport};

/// A way to break the data.
pub struct Breakage {
    /// The table, without its schema.
    pub table: &'static str,
    /// Which rows of it are touched, before and after.
    pub rows: &'static str,
    /// What is done.
    pub action: Action,
    /// The conditions that must notice, in the order of their report.
    pub caught: &'static str,
}

pub enum Action {
    /// `UPDATE ... SET` this.
    Set(&'static str),
    /// The rows are deleted.
    Delete,
    /// This is inserted.
    Insert(&'static str),
}
pub use Action::{Delete as Remove, Insert, Set};

/// Wrong values that are there at the same time, of which each is noticed by conditions of its own: the checks are made
/// once for all of them. Each is in a table of its own, so that none is what another one changes.
pub fn noticed_apart(
    breakages: impl IntoIterator<Item = &'static Breakage>,
) -> Vec<Vec<&'static Breakage>> {
    let mut groups: Vec<Vec<&Breakage>> = Vec::new();
    for breakage in breakages {
        let conditions: Vec<&str> = breakage.caught.split(' ').collect();
        let is_apart = |other: &&Breakage| {
            other.table != breakage.table
                && other.caught.split(' ').all(|condition| !conditions.contains(&condition))
        };
        match groups.iter_mut().find(|group| group.iter().all(is_apart)) {
            Some(group) => group.push(breakage),
            None => groups.push(vec![breakage]),
        }
    }
    groups
}

/// Each for itself: rows that are missing hide from other conditions what these would notice.
pub fn one_by_one(breakages: &'static [Breakage]) -> Vec<Vec<&'static Breakage>> {
    breakages.iter().map(|it| vec![it]).collect()
}

impl Breakage {
    /// What breaks, and what puts back afterwards the rows that were kept in a table before.
    pub fn statements(&self, schema: &str) -> (Vec<String>, Vec<String>) {
        let Breakage { table, rows, action, .. } = self;
        let kept = format!("saved_{table}");
        let table = format!("{schema}{table}");
        let action = match action {
            Set(change) => format!("UPDATE {table} SET {change} WHERE {rows}"),
            Remove => format!("DELETE FROM {table} WHERE {rows}"),
            Insert(new) => format!("INSERT INTO {table} {new}"),
        };
        let save = format!("CREATE TABLE {kept} AS SELECT * FROM {table} WHERE {rows}");
        let mend = [
            format!("DELETE FROM {table} WHERE {rows}"),
            format!("INSERT INTO {table} SELECT * FROM {kept}"),
            format!("DROP TABLE {kept}"),
        ];
        (vec![save, action], mend.into())
    }
}

/// Breaks a database in each of these ways, those of a group at the same time; returns the conditions that noticed.
///
/// Rows are put back after each group, so that one copy of the database serves all of them.
///
/// # Panics
/// Unless exactly those conditions notice that must.
pub fn break_and_mend(
    groups: &[Vec<&'static Breakage>],
    schema: &str,
    execute: &dyn Fn(&str),
    check: &dyn Fn() -> CheckReport,
) -> BTreeSet<&'static str> {
    let mut wrong = Vec::new();
    let mut noticed = BTreeSet::new();
    for group in groups {
        let statements: Vec<_> = group.iter().map(|it| it.statements(schema)).collect();
        statements.iter().flat_map(|(broken, _)| broken).for_each(|sql| execute(sql));
        let caught: BTreeSet<&str> = violated(&check()).into_iter().collect();
        let expected: BTreeSet<&str> = group.iter().flat_map(|it| it.caught.split(' ')).collect();
        if caught != expected {
            let actions: Vec<_> = statements.iter().map(|(broken, _)| broken.join("; ")).collect();
            let actions = actions.join("\n");
            wrong.push(format!("{actions}\n  expected {expected:?}, caught {caught:?}"));
        }
        noticed.extend(caught);
        statements.iter().flat_map(|(_, mended)| mended).for_each(|sql| execute(sql));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    noticed
}

/// The conditions that are violated, in the order of their report.
///
/// # Panics
/// If a check could not be made.
pub fn violated(report: &CheckReport) -> Vec<&'static str> {
    let ids = report.failures().map(|result| match &result.outcome {
        CheckOutcome::Violated { rows, example } => {
            assert!(*rows > 0 && example.contains(char::is_numeric), "{result:?}");
            result.id
        }
        other => panic!("{}: {other:?}", result.id),
    });
    ids.collect()
}

const fn breakage(
    table: &'static str,
    rows: &'static str,
    action: Action,
    caught: &'static str,
) -> Breakage {
    Breakage { table, rows, action, caught }
}

/// Wrong values. One warehouse after one new order (3001, five lines, items 1 to 5), one payment by customer
/// 7 and one delivery (2101) in each district.
pub const WRONG_VALUES: &[Breakage] = &[
    // Sums of money.
    breakage("warehouse", "w_id = 1", Set("w_ytd = w_ytd + 0.01"), "c1 c8"),
    breakage("district", "d_id = 3", Set("d_ytd = d_ytd + 0.01"), "c1 c9"),
    breakage(
        "history",
        "h_c_id = 7 AND h_c_d_id = 3 AND h_amount IN (10, 10.01)",
        Set("h_amount = 10.01"),
        "c8 c9 c10",
    ),
    breakage("history", "h_c_id = 7 AND h_c_d_id = 3 AND h_amount = 12.34", Remove, "c8 c9 c10 i4"),
    breakage("history", "h_c_id = 8 AND h_c_d_id = 3", Remove, "c8 c9 c10 i4 i8"),
    breakage("history", "h_c_id = 8 AND h_c_d_id = 3", Set("h_d_id = 4"), "c9"),
    breakage("customer", "c_id = 9 AND c_d_id = 1", Set("c_balance = c_balance + 0.01"), "c10 c12"),
    breakage(
        "customer",
        "c_id = 9 AND c_d_id = 1",
        Set("c_balance = c_balance + 0.01, c_ytd_payment = c_ytd_payment - 0.01"),
        "c10",
    ),
    breakage(
        "customer",
        "c_id = 9 AND c_d_id = 1",
        Set("c_ytd_payment = c_ytd_payment + 0.01"),
        "c12",
    ),
    breakage("customer", "c_id = 9 AND c_d_id = 1", Set("c_payment_cnt = c_payment_cnt + 1"), "i4"),
    breakage(
        "customer",
        "c_id = 9 AND c_d_id = 1",
        Set("c_delivery_cnt = c_delivery_cnt + 1"),
        "c11",
    ),
    // Numbers of orders.
    breakage("district", "d_id = 3", Set("d_next_o_id = d_next_o_id + 1"), "c2"),
    breakage(
        "new_order",
        "no_d_id = 3 AND no_o_id IN (3001, 3002)",
        Set("no_o_id = 3002"),
        "c2 c3 c5",
    ),
    breakage("new_order", "no_d_id = 3 AND no_o_id = 2500", Remove, "c3 c5 c11"),
    breakage("new_order", "no_d_id = 3 AND no_o_id = 2101", Insert("SELECT 1, 3, 2101"), "c5 c11"),
    breakage(
        "new_order",
        "no_d_id = 3 AND no_o_id = 3002",
        Insert("SELECT 1, 3, 3002"),
        "c2 c5 c11",
    ),
    // Orders and their lines.
    breakage("orders", "o_d_id = 3 AND o_id = 7", Set("o_ol_cnt = o_ol_cnt + 1"), "c4 c6"),
    breakage(
        "orders",
        "o_d_id = 3 AND o_id IN (7, 8)",
        Set("o_ol_cnt = o_ol_cnt + CASE o_id WHEN 7 THEN 1 ELSE -1 END"),
        "c6",
    ),
    breakage("order_line", "ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 2", Remove, "c4 c6"),
    breakage("orders", "o_d_id = 3 AND o_id = 3000", Set("o_carrier_id = 5"), "c5 c7"),
    breakage("orders", "o_d_id = 3 AND o_id = 7", Set("o_carrier_id = NULL"), "c5 c7"),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 2",
        Set("ol_delivery_d = NULL"),
        "c7",
    ),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 2999 AND ol_number = 2",
        Set("ol_delivery_d = now()"),
        "c7 c10 c12",
    ),
    breakage("orders", "o_d_id = 3 AND o_id = 7", Set("o_all_local = 0"), "i5"),
    breakage("orders", "o_d_id = 3 AND o_id = 2999", Set("o_c_id = 3001"), "c10 c12 i4 i8"),
    // Lines and what they took.
    breakage("stock", "s_i_id = 1", Set("s_ytd = s_ytd + 1"), "i1"),
    breakage(
        "stock",
        "s_i_id IN (1, 2)",
        Set("s_ytd = s_ytd + CASE s_i_id WHEN 1 THEN 1 ELSE -1 END"),
        "i1",
    ),
    breakage("stock", "s_i_id = 9", Set("s_order_cnt = s_order_cnt + 1"), "i1"),
    breakage("stock", "s_i_id = 9", Set("s_remote_cnt = s_remote_cnt + 1"), "i2"),
    breakage("stock", "s_i_id = 9", Set("s_quantity = 9"), "i3"),
    breakage("stock", "s_i_id = 9", Set("s_quantity = 101"), "i3"),
    breakage("stock", "s_i_id = 1", Set("s_dist_03 = 'other'"), "i6"),
    breakage("item", "i_id = 1", Set("i_price = i_price + 0.01"), "i7"),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 3001 AND ol_number = 2",
        Set("ol_quantity = ol_quantity + 1"),
        "i1 i7",
    ),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 3001 AND ol_number = 2",
        Set("ol_amount = ol_amount + 0.01"),
        "i7",
    ),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 3001 AND ol_number = 2",
        Set("ol_amount = NULL"),
        "i6 i7",
    ),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 2",
        Set("ol_dist_info = NULL"),
        "i6",
    ),
    breakage(
        "order_line",
        "ol_d_id = 3 AND ol_o_id = 3001 AND ol_number = 2",
        Set("ol_supply_w_id = 2"),
        // What a driver does that reads and writes the stock of the wrong warehouse.
        "i1 i2 i3 i5 i6",
    ),
];

/// Rows that are missing on either side of a join, or that belong to nothing.
pub const WRONG_ROWS: &[Breakage] = &[
    // Rows that are missing.
    breakage("warehouse", "true", Remove, "c1 c8 i9"),
    breakage("district", "true", Remove, "c1 c2 c9 i1 i9"),
    breakage("customer", "c_id = 9 AND c_d_id = 1", Remove, "c10 c12 i4 i8 i9"),
    breakage("customer", "c_d_id = 1", Remove, "c10 c11 c12 i4 i8 i9"),
    breakage("history", "true", Remove, "c8 c9 c10 i4 i8"),
    breakage("orders", "o_d_id = 3", Remove, "c2 c4 c5 c6 c7 c10 c11 c12 i8"),
    breakage("orders", "o_d_id = 3 AND o_id = 7", Remove, "c4 c6 c7 c11 i8"),
    breakage("order_line", "ol_d_id = 3", Remove, "c4 c6 c10 c12 i1"),
    breakage("new_order", "no_d_id = 3", Remove, "c5 c11"),
    breakage("stock", "s_i_id = 1", Remove, "i1 i2 i3 i6 i9"),
    breakage("stock", "s_i_id = 9", Remove, "i9"),
    breakage("item", "i_id = 1", Remove, "i7 i9"),
    breakage("item", "i_id = 100000", Remove, "i9"),
    // Rows of a warehouse that does not exist.
    breakage(
        "district",
        "d_w_id = 2",
        Insert(
            "SELECT 2, d_id, 3001, 0, d_tax, '', '', '', '', '', '' FROM tpcc.district WHERE d_id = 1",
        ),
        "c1 c2 c9 c11 i9",
    ),
    breakage(
        "orders",
        "o_w_id = 2",
        Insert("SELECT 2, 1, 1, 1, now(), 1, 5, 1"),
        "c2 c4 c6 c10 c11 c12 i4 i8 i9",
    ),
    breakage("new_order", "no_w_id = 0", Insert("SELECT 0, 1, 1"), "c2 c5 c11 i9"),
    breakage(
        "history",
        "h_w_id = 2",
        Insert("SELECT 1, 1, 1, 1, 2, now(), 1, ''"),
        "c8 c9 c10 c11 i4 i9",
    ),
];
