//! What a datastore still has to copy, read from the series that it counts.

use std::sync::PoisonError;

use underlay_datastore::DatastoreError;

use crate::lab::samplers::SharedDatastore;

/// What is not in order: components of a cluster, copies of mirrored devices; 0 where there is neither.
pub fn impaired(datastore: &SharedDatastore) -> Result<usize, DatastoreError> {
    Ok(sum(datastore, is_impaired)? as usize)
}

/// Whether nothing is left to copy, and nothing is impaired. True where nothing is ever copied.
pub fn is_done(datastore: &SharedDatastore) -> Result<bool, DatastoreError> {
    Ok(sum(datastore, |series| is_impaired(series) || is_left(series))? == 0.0)
}

fn is_impaired(series: &str) -> bool {
    series == "cluster.components.impaired" || series.ends_with(".copies.missing")
}

/// Bytes that are being copied: of a cluster by their reason, or of a mirrored device.
fn is_left(series: &str) -> bool {
    let of_cluster = series.starts_with("cluster.resync.") && series.ends_with(".left");
    of_cluster || (series.starts_with("device.") && series.ends_with(".resync.left"))
}

/// The sum of the series that `counts` names. Those that have no value now count as nothing.
fn sum(datastore: &SharedDatastore, counts: impl Fn(&str) -> bool) -> Result<f64, DatastoreError> {
    let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    let series = datastore.series();
    if !series.iter().any(|it| counts(&it.name)) {
        return Ok(0.0);
    }
    let values = datastore.counters()?;
    let counted =
        series.iter().zip(values).filter(|(it, value)| counts(&it.name) && !value.is_nan());
    Ok(counted.map(|(_, value)| value).sum())
}

#[cfg(test)]
mod tests {
    use super::{is_impaired, is_left};

    #[test]
    fn series_of_copies_are_told_from_others() {
        for series in ["cluster.resync.rebalance.left", "device.log.resync.left"] {
            assert!(is_left(series) && !is_impaired(series), "{series}");
        }
        for series in ["cluster.components.impaired", "device.log.copies.missing"] {
            assert!(is_impaired(series) && !is_left(series), "{series}");
        }
        // Nanoseconds, and what was copied.
        for series in ["cluster.resync.time-left", "cluster.resync.rebalance.bytes"] {
            assert!(!is_left(series) && !is_impaired(series), "{series}");
        }
    }
}
