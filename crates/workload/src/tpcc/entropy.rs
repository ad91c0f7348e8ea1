//! How random the generated text is.
//!
//! The knob decides what compression below the database (file system, datastore, array) finds. Money,
//! counters and the values that select rows (C_FIRST, C_LAST, telephone numbers) are not touched by
//! it.

use super::parameters_error::ParametersError;

/// The share of each generated text that is random, in percent.
///
/// A text of `n` bytes holds `ceil(n * percent / 100)` random alphanumeric characters, followed by a
/// fixed repeating pattern. One random character carries [`Entropy::BITS_PER_RANDOM_BYTE`] bits and
/// one character of the pattern none, so a text carries about `5.94 * percent / 100` bits per byte.
/// At 100 % nothing is left for a dictionary compressor (LZ4, pglz) to find; a compressor with an
/// entropy stage (zstd, deflate) still saves the two bits per byte that alphanumerics do not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entropy(u8);

impl Entropy {
    /// Every character random.
    pub const FULL: Entropy = Entropy(100);

    /// Bits of information in one random character: 64 equally likely codes, mapped to 62
    /// alphanumerics of which two have two codes: `60/64 * 6 + 2 * 2/64 * 5`.
    pub const BITS_PER_RANDOM_BYTE: f64 = 5.9375;

    /// A share of `percent`, 0 to 100.
    pub fn new(percent: u8) -> Result<Entropy, ParametersError> {
        if percent > 100 {
            return Err(ParametersError::EntropyAboveAll { percent });
        }
        Ok(Entropy(percent))
    }

    /// The share in percent, 0 to 100.
    pub const fn percent(self) -> u8 {
        self.0
    }

    /// Bits of information per byte of generated text, rounding of short texts left aside.
    pub fn bits_per_byte(self) -> f64 {
        Self::BITS_PER_RANDOM_BYTE * f64::from(self.0) / 100.0
    }

    /// How many bytes of a text of `length` bytes are random.
    pub(crate) const fn random_bytes(self, length: usize) -> usize {
        (length * self.0 as usize).div_ceil(100)
    }
}

impl Default for Entropy {
    /// Incompressible, so that no storage design is flattered by accident.
    fn default() -> Entropy {
        Entropy::FULL
    }
}
