//! What texts an engine has. The texts themselves are in the file of each engine.

/// The texts of an engine.
pub(crate) struct Dialect {
    /// Settings of the connections that check.
    pub settings: &'static [&'static str],
    /// Fails, with what the server says, where its user may not make temporary tables. Empty where each condition reports it.
    pub rights: &'static [&'static str],
    /// Begins the transaction in which a piece is looked at; empty where there is none.
    pub begin: &'static [&'static str],
    /// Ends it, and removes its temporary tables.
    pub end: &'static [&'static str],
    /// Begins a part of it that may fail.
    pub begin_part: &'static [&'static str],
    /// Undoes a part that failed.
    pub undo_part: &'static [&'static str],
    /// Makes the temporary table `{name}` of `{query}`.
    pub temporary_table: &'static [&'static str],
    /// What changes with every transaction that writes, where the statements of a piece do not see the same state.
    pub fingerprint: Option<&'static str>,
    /// Compares two values, of which either may be NULL.
    pub null_safe_equal: &'static str,
    /// The queries of the tables that conditions read.
    pub shared: SharedQueries,
}

/// Queries of rows that belong together, brought together once.
///
/// Every large table is read once and joined with what must agree with it. A row that is missing on either side leaves
/// nulls, which the conditions' null-safe comparisons see. Lines of orders since the load are found by district and number,
/// so that a check before a run does not read the lines of the population again.
pub(crate) struct SharedQueries {
    /// An order with its lines and its new-order row.
    pub order: &'static str,
    /// A customer with his orders and his payments.
    pub customer: &'static str,
    /// A district with its orders, its customers, and the payments that it received.
    pub district: &'static str,
    /// The stock rows that do not agree with the lines of orders since the load; normally none. Whoever asks for
    /// disagreements need not keep the rest.
    pub stock: &'static str,
    /// The lines of orders since the load whose amount or text is not what item and stock say; normally none.
    pub line: &'static str,
}

impl SharedQueries {
    /// The temporary tables by name with their queries, in the order in which they are made: later ones read earlier ones.
    pub fn tables(&self) -> [(&'static str, &'static str); 5] {
        [
            ("check_order", self.order),
            ("check_customer", self.customer),
            ("check_district", self.district),
            ("check_stock", self.stock),
            ("check_line", self.line),
        ]
    }
}
