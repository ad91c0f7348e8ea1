//! What texts an engine has. The texts themselves are in the file of each engine.

/// The texts of an engine.
pub(crate) struct Dialect {
    /// Creates `{table}` with `{columns}`, in the schema of the warehouse, and where rows are stored by it with its primary
    /// key `{key}`.
    pub table: &'static str,
    /// Adds the primary key after the rows, where the table is created without it.
    pub primary_key: Option<&'static str>,
    /// Says of a column that its texts are compared byte by byte.
    pub collation: &'static str,
    /// Creates the marker.
    pub marker: &'static str,
    /// Settings of a session: tables are found by their names alone, and no statement has a limit.
    pub settings: &'static [&'static str],
    /// Further settings of the session that checks.
    pub check_settings: &'static [&'static str],
}
