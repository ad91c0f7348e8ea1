//! A histogram in its stored form: some tens of bytes, decoded when it is needed.
//!
//! A long run has hundreds of thousands of histograms, one per second and type. Decoded, each takes tens
//! of kilobytes; readers therefore keep them encoded and decode those that they merge.

use underlay_core::Histogram;
use underlay_core::histogram::DecodeError;

/// An encoded histogram that is known to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHistogram {
    bytes: Box<[u8]>,
}

impl StoredHistogram {
    /// The counts.
    pub fn decoded(&self) -> Histogram {
        Histogram::decode(&self.bytes).expect("the bytes were encoded or verified here")
    }

    /// The stored bytes, verified by decoding them once.
    pub(crate) fn verified(bytes: Vec<u8>) -> Result<StoredHistogram, DecodeError> {
        Histogram::decode(&bytes)?;
        Ok(StoredHistogram { bytes: bytes.into_boxed_slice() })
    }

    /// The bytes to be stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<&Histogram> for StoredHistogram {
    fn from(histogram: &Histogram) -> StoredHistogram {
        StoredHistogram { bytes: histogram.encode().into_boxed_slice() }
    }
}

#[cfg(test)]
mod tests {
    use super::StoredHistogram;
    use underlay_core::Histogram;

    #[test]
    fn decodes_what_it_was_made_from() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_234_567, 3);
        assert_eq!(StoredHistogram::from(&histogram).decoded(), histogram);
        assert!(StoredHistogram::verified(vec![9, 9]).is_err());
    }
}
