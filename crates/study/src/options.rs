//! What the command line may change in a study.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use serde_json::Value;
use underlay_core::Nanos;

use crate::json_value::{FromJson, ToJson, json_struct};
use crate::plan::{Repeats, Scale, TimeDilation};
use crate::procedure_keys;

/// The options of the plain keys and those that are declared here.
macro_rules! options_with {
    (
        [$($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty = $kind:expr,
            plan $json:literal, of [$($load:ident),+], unused $unused:expr
            $(, option $option:literal $value:literal $help:literal)?;)*]
        $(#[$meta:meta])*
        pub struct $name:ident { $($others:tt)* }
    ) => {
        json_struct! {
            $(#[$meta])*
            pub struct $name {
                $($(#[doc = $option] $json $field: Option<$type>,)?)*
                $($others)*
            }
            reads_back
        }
    };
}

procedure_keys! { options_with!
    /// Options that take precedence over the study file. All empty = the study as written.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PlanOptions {
        /// `--laptop`.
        "size" size: Option<StudySize>,
        /// `--scale 1/k`.
        "scale" scale: Option<Scale>,
        /// `--repeats N`, or `--repeats "until 5 %"`.
        "repeats" repeats: Option<Repeats>,
        /// `--users 1,4,16`: replaces the ladder, not scaled.
        "users" users: Option<Vec<u32>>,
        /// `--seed N`.
        "seed" seed: Option<u64>,
        /// `--designs a,b`: only these designs of the study.
        "designs" designs: Option<Vec<String>>,
        /// `--server-bin DIR`.
        "server_bin" server_bin: Option<PathBuf>,
        /// `--out FILE`.
        "out" out: Option<PathBuf>,
    }
}

/// A size that a study has besides the one it is written at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudySize {
    /// With the values of its `[laptop]` table in their places.
    Laptop,
}

impl ToJson for StudySize {
    fn to_json(&self) -> Value {
        match self {
            StudySize::Laptop => "laptop".into(),
        }
    }
}

impl FromJson for StudySize {
    fn from_json(value: &Value) -> Option<StudySize> {
        (value.as_str()? == "laptop").then_some(StudySize::Laptop)
    }
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
