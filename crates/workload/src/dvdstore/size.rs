//! How large a shop is: the published rules from a nominal size to numbers of rows.
//!
//! The nominal size is a name, not bytes: it dates from a version without reviews. "10MB" holds 4 million ratings of
//! reviews and takes some 460 MB in PostgreSQL. For bytes, ask the database after the load.
//!
//! Units are decimal: 1 GB is 1,000 MB. Below 1 GB and above it products follow different rules, so 999 MB have more of them
//! than 1 GB, and 2 GB fewer: that is the published rule, kept so that sizes of the same name hold the same rows.

use std::fmt;
use std::str::FromStr;

/// Reviews per product.
const REVIEWS_PER_PRODUCT: u64 = 20;
const KB_PER_MB: u64 = 1_000;
const KB_PER_GB: u64 = 1_000_000;
const KB_PER_TB: u64 = 1_000_000_000;
/// The largest size: ratings of reviews are numbered too, and their numbers reach 2^31 first.
const NOMINAL_KB_MAX: u64 = 500 * KB_PER_GB;
/// The finest step, so that every count is whole: 1 order per month.
const STEP_KB: u64 = 10;

/// The size of a shop, by its nominal name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    nominal_kb: u64,
}

/// Why a size was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a size.
    #[error(
        "`{0}` is not a size; write S (10MB), M (1GB), L (100GB), or a number with MB, GB or TB"
    )]
    Malformed(String),
    /// Too small, too large, or between two steps.
    #[error("the size {0} kB is out of range; use 0.01MB to 500GB in steps of 0.01MB")]
    OutOfRange(u64),
}

impl Size {
    /// "S".
    pub const SMALL: Size = Size { nominal_kb: 10 * KB_PER_MB };
    /// "M".
    pub const MEDIUM: Size = Size { nominal_kb: KB_PER_GB };
    /// "L".
    pub const LARGE: Size = Size { nominal_kb: 100 * KB_PER_GB };

    /// A size by its nominal kilobytes: 10 to 500,000,000, in steps of 10. With more, ids would not fit into an
    /// integer of 32 bits.
    pub fn of_nominal_kb(nominal_kb: u64) -> Result<Size, SizeError> {
        if !(STEP_KB..=NOMINAL_KB_MAX).contains(&nominal_kb) || !nominal_kb.is_multiple_of(STEP_KB)
        {
            return Err(SizeError::OutOfRange(nominal_kb));
        }
        Ok(Size { nominal_kb })
    }

    /// The nominal size in kilobytes.
    pub const fn nominal_kb(self) -> u64 {
        self.nominal_kb
    }

    /// Customers: 20,000 per 10 MB.
    pub const fn customers(self) -> u32 {
        (self.nominal_kb * 2) as u32
    }

    /// Orders per month, over twelve months: 1,000 per 10 MB.
    pub const fn orders_per_month(self) -> u32 {
        (self.nominal_kb / STEP_KB) as u32
    }

    /// Orders: twelve months of them.
    pub const fn orders(self) -> u32 {
        12 * self.orders_per_month()
    }

    /// Products: 10,000 per 10 MB below 1 GB, 100,000 at 1 GB, 1,000,000 per 100 GB above.
    pub const fn products(self) -> u32 {
        if self.nominal_kb < KB_PER_GB {
            self.nominal_kb as u32
        } else if self.nominal_kb == KB_PER_GB {
            100_000
        } else {
            (self.nominal_kb / 100) as u32
        }
    }

    /// Reviews: 20 per product on average.
    pub const fn reviews(self) -> u32 {
        self.products() * REVIEWS_PER_PRODUCT as u32
    }

    /// Members: 10 % of the customers.
    pub const fn members(self) -> u32 {
        self.customers() / 10
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let malformed = || SizeError::Malformed(text.to_string());
        let word = text.trim().to_ascii_uppercase();
        match word.as_str() {
            "S" => return Ok(Size::SMALL),
            "M" => return Ok(Size::MEDIUM),
            "L" => return Ok(Size::LARGE),
            _ => {}
        }
        let units = [("MB", KB_PER_MB), ("GB", KB_PER_GB), ("TB", KB_PER_TB)];
        let (number, unit_kb) = units
            .iter()
            .find_map(|(unit, kb)| word.strip_suffix(unit).map(|number| (number.trim(), *kb)))
            .ok_or_else(malformed)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
            return Err(malformed());
        }
        let whole: u64 = whole.parse().map_err(|_| malformed())?;
        // Digits after the point that are finer than a kilobyte must be zeros.
        let scale = 10u64.pow(fraction.len() as u32);
        let parts = if fraction.is_empty() {
            0
        } else {
            fraction.parse::<u64>().map_err(|_| malformed())?
        };
        let parts_kb = u128::from(parts) * u128::from(unit_kb);
        if !parts_kb.is_multiple_of(u128::from(scale)) {
            return Err(malformed());
        }
        let kb =
            whole.saturating_mul(unit_kb).saturating_add((parts_kb / u128::from(scale)) as u64);
        Size::of_nominal_kb(kb)
    }
}

impl fmt::Display for Size {
    /// The nominal size, as it is read back: `10MB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kb = self.nominal_kb;
        if kb.is_multiple_of(KB_PER_GB) {
            return write!(f, "{}GB", kb / KB_PER_GB);
        }
        if kb.is_multiple_of(KB_PER_MB) {
            return write!(f, "{}MB", kb / KB_PER_MB);
        }
        let fraction = format!("{:03}", kb % KB_PER_MB);
        write!(f, "{}.{}MB", kb / KB_PER_MB, fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::{Size, SizeError};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn every_size_reads_back_and_its_ids_fit_into_32_bits(steps in 1u64..=50_000_000) {
            let size = Size::of_nominal_kb(steps * 10).unwrap();
            prop_assert_eq!(size.to_string().parse::<Size>(), Ok(size));
            let ratings = u64::from(size.reviews()) * 41 / 2;
            for last in [u64::from(size.customers()), u64::from(size.orders()), u64::from(size.reviews()), ratings] {
                prop_assert!((1..1 << 31).contains(&last), "{}: {}", size, last);
            }
        }
    }

    fn size(text: &str) -> Size {
        text.parse().unwrap()
    }

    #[test]
    fn published_sizes_have_their_rows() {
        let counts = |size: Size| {
            (
                size.customers(),
                size.orders_per_month(),
                size.products(),
                size.reviews(),
                size.members(),
            )
        };
        assert_eq!(counts(size("S")), (20_000, 1_000, 10_000, 200_000, 2_000));
        assert_eq!(counts(size("m")), (2_000_000, 100_000, 100_000, 2_000_000, 200_000));
        assert_eq!(counts(size("L")), (200_000_000, 10_000_000, 1_000_000, 20_000_000, 20_000_000));
        assert_eq!(
            counts(size("200GB")),
            (400_000_000, 20_000_000, 2_000_000, 40_000_000, 40_000_000)
        );
        assert_eq!(counts(size("0.1MB")), (200, 10, 100, 2_000, 20));
        assert_eq!(size("500MB").products(), 500_000);
        assert_eq!(size("2GB").products(), 20_000);
        assert_eq!(
            (size("10MB"), size("1gb"), size("1000MB")),
            (Size::SMALL, Size::MEDIUM, Size::MEDIUM)
        );
    }

    #[test]
    fn sizes_read_back_and_wrong_ones_are_refused() {
        for text in ["10MB", "1GB", "100GB", "0.5TB", "0.01MB", "1.25MB", "1500MB", "0.5MB"] {
            assert_eq!(size(&size(text).to_string()), size(text), "{text}");
        }
        assert_eq!(size("1.5GB").to_string(), "1500MB");
        for text in ["", "10", "MB", "-1MB", "10KB", "1.2.3MB", "1e3MB", "0.0001MB"] {
            assert!(matches!(text.parse::<Size>(), Err(SizeError::Malformed(_))), "{text}");
        }
        for text in ["0MB", "0.501TB", "0.015MB", "99999999999999TB"] {
            assert!(matches!(text.parse::<Size>(), Err(SizeError::OutOfRange(_))), "{text}");
        }
    }
}
