//! How well a window determines a rate: the interval of batch means.
//!
//! Seconds of a run depend on each other, batches of many seconds hardly do. Ten batches are few
//! enough for that and enough for an interval (Law, Simulation Modeling and Analysis, section
//! 9.5.3). Not here: repeats, comparisons.

/// Batches of a window.
const BATCHES: usize = 10;
/// The 97.5 % quantile of Student's t with 9 degrees of freedom.
const STUDENT_T: f64 = 2.262;

/// Half the width of the 95 % interval of the mean count per second, relative to it. `counts` are
/// those of the first seconds, missing ones are 0. None for less than ten seconds, or where nothing
/// was counted.
pub(crate) fn relative_half_width(counts: &[u32], seconds: usize) -> Option<f64> {
    let length = seconds / BATCHES;
    if length == 0 {
        return None;
    }
    let begin = seconds - length * BATCHES;
    let count = |second: usize| f64::from(counts.get(second).copied().unwrap_or(0));
    let batch = |number: usize| {
        let first = begin + number * length;
        (first..first + length).map(count).sum::<f64>()
    };
    let batches: [f64; BATCHES] = std::array::from_fn(batch);
    let mean = batches.iter().sum::<f64>() / BATCHES as f64;
    if mean == 0.0 {
        return None;
    }
    let squares = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>();
    let deviation = (squares / (BATCHES - 1) as f64).sqrt();
    Some(STUDENT_T * deviation / (BATCHES as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::relative_half_width;

    #[test]
    fn the_interval_is_that_of_ten_batches() {
        assert_eq!(relative_half_width(&[5; 9], 9), None);
        assert_eq!(relative_half_width(&[], 20), None);
        assert_eq!(relative_half_width(&[5; 20], 20), Some(0.0));
        // Batches of 8 and 12: mean 10, deviation 2.108.
        let counts: Vec<u32> =
            (0..20).map(|second| if second / 2 % 2 == 0 { 4 } else { 6 }).collect();
        let width = relative_half_width(&counts, 20).expect("twenty seconds");
        assert!((width - 2.262 * 2.108 / 10f64.sqrt() / 10.0).abs() < 1e-4, "{width}");
        // The first second does not fill a batch.
        let mut later = vec![1_000];
        later.extend(&counts);
        assert_eq!(relative_half_width(&later, 21), Some(width));
    }
}
