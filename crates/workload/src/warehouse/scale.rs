//! How large a population is.

use std::fmt;
use std::str::FromStr;

/// A scale factor, in hundredths.
///
/// The specification allows 1 and some larger ones; smaller ones are for tests and small machines. Below 0.01 the
/// formula that assigns four suppliers to a part would assign one of them twice, and between multiples of 0.01 some
/// tables would have no whole number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scale {
    hundredths: u32,
}

/// A text or number that is no scale factor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scale factor: use a multiple of 0.01, from 0.01 to 1000")]
pub struct ScaleError(String);

/// Refresh sets that there are rows for: each deletes a thousandth of the orders.
pub const REFRESH_SETS: u32 = 1000;

impl Scale {
    /// Scale factor 1.
    pub const ONE: Scale = Scale { hundredths: 100 };

    /// From hundredths, 1 to 100,000.
    pub fn from_hundredths(hundredths: u32) -> Result<Scale, ScaleError> {
        if (1..=100_000).contains(&hundredths) {
            Ok(Scale { hundredths })
        } else {
            Err(ScaleError(format!("{hundredths}/100")))
        }
    }

    /// The factor times 100.
    pub fn hundredths(self) -> u32 {
        self.hundredths
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        f64::from(self.hundredths) / 100.0
    }

    /// Rows of SUPPLIER.
    pub fn suppliers(self) -> u32 {
        100 * self.hundredths
    }

    /// Rows of PART.
    pub fn parts(self) -> u32 {
        2_000 * self.hundredths
    }

    /// Rows of CUSTOMER.
    pub fn customers(self) -> u32 {
        1_500 * self.hundredths
    }

    /// Rows of ORDERS before any refresh, which does not change their number.
    pub fn orders(self) -> u64 {
        15_000 * u64::from(self.hundredths)
    }

    /// Orders that a refresh inserts, and that another deletes.
    pub fn refresh_orders(self) -> u64 {
        15 * u64::from(self.hundredths)
    }

    /// Clerks.
    pub(super) fn clerks(self) -> u32 {
        10 * self.hundredths
    }

    /// Suppliers whose remark is a complaint, and as many whose remark is a recommendation.
    pub(super) fn remarked_suppliers(self) -> u32 {
        (5 * self.hundredths).div_ceil(100)
    }

    /// Query streams that a throughput run has at least.
    pub fn least_streams(self) -> u32 {
        match self.hundredths / 100 {
            0..10 => 2,
            10..30 => 3,
            30..100 => 4,
            100..300 => 5,
            300..1000 => 6,
            _ => 7,
        }
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Scale, ScaleError> {
        let wrong = || ScaleError(text.to_string());
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let part = part.trim_end_matches('0');
        if part.len() > 2 || whole.starts_with('+') || part.starts_with('+') {
            return Err(wrong());
        }
        let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
        let part: u32 = format!("{part:0<2}").parse().map_err(|_| wrong())?;
        whole
            .checked_mul(100)
            .and_then(|hundredths| hundredths.checked_add(part))
            .and_then(|hundredths| Scale::from_hundredths(hundredths).ok())
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:02}", self.hundredths / 100, self.hundredths % 100);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn texts_read_back() {
        for (text, hundredths) in
            [("0.01", 1), ("0.1", 10), ("1", 100), ("2.5", 250), ("1000", 100_000)]
        {
            let scale: Scale = text.parse().unwrap();
            assert_eq!((scale.hundredths(), scale.to_string()), (hundredths, text.to_string()));
        }
        for wrong in ["", "0", "0.001", "x", "-1", "1000.01", "0.+1", "+1", "1.2.3", "99999999999"]
        {
            assert!(wrong.parse::<Scale>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn scale_one_has_the_cardinalities_of_the_specification() {
        let scale = Scale::ONE;
        assert_eq!(
            (scale.suppliers(), scale.parts(), scale.customers()),
            (10_000, 200_000, 150_000)
        );
        assert_eq!((scale.orders(), scale.refresh_orders()), (1_500_000, 1_500));
        assert_eq!(
            (scale.clerks(), scale.remarked_suppliers(), scale.least_streams()),
            (1_000, 5, 2)
        );
    }
}
