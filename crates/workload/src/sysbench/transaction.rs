//! One transaction: its statements, in execution order, with all inputs drawn.

use super::Script;

/// A statement with its inputs. Tables and ids count from 1; texts are carried as the number they are made
/// from (see [`super::text_of`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `c` of one id.
    PointSelect {
        /// The table.
        table: u32,
        /// The id.
        id: u32,
    },
    /// `c` of a range of ids.
    SimpleRange(Range),
    /// The sum of `k` over a range of ids.
    SumRange(Range),
    /// `c` of a range of ids, ordered.
    OrderRange(Range),
    /// Distinct `c` of a range of ids, ordered.
    DistinctRange(Range),
    /// Adds 1 to `k`.
    IndexUpdate {
        /// The table.
        table: u32,
        /// The id.
        id: u32,
    },
    /// Writes another `c`.
    NonIndexUpdate {
        /// The table.
        table: u32,
        /// The id.
        id: u32,
        /// The number of the text.
        text: u64,
    },
    /// Deletes a row and inserts another under the same id: two statements.
    DeleteInsert {
        /// The table.
        table: u32,
        /// The id.
        id: u32,
        /// The new `k`.
        k: u32,
        /// The number of the texts.
        text: u64,
    },
    /// Inserts a row; the database numbers it.
    Insert {
        /// The table.
        table: u32,
        /// Its `k`.
        k: u32,
        /// The number of the texts.
        text: u64,
    },
    /// Deletes a row, if it is still there.
    Delete {
        /// The table.
        table: u32,
        /// The id.
        id: u32,
    },
    /// Inserts rows `first..first + rows` into a table of the user's own.
    BulkInsert {
        /// The user's table.
        table: u32,
        /// The first id.
        first: u32,
        /// How many rows.
        rows: u32,
    },
}

/// A range of ids of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The table.
    pub table: u32,
    /// The first id.
    pub first: u32,
    /// The last id.
    pub last: u32,
}

/// One transaction with all its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// Which script it is an event of.
    pub script: Script,
    /// Its statements in order, between BEGIN and COMMIT where [`Script::is_explicit`].
    pub operations: Vec<Operation>,
}
