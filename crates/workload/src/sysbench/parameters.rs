//! What a run of the workload is a function of.

use underlay_core::RootSeed;

use super::{Distribution, Script};

/// Size, seed, skew and composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Tables `sbtest1` to `sbtest<tables>`.
    pub tables: u32,
    /// Rows of each table when it is loaded; ids are `1..=table_size`.
    pub table_size: u32,
    /// The root of rows and users.
    pub seed: RootSeed,
    /// How ids and the values of `k` are drawn.
    pub distribution: Distribution,
    /// What users do, unless weights say otherwise.
    pub script: Script,
    /// How many statements of each kind a transaction has.
    pub composition: Composition,
}

/// Statements per transaction: sysbench's options of the same names, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Composition {
    /// Selects by id.
    pub point_selects: u32,
    /// Selects of a range of ids.
    pub simple_ranges: u32,
    /// Sums over a range.
    pub sum_ranges: u32,
    /// Ranges ordered by `c`.
    pub order_ranges: u32,
    /// Distinct values of a range, ordered.
    pub distinct_ranges: u32,
    /// Ids in a range.
    pub range_size: u32,
    /// Updates of the indexed column.
    pub index_updates: u32,
    /// Updates of a column without index.
    pub non_index_updates: u32,
    /// Rows deleted and inserted again.
    pub delete_inserts: u32,
    /// Rows of one statement of `bulk_insert`.
    pub bulk_rows: u32,
}

/// Why parameters were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// No table.
    #[error("the number of tables is {0}; use 1 to {max}", max = Parameters::TABLES_MAX)]
    Tables(u32),
    /// No row, or more than an integer can number.
    #[error("the table size is {0}; use 1 to {max}", max = Parameters::TABLE_SIZE_MAX)]
    TableSize(u32),
}

impl Default for Composition {
    fn default() -> Composition {
        Composition {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            bulk_rows: 1_000,
        }
    }
}

impl Parameters {
    /// Most tables.
    pub const TABLES_MAX: u32 = 10_000;
    /// Most rows of a table, so that inserted ids still fit into a signed integer of 32 bits.
    pub const TABLE_SIZE_MAX: u32 = 1_000_000_000;

    /// Parameters with the composition's defaults.
    pub fn new(
        tables: u32,
        table_size: u32,
        seed: RootSeed,
        distribution: Distribution,
        script: Script,
    ) -> Result<Parameters, ParametersError> {
        if !(1..=Parameters::TABLES_MAX).contains(&tables) {
            return Err(ParametersError::Tables(tables));
        }
        if !(1..=Parameters::TABLE_SIZE_MAX).contains(&table_size) {
            return Err(ParametersError::TableSize(table_size));
        }
        let composition = Composition::default();
        Ok(Parameters { tables, table_size, seed, distribution, script, composition })
    }

    /// Rows of all tables when they are loaded.
    pub fn rows(&self) -> u64 {
        u64::from(self.tables) * u64::from(self.table_size)
    }
}
