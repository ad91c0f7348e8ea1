//! Values of answers, and how what a database sent is compared with them.

use std::fmt;

use crate::warehouse::Day;

/// Rows of values.
pub type Answer = Vec<Vec<Value>>;

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text, without blanks at its end.
    Text(String),
    /// A day.
    Day(Day),
    /// `unscaled` / 10^`scale`: the database must have exactly this.
    Decimal {
        /// The number without its point.
        unscaled: i128,
        /// Digits after the point.
        scale: u32,
    },
    /// A quotient: the database must have it to the last digit but one that it shows, and show at least four after
    /// the point. Engines differ in how many they compute.
    Ratio {
        /// The dividend.
        numerator: i128,
        /// The divisor; where it is 0, the database must have NULL.
        denominator: i128,
    },
    /// Nothing.
    Null,
}

/// Where a database's answer is another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// Another number of rows.
    #[error("{found} rows instead of {expected}")]
    Rows {
        /// In the database.
        found: usize,
        /// By the evaluator.
        expected: usize,
    },
    /// Another number of columns.
    #[error("row {row} has {found} columns instead of {expected}")]
    Columns {
        /// From 1.
        row: usize,
        /// In the database.
        found: usize,
        /// By the evaluator.
        expected: usize,
    },
    /// Another value.
    #[error("row {row}, column {column}: {found} instead of {expected}")]
    Value {
        /// From 1.
        row: usize,
        /// From 1.
        column: usize,
        /// In the database.
        found: String,
        /// By the evaluator.
        expected: String,
    },
}

/// Digits that a quotient shows at least.
const RATIO_DIGITS: u32 = 4;

impl Value {
    /// A whole number.
    pub fn integer(value: impl Into<i128>) -> Value {
        Value::Decimal { unscaled: value.into(), scale: 0 }
    }

    /// An amount of money.
    pub fn cents(value: impl Into<i128>) -> Value {
        Value::Decimal { unscaled: value.into(), scale: 2 }
    }

    /// A text.
    pub fn text(value: impl Into<String>) -> Value {
        Value::Text(value.into())
    }

    /// Whether a database's text is this value.
    pub fn is(&self, found: Option<&str>) -> bool {
        match (self, found) {
            (Value::Null | Value::Ratio { denominator: 0, .. }, found) => found.is_none(),
            (_, None) => false,
            (Value::Text(text), Some(found)) => found.trim_end_matches(' ') == text,
            (Value::Day(day), Some(found)) => found == day.to_string(),
            (Value::Decimal { unscaled, scale }, Some(found)) => {
                parse(found).is_some_and(|(digits, digits_scale)| {
                    let common = (*scale).max(digits_scale);
                    let at =
                        |value: i128, scale: u32| value.checked_mul(10i128.pow(common - scale));
                    let expected = at(*unscaled, *scale);
                    expected.is_some() && expected == at(digits, digits_scale)
                })
            }
            (Value::Ratio { numerator, denominator }, Some(found)) => parse(found)
                .is_some_and(|(digits, scale)| is_ratio(*numerator, *denominator, digits, scale)),
        }
    }
}

/// Whether `digits` / 10^`scale` is the quotient but for less than one unit of its last digit.
fn is_ratio(numerator: i128, denominator: i128, digits: i128, scale: u32) -> bool {
    // More digits than fit are cut off, which is within the tolerance at the digits that remain.
    let (mut digits, mut scale) = (digits, scale);
    while scale > 12 {
        digits /= 10;
        scale -= 1;
    }
    let Some(exact) = numerator.checked_mul(10i128.pow(scale)) else { return false };
    let Some(found) = digits.checked_mul(denominator) else { return false };
    exact == found || (scale >= RATIO_DIGITS && (exact - found).abs() < denominator.abs())
}

/// A decimal number as its digits and how many are after the point. A number with more digits than 36 is cut.
fn parse(text: &str) -> Option<(i128, u32)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.get(..36usize.saturating_sub(whole.len())).unwrap_or(part);
    if whole.is_empty() || whole.len() > 36 {
        return None;
    }
    let mut digits: i128 = 0;
    for byte in whole.bytes().chain(part.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        digits = digits * 10 + i128::from(byte - b'0');
    }
    Some((sign * digits, part.len() as u32))
}

impl Difference {
    /// The first difference between an answer and what a database sent.
    pub fn find(expected: &Answer, found: &[Vec<Option<String>>]) -> Option<Difference> {
        if expected.len() != found.len() {
            return Some(Difference::Rows { found: found.len(), expected: expected.len() });
        }
        for (row, (values, cells)) in expected.iter().zip(found).enumerate() {
            if values.len() != cells.len() {
                return Some(Difference::Columns {
                    row: row + 1,
                    found: cells.len(),
                    expected: values.len(),
                });
            }
            for (column, (value, cell)) in values.iter().zip(cells).enumerate() {
                if !value.is(cell.as_deref()) {
                    return Some(Difference::Value {
                        row: row + 1,
                        column: column + 1,
                        found: cell.as_deref().unwrap_or("NULL").to_string(),
                        expected: value.to_string(),
                    });
                }
            }
        }
        None
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "{text}"),
            Value::Day(day) => write!(f, "{day}"),
            Value::Decimal { unscaled, scale: 0 } => write!(f, "{unscaled}"),
            Value::Decimal { unscaled, scale } => {
                let sign = if *unscaled < 0 { "-" } else { "" };
                let unit = 10u128.pow(*scale);
                let digits = unscaled.unsigned_abs();
                let width = *scale as usize;
                write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit)
            }
            Value::Ratio { denominator: 0, .. } | Value::Null => write!(f, "NULL"),
            Value::Ratio { numerator, denominator } => {
                write!(f, "{:.6}", *numerator as f64 / *denominator as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, Value};
    use crate::warehouse::Day;

    #[test]
    fn decimals_are_exact_and_quotients_nearly() {
        let cents = Value::cents(-12_345);
        assert_eq!(cents.to_string(), "-123.45");
        for (text, is) in [("-123.45", true), ("-123.4500", true), ("-123.46", false), ("x", false)]
        {
            assert_eq!(cents.is(Some(text)), is, "{text}");
        }
        let third = Value::Ratio { numerator: 1, denominator: 3 };
        for (text, is) in [
            ("0.3333", true),
            ("0.3334", true),
            ("0.3335", false),
            ("0.33333333333333333333", true),
            ("0.333333333334", true),
            ("0.333333333336", false),
            ("0.33", false),
        ] {
            assert_eq!(third.is(Some(text)), is, "{text}");
        }
        let half = Value::Ratio { numerator: 1, denominator: 2 };
        assert!(half.is(Some("0.5")) && !half.is(Some("0.4")));
        assert!(Value::Ratio { numerator: 0, denominator: 0 }.is(None));
        assert!(!Value::integer(0).is(None) && Value::integer(7).is(Some("7.00")));
        assert!(Value::text("SM BOX").is(Some("SM BOX    ")));
        assert!(Value::Day(Day::START).is(Some("1992-01-01")));
    }

    #[test]
    fn the_first_difference_is_named() {
        let expected = vec![vec![Value::integer(1), Value::text("a")]];
        let cell = |text: &str| Some(text.to_string());
        assert_eq!(Difference::find(&expected, &[vec![cell("1"), cell("a")]]), None);
        let found = Difference::find(&expected, &[vec![cell("1"), cell("b")]]).unwrap();
        assert_eq!(found.to_string(), "row 1, column 2: b instead of a");
        assert!(matches!(Difference::find(&expected, &[]), Some(Difference::Rows { .. })));
        assert!(matches!(
            Difference::find(&expected, &[vec![cell("1")]]),
            Some(Difference::Columns { .. })
        ));
    }
}
