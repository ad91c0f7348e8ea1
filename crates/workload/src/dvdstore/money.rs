//! Taxes. Amounts are whole cents everywhere.

/// The tax on an amount: 8.25 %, halves of a cent rounded up.
pub fn tax_cents(net_cents: i64) -> i64 {
    (net_cents * 825 + 5_000) / 10_000
}

#[cfg(test)]
mod tests {
    use super::tax_cents;

    #[test]
    fn taxes_are_rounded_to_cents() {
        assert_eq!(tax_cents(0), 0);
        assert_eq!(tax_cents(10_000), 825);
        // 1.65 and 0.495 and 16.5 cents.
        assert_eq!((tax_cents(20), tax_cents(6), tax_cents(200)), (2, 0, 17));
    }
}
