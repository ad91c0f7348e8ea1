//! The device that takes no time.

use crate::profile::{Basis, DeviceProfile, Medium};
use underlay_core::{Bytes, Nanos};

pub(super) fn null() -> DeviceProfile {
    DeviceProfile {
        name: "null".to_string(),
        description: "No delay: the export alone".to_string(),
        source: "Made up on purpose, to measure what the export itself costs.".to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(1 << 50),
        medium: Medium::Instant,
        link: None,
        write_buffer: None,
        flush: Nanos::ZERO,
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
