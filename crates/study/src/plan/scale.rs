//! The similarity scale of a plan: everything in it divided by one number.
//!
//! It deliberately scales nothing: [`crate::scale`] does.

use std::num::NonZeroU32;
use std::str::FromStr;

use serde_json::Value;

use crate::json_value::{FromJson, ToJson};

/// Similarity scale 1/k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scale {
    /// k: everything scaled is divided by it. At least 1.
    pub divisor: u32,
}

impl Scale {
    /// The size the study was written for.
    pub const FULL: Scale = Scale { divisor: 1 };
}

/// As it is written on the command line: `1/8`.
impl ToJson for Scale {
    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

impl FromJson for Scale {
    fn from_json(value: &Value) -> Option<Scale> {
        value.as_str()?.parse().ok()
    }
}

/// Why the text of a scale was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scale; write 1/k with a whole number k, for example 1/8")]
pub struct ScaleError(pub String);

impl FromStr for Scale {
    type Err = ScaleError;
    fn from_str(text: &str) -> Result<Scale, ScaleError> {
        let divisor = match text.trim() {
            "1" => NonZeroU32::MIN,
            trimmed => trimmed
                .strip_prefix("1/")
                .and_then(|k| k.trim().parse().ok())
                .ok_or_else(|| ScaleError(text.to_string()))?,
        };
        Ok(Scale { divisor: divisor.get() })
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1/{}", self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::{Scale, ScaleError};

    #[test]
    fn scales_are_fractions_of_one() {
        assert_eq!("1/8".parse(), Ok(Scale { divisor: 8 }));
        assert_eq!("1".parse(), Ok(Scale::FULL));
        for wrong in ["8", "1/0", "2/3", "0.5", "1/", "", "1/-2"] {
            assert_eq!(wrong.parse::<Scale>(), Err(ScaleError(wrong.to_string())), "{wrong}");
        }
    }
}
