//! How often a study is repeated: a number, or until the answer is precise.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::json_value::{FromJson, ToJson};

/// Repeats before the first look at the interval, where it decides about more: with fewer, an interval that is narrow by luck
/// would end a study too often.
pub const FEWEST_REPEATS_UNTIL: u32 = 5;

/// Runs per design, as it is written: `3`, or `until 5 %`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// So many.
    Exactly(u32),
    /// Until the interval of every main ratio is as narrow as this.
    Until(Precision),
}

/// How narrow an interval is: both ends within a share of the ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision {
    /// Thousandths: 50 = from ratio / 1.05 to ratio * 1.05.
    pub permille: u32,
}

impl Precision {
    /// As a share: 0.05.
    pub fn share(self) -> f64 {
        f64::from(self.permille) / 1000.0
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.permille) / 10.0)
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repeats::Exactly(repeats) => write!(f, "{repeats}"),
            Repeats::Until(precision) => write!(f, "until {precision}"),
        }
    }
}

/// Why the text of repeats was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a number such as 5 nor a precision such as \"until 5 %\"")]
pub struct RepeatsError(pub String);

impl FromStr for Repeats {
    type Err = RepeatsError;

    fn from_str(text: &str) -> Result<Repeats, RepeatsError> {
        let refused = || RepeatsError(text.to_string());
        let Some(precision) = text.trim().strip_prefix("until") else {
            return text.trim().parse().map(Repeats::Exactly).map_err(|_| refused());
        };
        let percent = precision.trim().strip_suffix('%').ok_or_else(refused)?;
        let percent: f64 = percent.trim().parse().map_err(|_| refused())?;
        let permille = percent * 10.0;
        if !(0.0..=1e6).contains(&permille) || (permille - permille.round()).abs() > 1e-6 {
            return Err(refused());
        }
        Ok(Repeats::Until(Precision { permille: permille.round() as u32 }))
    }
}

/// A number, or the text.
impl ToJson for Repeats {
    fn to_json(&self) -> Value {
        match self {
            Repeats::Exactly(repeats) => (*repeats).into(),
            Repeats::Until(_) => self.to_string().into(),
        }
    }
}

impl FromJson for Repeats {
    fn from_json(value: &Value) -> Option<Repeats> {
        match value.as_str() {
            Some(text) => text.parse().ok().filter(|read| matches!(read, Repeats::Until(_))),
            None => u32::from_json(value).map(Repeats::Exactly),
        }
    }
}

/// As a share.
impl ToJson for Precision {
    fn to_json(&self) -> Value {
        self.share().into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Precision, Repeats};
    use crate::json_value::{FromJson, ToJson};

    #[test]
    fn repeats_are_a_number_or_a_precision() {
        let until = |permille| Repeats::Until(Precision { permille });
        let read = [
            ("3", Repeats::Exactly(3)),
            ("until 5 %", until(50)),
            ("until 5%", until(50)),
            (" until 2.5 % ", until(25)),
        ];
        for (text, expected) in read {
            let found: Repeats = text.parse().expect(text);
            assert_eq!(found, expected);
            assert_eq!(found.to_string().parse(), Ok(found), "{text}");
            assert_eq!(Repeats::from_json(&found.to_json()), Some(found));
        }
        for wrong in [
            "",
            "-1",
            "three",
            "until",
            "until 5",
            "until x %",
            "until -5 %",
            "until 0.05 %",
            "5 %",
        ] {
            assert!(wrong.parse::<Repeats>().is_err(), "{wrong}");
        }
    }
}
