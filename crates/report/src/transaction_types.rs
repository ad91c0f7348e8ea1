//! The transaction types that reports know: their order and titles, and the times that the standard gives to those of TPC-C.
//!
//! What it deliberately does not do: know what a headline counts (`workload_view`). Types of other workloads are unknown here:
//! they come after the known ones, and have no limits.

/// The transaction type whose rate is the result.
pub(crate) const NEW_ORDER: &str = "new_order";

/// Position of a transaction type in the order of the standard; unknown ones come last.
pub(crate) fn type_order(name: &str) -> usize {
    KINDS.iter().position(|kind| kind.name == name).unwrap_or(KINDS.len())
}

/// A transaction type for readers: `new order`.
pub(crate) fn type_title(name: &str) -> String {
    name.replace('_', " ")
}

/// Mean keying plus think time of the standard, seconds; 0 for unknown types.
pub(crate) fn key_think_seconds(name: &str) -> f64 {
    KINDS.iter().find(|kind| kind.name == name).map_or(0.0, |kind| kind.keying_s + kind.think_s)
}

/// The standard's limit of the 90th percentile of the response time, nanoseconds.
pub(crate) fn response_limit_ns(name: &str) -> Option<u64> {
    KINDS.iter().find(|kind| kind.name == name).map(|kind| (kind.limit_s * 1e9) as u64)
}

/// A TPC-C transaction type as reports know it.
struct TransactionKind {
    name: &'static str,
    /// Keying time of clause 5.2.5.7, seconds.
    keying_s: f64,
    /// Mean think time of clause 5.2.5.7, seconds.
    think_s: f64,
    /// Limit of the 90th percentile of the response time of clause 5.2.5.3, seconds.
    limit_s: f64,
}

const KINDS: [TransactionKind; 5] = [
    TransactionKind { name: NEW_ORDER, keying_s: 18.0, think_s: 12.0, limit_s: 5.0 },
    TransactionKind { name: "payment", keying_s: 3.0, think_s: 12.0, limit_s: 5.0 },
    TransactionKind { name: "order_status", keying_s: 2.0, think_s: 10.0, limit_s: 5.0 },
    TransactionKind { name: "delivery", keying_s: 2.0, think_s: 5.0, limit_s: 5.0 },
    TransactionKind { name: "stock_level", keying_s: 2.0, think_s: 5.0, limit_s: 20.0 },
];

#[cfg(test)]
mod tests {
    use super::{key_think_seconds, response_limit_ns, type_order};

    #[test]
    fn the_standards_times() {
        assert_eq!(key_think_seconds("new_order"), 30.0);
        assert_eq!(response_limit_ns("stock_level"), Some(20_000_000_000));
        assert_eq!(key_think_seconds("other"), 0.0);
        assert!(type_order("new_order") < type_order("stock_level"));
    }
}
