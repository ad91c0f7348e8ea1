//! Quantities as text without loss: what is written can be read back to the same value.
//!
//! The `Display` forms of the quantities are for people and round; these are for files and plans.

use underlay_core::{Bytes, Nanos};

const TIMES: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

const BINARY_SIZES: [(&str, u64); 4] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

const DECIMAL_SIZES: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];

/// The time in the largest unit that needs no fraction; seconds up to 300 stay seconds.
pub(crate) fn time(value: Nanos) -> String {
    if value == Nanos::ZERO {
        return "0s".to_string();
    }
    let seconds = value.0.is_multiple_of(1_000_000_000) && value.0 < 120_000_000_000;
    let units = if seconds { &TIMES[2..3] } else { &TIMES[..] };
    whole(value.0, units).unwrap_or_else(|| format!("{}ns", value.0))
}

/// The size in the unit that gives the shortest text without a fraction.
pub(crate) fn size(value: Bytes) -> String {
    if value == Bytes::ZERO {
        return "0B".to_string();
    }
    let mut candidates: Vec<String> = [&BINARY_SIZES[..], &DECIMAL_SIZES[..]]
        .iter()
        .filter_map(|units| whole(value.0, units))
        .collect();
    candidates.push(format!("{}B", value.0));
    // Sorting is stable, so that of two equally short texts the binary one wins.
    candidates.sort_by_key(|text| text.chars().filter(char::is_ascii_digit).count());
    candidates.swap_remove(0)
}

fn whole(value: u64, units: &[(&str, u64)]) -> Option<String> {
    units
        .iter()
        .find(|(_, factor)| value.is_multiple_of(*factor))
        .map(|(unit, factor)| format!("{}{unit}", value / factor))
}

#[cfg(test)]
mod tests {
    use super::{size, time};
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use underlay_core::{Bytes, Nanos};

    #[test]
    fn texts_are_short() {
        assert_eq!(time(Nanos::from_secs(90)), "90s");
        assert_eq!(time(Nanos::from_secs(300)), "5min");
        assert_eq!(time(Nanos::from_secs(301)), "301s");
        assert_eq!(time(Nanos(1961)), "1961ns");
        assert_eq!(size(Bytes::from_mib(1536)), "1536MiB");
        assert_eq!(size(Bytes::from_gib(3)), "3GiB");
        assert_eq!(size(Bytes(960_000_000_000)), "960GB");
        assert_eq!(size(Bytes(1001)), "1001B");
        assert_eq!(size(Bytes::ZERO), "0B");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(value in any::<u64>()) {
            prop_assert_eq!(time(Nanos(value)).parse(), Ok(Nanos(value)));
            prop_assert_eq!(size(Bytes(value)).parse(), Ok(Bytes(value)));
        }
    }
}
