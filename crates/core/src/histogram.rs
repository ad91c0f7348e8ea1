//! The latency histogram: exact counts in logarithmic-linear buckets, mergeable without loss.
//!
//! Bucket layout ("H2", as in the public description of the iopsystems histogram): values below
//! 2^8 have a bucket each; above, each power of two is divided into 2^7 equal buckets. A bucket is
//! therefore never wider than 1/128 (0.78 %) of its lower bound, over the whole range of `u64`.
//!
//! Why not percentiles: percentiles cannot be merged. Distributions are stored per second and per
//! transaction type; any percentile over any span is computed on reading.
//!
//! What it does not do: decay, sampling, clipping. Every recorded value is counted; sum, minimum and
//! maximum are exact.

/// Buckets per power of two = 2^GROUPING.
const GROUPING: u32 = 7;
/// First value that no longer has a bucket of its own.
const LINEAR_LIMIT: u64 = 1 << (GROUPING + 1);

/// Counts of `u64` values (nanoseconds wherever latency is meant).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Dense from bucket 0 up to the highest bucket used, so that empty histograms cost nothing.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Why stored histogram bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end in the middle of a number.
    #[error("histogram bytes are cut off")]
    Truncated,
    /// A version this program does not know.
    #[error("histogram format {0} is unknown")]
    UnknownFormat(u64),
    /// Numbers that no histogram can have.
    #[error("histogram bytes are inconsistent")]
    Inconsistent,
}

const FORMAT: u64 = 1;

fn bucket_of(value: u64) -> usize {
    if value < LINEAR_LIMIT {
        return value as usize;
    }
    let power = 63 - value.leading_zeros();
    let shift = power - GROUPING;
    let within = (value >> shift) - (1 << GROUPING);
    (LINEAR_LIMIT + (u64::from(power - GROUPING - 1) << GROUPING) + within) as usize
}

/// Lower bound and width of a bucket.
fn bucket_range(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < LINEAR_LIMIT {
        return (bucket, 1);
    }
    let offset = bucket - LINEAR_LIMIT;
    let shift = (offset >> GROUPING) + 1;
    let within = offset & ((1 << GROUPING) - 1);
    (((1 << GROUPING) + within) << shift, 1 << shift)
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        let bucket = bucket_of(value);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.count_beyond(bucket),
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// Counts one value in a bucket that no earlier value needed.
    #[cold]
    fn count_beyond(&mut self, bucket: usize) {
        self.counts.resize(bucket + 1, 0);
        self.counts[bucket] = 1;
    }

    /// Counts `n` equal values.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += n;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
    }

    /// Adds all of `other`: the result is the histogram of the union.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Forgets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.count = 0;
        self.sum = 0;
        self.min = 0;
        self.max = 0;
    }

    /// Number of recorded values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Exact sum of the recorded values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Exact largest value.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Exact mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value at or below which a share `q` in `0.0..=1.0` of the values lies (nearest rank).
    ///
    /// The middle of the bucket that holds the rank, within 0.4 % of the true value and never
    /// outside the exact minimum and maximum.
    ///
    /// # Panics
    /// If `q` is not in `0.0..=1.0`.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        assert!((0.0..=1.0).contains(&q), "a quantile lies in 0..=1, not {q}");
        if self.count == 0 {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (bucket, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                let (low, width) = bucket_range(bucket);
                return Some((low + (width - 1) / 2).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// Number of values in buckets that lie entirely above `value`.
    pub fn count_above(&self, value: u64) -> u64 {
        let bucket = bucket_of(value);
        self.counts.iter().skip(bucket + 1).sum()
    }

    /// The non-empty buckets in ascending order: (lower bound, width, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(bucket, n)| {
            let (low, width) = bucket_range(bucket);
            (low, width, *n)
        })
    }

    /// The stored form: varints of format, count, sum, min, max, then (gap, count) of each
    /// non-empty bucket. Some tens of bytes for a second of a transaction type.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, u128::from(FORMAT));
        put_varint(&mut out, u128::from(self.count));
        put_varint(&mut out, self.sum);
        put_varint(&mut out, u128::from(self.min));
        put_varint(&mut out, u128::from(self.max));
        let mut next = 0;
        for (bucket, n) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            put_varint(&mut out, (bucket - next) as u128);
            put_varint(&mut out, u128::from(*n));
            next = bucket + 1;
        }
        out
    }

    /// Reads what [`Histogram::encode`] wrote.
    pub fn decode(mut bytes: &[u8]) -> Result<Histogram, DecodeError> {
        let format = take_u64(&mut bytes)?;
        if format != FORMAT {
            return Err(DecodeError::UnknownFormat(format));
        }
        let mut histogram = Histogram {
            count: take_u64(&mut bytes)?,
            sum: take_varint(&mut bytes)?,
            min: take_u64(&mut bytes)?,
            max: take_u64(&mut bytes)?,
            counts: Vec::new(),
        };
        let mut next = 0usize;
        let mut total = 0u64;
        while !bytes.is_empty() {
            let gap =
                usize::try_from(take_u64(&mut bytes)?).map_err(|_| DecodeError::Inconsistent)?;
            let n = take_u64(&mut bytes)?;
            let bucket = next.checked_add(gap).ok_or(DecodeError::Inconsistent)?;
            if n == 0 || bucket > bucket_of(u64::MAX) {
                return Err(DecodeError::Inconsistent);
            }
            histogram.counts.resize(bucket + 1, 0);
            histogram.counts[bucket] = n;
            total = total.checked_add(n).ok_or(DecodeError::Inconsistent)?;
            next = bucket + 1;
        }
        if total != histogram.count || histogram.min > histogram.max {
            return Err(DecodeError::Inconsistent);
        }
        Ok(histogram)
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u128, DecodeError> {
    let mut value = 0u128;
    for shift in (0..126).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(DecodeError::Truncated)?;
        *bytes = rest;
        value |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(DecodeError::Inconsistent)
}

fn take_u64(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    u64::try_from(take_varint(bytes)?).map_err(|_| DecodeError::Inconsistent)
}

#[cfg(test)]
mod tests {
    use super::{Histogram, bucket_of, bucket_range};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn empty_has_no_quantiles() {
        assert_eq!(Histogram::new().quantile(0.5), None);
        assert_eq!(Histogram::decode(&Histogram::new().encode()), Ok(Histogram::new()));
    }

    #[test]
    fn buckets_are_contiguous() {
        let mut expected = 0u64;
        for bucket in 0..bucket_of(u64::MAX) {
            let (low, width) = bucket_range(bucket);
            assert_eq!(low, expected, "bucket {bucket}");
            expected = low + width;
        }
    }

    proptest! {
        #[test]
        fn every_value_is_in_its_bucket(value in any::<u64>()) {
            let (low, width) = bucket_range(bucket_of(value));
            prop_assert!(low <= value && value - low < width);
            prop_assert!(width == 1 || width <= low >> 7);
        }

        #[test]
        fn merge_is_the_histogram_of_the_union(a: Vec<u64>, b: Vec<u64>) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let union: Vec<u64> = a.into_iter().chain(b).collect();
            prop_assert_eq!(merged, of(&union));
        }

        #[test]
        fn decode_returns_what_was_encoded(values: Vec<u64>) {
            let histogram = of(&values);
            prop_assert_eq!(Histogram::decode(&histogram.encode()), Ok(histogram));
        }

        #[test]
        fn decode_never_panics(bytes: Vec<u8>) {
            let _ = Histogram::decode(&bytes);
        }

        #[test]
        fn quantiles_are_within_half_a_bucket(mut values in proptest::collection::vec(0u64..1 << 40, 1..200), q in 0.0f64..=1.0) {
            let found = of(&values).quantile(q).unwrap();
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let truth = values[rank - 1];
            prop_assert!(found.abs_diff(truth) <= truth / 128);
        }
    }
}
