//! What the table holds: every row, compared with the generator's, and when rows came. Nothing is changed.

use underlay_workload::batch::{
    CHECKORD_BYTES, Claim, Parameters, Row, TEXT_COLUMNS, Text, Verdict, Verifier,
};

use super::BatchError;
use super::columns::{COLUMNS, columns};
use super::schema::{number, open};
use super::sql::dialect;
use crate::connection::{self, Connection, Sql};
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// Reads the whole table in the order of its key.
pub(super) async fn verify<C: Connection + SchemaOwner>(
    target: &Target,
    parameters: &Parameters,
    claims: Vec<Claim>,
) -> Result<Verdict, BatchError> {
    let mut connection = open::<C>(target).await?;
    let table = C::table(WorkloadTables::Batch, "test");
    let sql = format!("SELECT {} FROM {table} ORDER BY rec_num", columns());
    // The binary protocol: text would be converted and parsed for nothing.
    let statement = connection.prepare(Sql::new(&sql)).await?;
    let mut verifier = Verifier::new(*parameters, claims);
    let mut look = |row: C::Row<'_>| match read(&row) {
        Some(row) => verifier.row(&row),
        None => verifier
            .impossible(&format!("a row has no value, or one of a wrong size: {}", shown(&row))),
    };
    connection.rows(&statement, &[], &mut look).await?;
    Ok(verifier.finish())
}

fn read(row: &impl connection::Row) -> Option<Row> {
    let mut texts = Vec::with_capacity(TEXT_COLUMNS.len());
    for index in 1..=TEXT_COLUMNS.len() {
        texts.push(Text::from_column(std::str::from_utf8(row.text(index).ok()??).ok()?)?);
    }
    Some(Row {
        rec_num: row.number(0).ok()?,
        texts: texts.try_into().ok()?,
        checkord: <[u8; CHECKORD_BYTES]>::try_from(row.text(COLUMNS - 1).ok()??).ok()?,
    })
}

/// The columns of a row that no insertion of ours makes.
fn shown(row: &impl connection::Row) -> String {
    let number = row.integer(0).ok().flatten().map(|number| number.to_string());
    let texts = (1..=TEXT_COLUMNS.len()).map(|index| {
        let text = row.text(index).ok().flatten();
        text.map(|text| String::from_utf8_lossy(text).into_owned())
    });
    let bytes = row.text(COLUMNS - 1).ok().flatten().map(|bytes| format!("{bytes:02x?}"));
    let columns = std::iter::once(number).chain(texts).chain([bytes]);
    columns
        .map(|column| column.unwrap_or_else(|| "NULL".to_string()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Rows by the second in which the server inserted them, counted from the first row's.
pub(super) async fn rows_by_server_clock<C: Connection + SchemaOwner>(
    target: &Target,
) -> Result<Vec<(u32, u64)>, BatchError> {
    let mut connection = open::<C>(target).await?;
    let table = C::table(WorkloadTables::Batch, "test");
    let second = dialect(C::ENGINE).second;
    let sql = format!("SELECT {second} AS second, count(*) FROM {table} GROUP BY 1 ORDER BY 1");
    let rows = connection.read_all(&sql).await?;
    let rows = rows.iter().map(|row| Ok((number(row, 0)?, number(row, 1)?)));
    let rows = rows.collect::<Result<Vec<(u64, u64)>, BatchError>>()?;
    let first = rows.first().map_or(0, |(second, _)| *second);
    Ok(rows.into_iter().map(|(second, count)| ((second - first) as u32, count)).collect())
}
