//! What the command line may change in a study.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use underlay_core::Nanos;

use crate::plan::Scale;

/// Options that take precedence over the study file. All empty = the study as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// `--scale 1/k`.
    pub scale: Option<Scale>,
    /// `--repeats N`.
    pub repeats: Option<u32>,
    /// `--users 1,4,16`: replaces the ladder, not scaled.
    pub users: Option<Vec<u32>>,
    /// `--warm-up 30s`.
    pub warm_up: Option<Nanos>,
    /// `--ramp-up 10s`.
    pub ramp_up: Option<Nanos>,
    /// `--measure 60s`.
    pub measure: Option<Nanos>,
    /// `--seed N`.
    pub seed: Option<u64>,
    /// `--designs a,b`: only these designs of the study.
    pub designs: Option<Vec<String>>,
    /// `--server-bin DIR`.
    pub server_bin: Option<PathBuf>,
    /// `--out FILE`.
    pub out: Option<PathBuf>,
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
