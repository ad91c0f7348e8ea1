//! How old InnoDB's checkpoint may be: the limits that follow from the size of the log file.
//!
//! MariaDB 10.11, storage/innobase/log/log0log.cc, `log_t::set_capacity`. What happens at them is
//! in `log_close` (mtr0mtr.cc) and `log_checkpoint_margin` (log0log.cc); see [`crate::cleaner`].

use underlay_core::Bytes;

/// Where records begin in the file (`log_t::START_OFFSET`, log0log.h).
const RECORDS_OFFSET: u64 = 12_288;
/// Kept free for sessions that are in the middle of something: 48 pages of 16 KiB.
const RESERVE: u64 = 48 * 16_384;

/// Ages in bytes of the log, and what they are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedoLimits {
    /// What counts as the whole log (`log_capacity`).
    pub(crate) capacity: u64,
    /// Beyond this age of the checkpoint, the page cleaner gets a soft target
    /// (`max_modified_age_async`).
    pub(crate) soft_age: u64,
    /// Beyond this one it gets a hard target, and sessions wait (`max_checkpoint_age`).
    pub(crate) hard_age: u64,
}

impl RedoLimits {
    pub(crate) fn new(log_file_size: Bytes) -> RedoLimits {
        let without_tenth = |bytes: u64| bytes - bytes / 10;
        let capacity = without_tenth(log_file_size.0.saturating_sub(RECORDS_OFFSET));
        let hard_age = without_tenth(capacity.saturating_sub(RESERVE)).max(1);
        RedoLimits { capacity, soft_age: (hard_age - hard_age / 8).max(1), hard_age }
    }
}

#[cfg(test)]
mod tests {
    use super::RedoLimits;
    use underlay_core::Bytes;

    #[test]
    fn limits_are_those_of_the_server() {
        // By hand, of the default size of 96 MiB: 100,663,296 - 12,288 = 100,651,008; less
        // 10,065,100; less 786,432 and then 8,979,947; less 10,102,441.
        let limits = RedoLimits::new(Bytes::from_mib(96));
        let RedoLimits { capacity, soft_age, hard_age } = limits;
        assert_eq!((capacity, hard_age, soft_age), (90_585_908, 80_819_529, 70_717_088));
        // The smallest file, 4 MiB.
        let limits = RedoLimits::new(Bytes::from_mib(4));
        let RedoLimits { capacity, soft_age, hard_age } = limits;
        assert_eq!((capacity, hard_age, soft_age), (3_763_815, 2_679_645, 2_344_690));
    }
}
