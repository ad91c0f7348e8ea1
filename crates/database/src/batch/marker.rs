//! What a marker holds, as columns. They are read and written in `schema`; what they mean is in `described`.

use super::options::BatchOptions;

/// Version of the rows and of the marker.
pub(crate) const MARKER_FORMAT: i32 = 1;

/// What a marker holds, as its columns.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub format: i32,
    pub rows: i32,
    pub seed: i64,
    pub sessions: i32,
    pub mode: String,
    pub is_rollback: bool,
    pub is_complete: bool,
}

impl Marker {
    pub fn of(options: &BatchOptions) -> Marker {
        Marker {
            format: MARKER_FORMAT,
            rows: options.parameters.rows.cast_signed(),
            seed: options.parameters.seed.0.cast_signed(),
            sessions: options.sessions.cast_signed(),
            mode: options.mode.as_str().to_string(),
            is_rollback: options.rollback,
            is_complete: false,
        }
    }
}
