//! Exact money: amounts are whole cents, rates are whole ten-thousandths. No floating point.

use std::fmt;

/// An amount of cents, displayed as a decimal number with two digits: `-10.00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cents(pub i64);

/// A rate (tax, discount) in ten-thousandths, displayed with four digits: `0.0725`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenThousandths(pub u32);

/// The whole in ten-thousandths.
const ONE: i128 = 10_000;

impl fmt::Display for Cents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let magnitude = self.0.unsigned_abs();
        write!(formatter, "{sign}{}.{:02}", magnitude / 100, magnitude % 100)
    }
}

impl fmt::Display for TenThousandths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:04}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// The total of an order (clause 2.4.2.2): `lines * (1 - discount) * (1 + warehouse tax + district
/// tax)`, computed exactly and rounded once, half a cent away from zero as SQL's `round` does.
///
/// # Panics
/// When the discount is more than the whole, which no customer has.
pub fn order_total(
    lines: Cents,
    discount: TenThousandths,
    warehouse_tax: TenThousandths,
    district_tax: TenThousandths,
) -> Cents {
    let paid = ONE - i128::from(discount.0);
    assert!(paid >= 0, "a discount of {discount} is more than the whole");
    let taxed = ONE + i128::from(warehouse_tax.0) + i128::from(district_tax.0);
    let exact = i128::from(lines.0) * paid * taxed;
    let half = ONE * ONE / 2;
    let rounded = (exact + half * exact.signum()) / (ONE * ONE);
    Cents(i64::try_from(rounded).expect("fifteen lines of at most 9,999.99 are far below 2^63"))
}

#[cfg(test)]
mod tests {
    use super::{Cents, TenThousandths, order_total};

    #[test]
    fn amounts_read_as_decimals() {
        let texts = [0, 5, -5, 123_456, -1_000].map(|cents| Cents(cents).to_string());
        assert_eq!(texts, ["0.00", "0.05", "-0.05", "1234.56", "-10.00"]);
        assert_eq!(TenThousandths(725).to_string(), "0.0725");
        assert_eq!(TenThousandths(10_001).to_string(), "1.0001");
    }

    #[test]
    fn a_total_is_rounded_once_half_away_from_zero() {
        let none = TenThousandths(0);
        assert_eq!(order_total(Cents(12_345), none, none, none), Cents(12_345));
        // 100.00 * 0.9 * 1.2 = 108.00
        let total = order_total(
            Cents(10_000),
            TenThousandths(1_000),
            TenThousandths(1_500),
            TenThousandths(500),
        );
        assert_eq!(total, Cents(10_800));
        // 0.01 * 0.5 = 0.005 goes up, 0.01 * 0.4999 does not.
        assert_eq!(order_total(Cents(1), TenThousandths(5_000), none, none), Cents(1));
        assert_eq!(order_total(Cents(1), TenThousandths(5_001), none, none), Cents(0));
        assert_eq!(order_total(Cents(-1), TenThousandths(5_000), none, none), Cents(-1));
    }
}
