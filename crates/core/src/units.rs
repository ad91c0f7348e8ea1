//! Quantities: durations in nanoseconds and sizes in bytes, with their strict text forms.
//!
//! Text forms are strict because a wrong unit is the most expensive typing error in a benchmark:
//! a number without a unit is refused, and so are `M` (mega or mebi?), `K` and `min`-less minutes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A point or a length of time in nanoseconds. As a point: since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Why a quantity's text was refused. The message names what would have been accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No digits in front of the unit.
    #[error("`{0}` does not start with a number")]
    NoNumber(String),
    /// Below zero.
    #[error("`{0}` is negative")]
    Negative(String),
    /// A number alone.
    #[error("`{text}` has no unit; write for example `{example}`")]
    NoUnit {
        /// What was written.
        text: String,
        /// The same number with a unit.
        example: String,
    },
    /// A unit that is not known, or is ambiguous.
    #[error("`{unit}` is not a unit of {quantity}; use one of {accepted}")]
    UnknownUnit {
        /// What was written.
        unit: String,
        /// `time` or `size`.
        quantity: &'static str,
        /// The accepted units.
        accepted: &'static str,
    },
    /// More than 64 bits.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

const TIME_UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const TIME_ACCEPTED: &str = "ns, us, ms, s, min, h";

const SIZE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
const SIZE_ACCEPTED: &str =
    "B, KiB, MiB, GiB, TiB (powers of 1024), KB, MB, GB, TB (powers of 1000)";

fn parse_quantity(
    text: &str,
    units: &[(&str, u64)],
    quantity: &'static str,
    accepted: &'static str,
    example_unit: &str,
) -> Result<u64, QuantityError> {
    let text = text.trim();
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if text.strip_prefix('-').is_some_and(|rest| is_number(rest.trim_start())) {
        return Err(QuantityError::Negative(text.to_string()));
    }
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim_start());
    let value: f64 = number.parse().map_err(|_| QuantityError::NoNumber(text.to_string()))?;
    if unit.is_empty() {
        return Err(QuantityError::NoUnit {
            text: text.to_string(),
            example: format!("{number}{example_unit}"),
        });
    }
    let factor =
        units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor).ok_or_else(
            || QuantityError::UnknownUnit { unit: unit.to_string(), quantity, accepted },
        )?;
    // Whole numbers stay exact; only fractions go through floating point.
    let scaled = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => Some(value * factor as f64)
            .filter(|scaled| *scaled < u64::MAX as f64)
            .map(|scaled| scaled.round() as u64),
    };
    scaled.ok_or_else(|| QuantityError::TooLarge(text.to_string()))
}

impl Nanos {
    /// The length of nothing, and the start of a run.
    pub const ZERO: Nanos = Nanos(0);

    /// From whole microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// From whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs * 1_000_000_000)
    }

    /// In seconds, for rates and display.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero when `earlier` is later.
    pub const fn saturating_sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Nanos {
    /// Saturates at 584 years.
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(values: I) -> Nanos {
        Nanos(values.map(|value| value.0).sum())
    }
}

impl FromStr for Nanos {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Nanos, QuantityError> {
        parse_quantity(text, &TIME_UNITS, "time", TIME_ACCEPTED, "s").map(Nanos)
    }
}

impl fmt::Display for Nanos {
    /// At most three significant digits below the second, whole seconds and minutes above.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        match ns {
            0 => f.write_str("0 s"),
            1..1_000 => write!(f, "{ns} ns"),
            1_000..1_000_000 => write!(f, "{} us", three_digits(ns as f64 / 1e3)),
            1_000_000..1_000_000_000 => write!(f, "{} ms", three_digits(ns as f64 / 1e6)),
            1_000_000_000..120_000_000_000 => write!(f, "{} s", three_digits(ns as f64 / 1e9)),
            _ => {
                let secs = ns / 1_000_000_000;
                if secs < 7200 {
                    write!(f, "{} min {:02} s", secs / 60, secs % 60)
                } else {
                    write!(f, "{} h {:02} min", secs / 3600, secs / 60 % 60)
                }
            }
        }
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);

    /// From whole kibibytes.
    pub const fn from_kib(kib: u64) -> Bytes {
        Bytes(kib << 10)
    }

    /// From whole mebibytes.
    pub const fn from_mib(mib: u64) -> Bytes {
        Bytes(mib << 20)
    }

    /// From whole gibibytes.
    pub const fn from_gib(gib: u64) -> Bytes {
        Bytes(gib << 30)
    }

    /// In mebibytes, for display.
    pub fn as_mib_f64(self) -> f64 {
        self.0 as f64 / (1u64 << 20) as f64
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(values: I) -> Bytes {
        Bytes(values.map(|value| value.0).sum())
    }
}

impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Bytes, QuantityError> {
        parse_quantity(text, &SIZE_UNITS, "size", SIZE_ACCEPTED, "MiB").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// Powers of 1024, at most three significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        let (unit, factor) = match bytes {
            0..0x400 => return write!(f, "{bytes} B"),
            0x400..0x10_0000 => ("KiB", 10),
            0x10_0000..0x4000_0000 => ("MiB", 20),
            0x4000_0000..0x100_0000_0000 => ("GiB", 30),
            _ => ("TiB", 40),
        };
        write!(f, "{} {unit}", three_digits(bytes as f64 / (1u64 << factor) as f64))
    }
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Nanos, QuantityError};

    #[test]
    fn parses_strictly() {
        assert_eq!("10s".parse(), Ok(Nanos::from_secs(10)));
        assert_eq!("1.5 ms".parse(), Ok(Nanos::from_micros(1500)));
        assert_eq!("2min".parse(), Ok(Nanos::from_secs(120)));
        assert_eq!("512MiB".parse(), Ok(Bytes::from_mib(512)));
        assert_eq!("960 GB".parse(), Ok(Bytes(960_000_000_000)));
        assert!(matches!("10".parse::<Nanos>(), Err(QuantityError::NoUnit { .. })));
        assert!(matches!("10M".parse::<Bytes>(), Err(QuantityError::UnknownUnit { .. })));
        assert!(matches!("10 sec".parse::<Nanos>(), Err(QuantityError::UnknownUnit { .. })));
        assert!(matches!("fast".parse::<Nanos>(), Err(QuantityError::NoNumber(_))));
        assert!(matches!("s".parse::<Nanos>(), Err(QuantityError::NoNumber(_))));
        assert!(matches!("-".parse::<Nanos>(), Err(QuantityError::NoNumber(_))));
        for negative in ["-1s", "- 1.5 ms", "-5"] {
            assert!(matches!(negative.parse::<Nanos>(), Err(QuantityError::Negative(_))));
        }
        assert_eq!("-5GiB".parse::<Bytes>().unwrap_err().to_string(), "`-5GiB` is negative");
        assert!(matches!("99999999999h".parse::<Nanos>(), Err(QuantityError::TooLarge(_))));
    }

    #[test]
    fn displays_readably() {
        assert_eq!(Nanos(1_234).to_string(), "1.23 us");
        assert_eq!(Nanos::from_millis(250).to_string(), "250 ms");
        assert_eq!(Nanos::from_secs(90).to_string(), "90 s");
        assert_eq!(Nanos::from_secs(300).to_string(), "5 min 00 s");
        assert_eq!(Bytes::from_mib(1536).to_string(), "1.5 GiB");
        assert_eq!(Bytes(100).to_string(), "100 B");
    }
}
