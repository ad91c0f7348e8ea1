//! What a transaction sends to the server: which statements with which inputs, and which of their results are counted.

use underlay_workload::sysbench::{C_LENGTH, Operation, Outcome, PAD_LENGTH, Range, text_of};

/// The statements. Their texts are the engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Point,
    Simple,
    Sum,
    Order,
    Distinct,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    InsertAgain,
    Insert,
    Bulk,
}

impl Kind {
    /// All statements.
    pub const ALL: [Kind; 11] = [
        Kind::Point,
        Kind::Simple,
        Kind::Sum,
        Kind::Order,
        Kind::Distinct,
        Kind::IndexUpdate,
        Kind::NonIndexUpdate,
        Kind::Delete,
        Kind::InsertAgain,
        Kind::Insert,
        Kind::Bulk,
    ];
}

/// One input of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input<'a> {
    /// An id or a value of `k`.
    Int(i32),
    /// A text of digits and hyphens.
    Text(&'a str),
    /// The ids of a bulk insert.
    Ids(&'a [i32]),
}

/// Something that can carry out statements: a session of an engine.
pub(crate) trait Execute {
    /// Why a statement failed.
    type Error;

    /// The rows that a statement on table `table`, counted from 1, changed or returned.
    async fn execute(
        &mut self,
        kind: Kind,
        table: u32,
        inputs: &[Input<'_>],
    ) -> Result<u32, Self::Error>;
}

/// Carries out one operation and adds what it did to `outcome`.
pub(crate) async fn operate<E: Execute>(
    session: &mut E,
    operation: &Operation,
    outcome: &mut Outcome,
) -> Result<(), E::Error> {
    use Input::{Ids, Int, Text};
    match *operation {
        Operation::PointSelect { table, id } => {
            outcome.rows_read += session.execute(Kind::Point, table, &[Int(int(id))]).await?;
        }
        Operation::SimpleRange(ids) => range(session, Kind::Simple, ids, outcome).await?,
        Operation::SumRange(ids) => range(session, Kind::Sum, ids, outcome).await?,
        Operation::OrderRange(ids) => range(session, Kind::Order, ids, outcome).await?,
        Operation::DistinctRange(ids) => range(session, Kind::Distinct, ids, outcome).await?,
        Operation::IndexUpdate { table, id } => {
            outcome.index_updates +=
                session.execute(Kind::IndexUpdate, table, &[Int(int(id))]).await?;
        }
        Operation::NonIndexUpdate { table, id, text } => {
            let c = c_of(text);
            let inputs = [Int(int(id)), Text(as_text(&c))];
            session.execute(Kind::NonIndexUpdate, table, &inputs).await?;
        }
        Operation::DeleteInsert { table, id, k, text } => {
            outcome.deleted += session.execute(Kind::Delete, table, &[Int(int(id))]).await?;
            let (c, pad) = (c_of(text), pad_of(text));
            let row = [Int(int(id)), Int(int(k)), Text(as_text(&c)), Text(as_text(&pad))];
            outcome.inserted += session.execute(Kind::InsertAgain, table, &row).await?;
        }
        Operation::Insert { table, k, text } => {
            let (c, pad) = (c_of(text), pad_of(text));
            let row = [Int(int(k)), Text(as_text(&c)), Text(as_text(&pad))];
            outcome.inserted += session.execute(Kind::Insert, table, &row).await?;
        }
        Operation::Delete { table, id } => {
            outcome.deleted += session.execute(Kind::Delete, table, &[Int(int(id))]).await?;
        }
        Operation::BulkInsert { table, first, rows } => {
            let ids: Vec<i32> = (first..first + rows).map(int).collect();
            outcome.inserted += session.execute(Kind::Bulk, table, &[Ids(&ids)]).await?;
        }
    }
    Ok(())
}

async fn range<E: Execute>(
    session: &mut E,
    kind: Kind,
    ids: Range,
    outcome: &mut Outcome,
) -> Result<(), E::Error> {
    let inputs = [Input::Int(int(ids.first)), Input::Int(int(ids.last))];
    outcome.rows_read += session.execute(kind, ids.table, &inputs).await?;
    Ok(())
}

fn c_of(number: u64) -> [u8; C_LENGTH] {
    text_of(number)
}

fn pad_of(number: u64) -> [u8; PAD_LENGTH] {
    // Another text than the row's `c`.
    text_of(!number)
}

fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("digits and hyphens")
}

/// Ids beyond the largest integer (the end of a range near it) are clamped: no row has them.
fn int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
