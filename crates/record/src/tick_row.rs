//! The stored form of one tick: the values as little-endian `f64`, one after the other.
//!
//! NaN stands for "missing now" and is kept. A row may be shorter than the list of its series (it
//! was written before the source grew); absent values are missing.

use crate::error::ReadError;

/// The bytes of `values`.
pub(crate) fn encode(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The values in `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<f64>, ReadError> {
    let (whole, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(ReadError::RaggedRow { bytes: bytes.len() });
    }
    Ok(whole.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn values_keep_every_bit(bits in proptest::collection::vec(any::<u64>(), 0..50)) {
            let values: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
            let back: Vec<u64> =
                decode(&encode(&values)).unwrap().iter().map(|value| value.to_bits()).collect();
            prop_assert_eq!(back, bits);
        }
    }

    #[test]
    fn a_ragged_row_is_refused() {
        assert!(decode(&[0; 12]).is_err());
    }
}
