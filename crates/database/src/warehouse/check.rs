//! Compares the content of a warehouse and its answers to queries with the expected ones.
//!
//! Counts and rules are asked of the database; the answers to the 22 queries are compared, value by value, with those
//! that are computed from the generator's rows without SQL. That needs the rows in memory: about 1.5 GB at scale
//! factor 1.

use underlay_workload::warehouse::answers::{Difference, Tables};

use super::rows::Table;
use super::sql::{dialect, queries};
use super::{Described, WarehouseError, schema};
use crate::connection::{Cells, Connection};
use crate::parallel::on_runtime;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// One thing that was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What.
    pub title: String,
    /// What is wrong with it, if anything.
    pub violation: Option<String>,
}

/// Rows that name a row that is not there: title, query for their number.
const REFERENCES: [(&str, &str, &str, &str); 9] = [
    ("nations have their region", "nation", "region", "r_regionkey = n_regionkey"),
    ("suppliers have their nation", "supplier", "nation", "n_nationkey = s_nationkey"),
    ("customers have their nation", "customer", "nation", "n_nationkey = c_nationkey"),
    ("offers have their part", "partsupp", "part", "p_partkey = ps_partkey"),
    ("offers have their supplier", "partsupp", "supplier", "s_suppkey = ps_suppkey"),
    ("orders have their customer", "orders", "customer", "c_custkey = o_custkey"),
    ("lines have their order", "lineitem", "orders", "o_orderkey = l_orderkey"),
    ("orders have a line", "orders", "lineitem", "l_orderkey = o_orderkey"),
    (
        "lines have their offer",
        "lineitem",
        "partsupp",
        "ps_partkey = l_partkey AND ps_suppkey = l_suppkey",
    ),
];

/// Orders whose total or status does not follow from their lines.
const TOTALS: (&str, &str) = (
    "orders are the sum of their lines",
    "SELECT count(*) FROM orders JOIN (SELECT l_orderkey, \
       round(sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)), 2) AS total, \
       CASE WHEN min(l_linestatus) = max(l_linestatus) THEN min(l_linestatus) ELSE 'P' END AS status \
     FROM lineitem GROUP BY l_orderkey) AS summed ON l_orderkey = o_orderkey \
     WHERE o_totalprice <> total OR o_orderstatus <> status",
);

/// See [`super::check`].
pub(super) fn check<C: SchemaOwner + Connection>(
    target: &Target,
    described: &Described,
) -> Result<Vec<Checked>, WarehouseError> {
    let population = described.population;
    let tables = Tables::generate(population, described.refreshed);
    on_runtime(target.stop.unless(async {
        let mut connection: C = schema::open(target).await?;
        let prepared = connection.run(dialect(C::ENGINE).check_settings).await;
        prepared.map_err(WarehouseError::during("preparing the checks"))?;
        let mut checked = Vec::new();
        for table in Table::ALL {
            let title = format!("rows of {}", table.name());
            let expected = match (table, tables.sales()) {
                (Table::PartSupplier, _) => 4 * table.items(&population),
                (Table::Orders, (orders, _)) => orders,
                (Table::Lines, (_, lines)) => lines,
                _ => table.items(&population),
            };
            let sql = format!("SELECT count(*) FROM {}", table.name());
            let found = number(&ask(&mut connection, &title, &sql).await?);
            let violation = (found != Some(expected))
                .then(|| format!("{} instead of {expected}", shown(found)));
            checked.push(Checked { title, violation });
        }
        for (title, from, to, link) in REFERENCES {
            let sql = format!(
                "SELECT count(*) FROM {from} WHERE NOT EXISTS (SELECT 1 FROM {to} WHERE {link})"
            );
            checked.push(none(&mut connection, title, &sql).await?);
        }
        checked.push(none(&mut connection, TOTALS.0, TOTALS.1).await?);
        for number in 1..=22 {
            let query = population.query(0, number);
            let title = format!("answer of Q{number}");
            let sql = queries::sql(&query, population.scale);
            let found = ask(&mut connection, &title, &sql).await?;
            let difference = Difference::find(&tables.answer(&query), &found);
            let violation = difference.map(|difference| format!("{difference} ({query:?})"));
            checked.push(Checked { title, violation });
        }
        Ok(checked)
    }))
}

/// The result of a statement that finds out about `title`.
async fn ask<C: Connection>(
    connection: &mut C,
    title: &str,
    sql: &str,
) -> Result<Vec<Cells>, WarehouseError> {
    connection.read_all(sql).await.map_err(WarehouseError::during(title))
}

async fn none<C: Connection>(
    connection: &mut C,
    title: &str,
    sql: &str,
) -> Result<Checked, WarehouseError> {
    let found = number(&ask(connection, title, sql).await?);
    let violation = (found != Some(0)).then(|| format!("not for {} rows", shown(found)));
    Ok(Checked { title: title.to_string(), violation })
}

fn number(rows: &[Cells]) -> Option<u64> {
    rows.first()?.first()?.as_deref()?.parse().ok()
}

fn shown(number: Option<u64>) -> String {
    number.map_or("no number".to_string(), |number| number.to_string())
}
