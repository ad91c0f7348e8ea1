//! What the names of volumes say: which ones are of a log, and which ones of tables.

/// Name of the volume that the log is on.
const LOG_VOLUME: &str = "wal";

/// Name of the volume that the tables are on.
const DATA_VOLUME: &str = "data";

/// Whether a volume is that of the log of a database: `wal`, or `oltp-1-wal` of several databases.
pub(crate) fn is_log_volume(volume: &str) -> bool {
    is_volume(volume, LOG_VOLUME)
}

/// The same of the volume of the tables.
pub(crate) fn is_data_volume(volume: &str) -> bool {
    is_volume(volume, DATA_VOLUME)
}

fn is_volume(volume: &str, name: &str) -> bool {
    volume.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('-'))
}
