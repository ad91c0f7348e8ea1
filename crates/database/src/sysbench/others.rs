//! Sysbench's tables that another program prepared: which tables exist, their columns and their highest ids, so that a
//! run never uses missing rows. It checks names and numbers; the rows are checked elsewhere.

use underlay_workload::sysbench::Parameters;

use super::SysbenchError;
use super::sql::dialect;
use crate::connection::{Cells, Connection};
use crate::dispatch::with_engine;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// What the statements name.
const COLUMNS: [&str; 4] = ["id", "k", "c", "pad"];

/// A table `sbtest<number>` as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    number: u32,
    lacking: Vec<&'static str>,
    /// None of a table without rows.
    highest_id: Option<i64>,
}

/// Number and rows of the tables to be driven as they are: those that are wanted, or else all that there are without a gap,
/// up to the least of their highest ids.
///
/// # Errors
/// [`SysbenchError::Unfit`] with all that keeps the tables from being driven so.
pub async fn others(
    target: &Target,
    tables: Option<u32>,
    table_size: Option<u32>,
) -> Result<(u32, u32), SysbenchError> {
    let mut found = with_engine!(target.engine, C => find::<C>(target, tables).await?);
    found.sort_by_key(|other| other.number);
    fit(&found, tables, table_size).map_err(SysbenchError::Unfit)
}

fn fit(
    found: &[Other],
    tables: Option<u32>,
    table_size: Option<u32>,
) -> Result<(u32, u32), Vec<String>> {
    let there = without_gap(found.iter().map(|other| other.number));
    if there == 0 {
        return Err(vec![
            "there is no table `sbtest1` to drive as it is: prepare sysbench's tables, or name the database that has them \
             in --url"
                .to_string(),
        ]);
    }
    let mut wrong = Vec::new();
    if let Some(tables) = tables.filter(|tables| *tables > there) {
        wrong.push(format!(
            "--tables {tables}: there is no table `sbtest{}`; use at most {there}, or omit the option to use all",
            there + 1
        ));
    }
    let tables = tables.unwrap_or(there).min(there);
    let taken = || found.iter().filter(|other| other.number <= tables);
    for other in taken() {
        if !other.lacking.is_empty() {
            let columns: Vec<String> =
                other.lacking.iter().map(|name| format!("`{name}`")).collect();
            wrong.push(format!(
                "the table `sbtest{}` is not a sysbench table: it has no column {}",
                other.number,
                columns.join(", ")
            ));
        } else if other.highest_id.is_none_or(|id| id < 1) {
            wrong.push(format!(
                "the table `sbtest{}` has no row: there is nothing to drive",
                other.number
            ));
        }
    }
    let highest =
        |other: &Other| other.highest_id.and_then(|id| u32::try_from(id).ok()).filter(|id| *id > 0);
    let least = taken().filter_map(|other| Some((highest(other)?, other.number))).min();
    if let (Some(wanted), Some((least, number))) = (table_size, least)
        && wanted > least
    {
        wrong.push(format!(
            "--table-size {wanted}: the ids of the table `sbtest{number}` end at {least}; use at most that, or omit \
             the option to use all of them"
        ));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let least = least.map_or(Parameters::TABLE_SIZE_MAX, |(least, _)| least);
    Ok((tables, table_size.unwrap_or(least).min(Parameters::TABLE_SIZE_MAX)))
}

/// How many of the numbers from 1 are there, up to the first that is not; `numbers` ascend.
fn without_gap(numbers: impl Iterator<Item = u32>) -> u32 {
    let there = (1..).zip(numbers).take_while(|(expected, number)| expected == number).count();
    u32::try_from(there).unwrap_or(u32::MAX).min(Parameters::TABLES_MAX)
}

/// Number and missing columns of a table, by its name and its columns.
fn named(table: &str, columns: &[&str]) -> Option<Other> {
    let number = table.strip_prefix("sbtest")?.parse().ok()?;
    let lacking = COLUMNS.into_iter().filter(|name| !columns.contains(name)).collect();
    Some(Other { number, lacking, highest_id: None })
}

/// Whether to look how far its ids go.
fn is_of_interest(other: &Other, tables: Option<u32>) -> bool {
    tables.is_none_or(|tables| other.number <= tables) && !other.lacking.contains(&"id")
}

async fn find<C: SchemaOwner + Connection>(
    target: &Target,
    tables: Option<u32>,
) -> Result<Vec<Other>, SysbenchError> {
    let ours = WorkloadTables::Sysbench;
    C::require_sight(target, ours, "sbtest1").await?;
    let mut connection = match C::connect(&C::with_database(target, ours), 0).await {
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        connection => connection?,
    };
    let rows = connection.read_all(dialect(C::ENGINE).columns).await?;
    let cell = |row: &Cells, column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    let rows: Vec<(String, String)> = rows.iter().map(|row| (cell(row, 0), cell(row, 1))).collect();
    let mut found: Vec<Other> = rows
        .chunk_by(|(one, _), (next, _)| one == next)
        .filter_map(|rows| {
            let columns: Vec<&str> = rows.iter().map(|(_, column)| column.as_str()).collect();
            named(&rows.first()?.0, &columns)
        })
        .collect();
    for other in found.iter_mut().filter(|other| is_of_interest(other, tables)) {
        let sql = format!("SELECT max(id) FROM sbtest{}", other.number);
        let highest = connection.read_all(&sql).await?.into_iter().flatten().flatten().next();
        other.highest_id = highest.and_then(|id| id.parse().ok());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Other, fit, named};

    fn tables(highest: &[(u32, i64)]) -> Vec<Other> {
        let table = |(number, highest): &(u32, i64)| Other {
            highest_id: Some(*highest),
            ..named(&format!("sbtest{number}"), &["id", "k", "c", "pad"]).unwrap()
        };
        highest.iter().map(table).collect()
    }

    #[test]
    fn what_is_there_is_taken_unless_less_is_wanted() {
        let found = tables(&[(1, 500), (2, 400), (3, 9_000_000_000), (5, 10)]);
        assert_eq!(fit(&found, None, None), Ok((3, 400)));
        assert_eq!(fit(&found, Some(1), None), Ok((1, 500)));
        assert_eq!(fit(&found, Some(2), Some(400)), Ok((2, 400)));
        assert_eq!(fit(&found, None, Some(7)), Ok((3, 7)));
        let huge = tables(&[(1, 9_000_000_000)]);
        assert_eq!(fit(&huge, None, None), Ok((1, 1_000_000_000)));
    }

    #[test]
    fn what_is_not_there_is_named_all_at_once() {
        let mut found = tables(&[(1, 500), (2, 400)]);
        found.extend(named("sbtest3", &["id", "k"]));
        found.extend(tables(&[(4, 0)]));
        let said = fit(&found, Some(6), Some(401)).unwrap_err();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].starts_with("--tables 6") && said[0].contains("`sbtest5`"), "{said:?}");
        assert!(said[1].contains("`sbtest3`") && said[1].ends_with("`c`, `pad`"), "{said:?}");
        assert!(said[2].contains("`sbtest4` has no row"), "{said:?}");
        assert!(fit(&tables(&[(2, 10)]), None, None).is_err());
        let said = fit(&tables(&[(1, 500), (2, 400)]), None, Some(401)).unwrap_err();
        assert!(said[0].contains("`sbtest2` end at 400"), "{said:?}");
    }
}
