//! Texts of a control group's files, of both versions. Pure.

use crate::keyed::value_of;
use crate::samplers::pressure::{self, Kind};

/// How one series is taken from the text of one file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extract {
    /// The whole text is a number.
    Number,
    /// The whole text is a limit; `max`, or the huge number that means it, is no value.
    Limit,
    /// The first of these keys that is there, times a factor.
    Key(&'static [&'static str], f64),
    /// Lines `8:0 Read 123`: the sum over devices. None of a text without devices: the group has done nothing yet, or
    /// the kernel counts nothing, as version 1 does while no limit is in force; only the former would be 0.
    PerDevice(&'static str),
    /// Lines `8:0 rbytes=1 wbytes=2`: the sum over devices.
    Assigned(&'static str),
    /// A pressure text.
    Pressure(Kind),
}

/// Version 1 writes "no limit" as the largest multiple of a page below 2^63.
const UNLIMITED: u64 = 1 << 62;

impl Extract {
    /// The value in the text, `NAN` if it is not there.
    pub(super) fn of(self, text: &str) -> f64 {
        let number = || text.trim().parse::<u64>().ok();
        let value = match self {
            Extract::Number => number().map(|value| value as f64),
            Extract::Limit => number().filter(|value| *value < UNLIMITED).map(|value| value as f64),
            Extract::Key(keys, factor) => {
                keys.iter().find_map(|key| value_of(text, key)).map(|value| value * factor)
            }
            Extract::PerDevice(operation) => sum_per_device(text, operation),
            Extract::Assigned(key) => Some(sum_assigned(text, key)),
            Extract::Pressure(kind) => Some(kind.of(&pressure::parse(text))),
        };
        value.unwrap_or(f64::NAN)
    }

    /// Whether this kernel writes the value at all. Files whose lines come with the first I/O, and
    /// limits that are not set, count as there.
    pub(super) fn is_offered_by(self, text: &str) -> bool {
        match self {
            Extract::Key(..) | Extract::Pressure(_) => !self.of(text).is_nan(),
            Extract::Number | Extract::Limit | Extract::PerDevice(_) | Extract::Assigned(_) => true,
        }
    }
}

fn sum_per_device(text: &str, operation: &str) -> Option<f64> {
    let of_line = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        (words.next()? == operation).then(|| words.next()?.parse::<u64>().ok())?
    };
    text.lines().filter_map(of_line).map(|value| value as f64).reduce(|sum, value| sum + value)
}

fn sum_assigned(text: &str, key: &str) -> f64 {
    text.split_ascii_whitespace()
        .filter_map(|word| word.split_once('='))
        .filter(|(name, _)| *name == key)
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .map(|value| value as f64)
        // The sum of nothing is a negative zero.
        .fold(0.0, |sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::Extract;
    use crate::samplers::pressure::Kind;
    use proptest::prelude::proptest;

    #[test]
    fn limits_of_both_versions() {
        assert_eq!(Extract::Limit.of("536870912\n"), 536870912.0);
        assert!(Extract::Limit.of("9223372036854771712\n").is_nan());
        assert!(Extract::Limit.of("max\n").is_nan());
        assert_eq!(Extract::Number.of("12\n"), 12.0);
    }

    #[test]
    fn the_first_key_that_is_there_counts() {
        let extract = Extract::Key(&["total_cache", "cache", "file"], 1.0);
        assert_eq!(extract.of("cache 5\ntotal_cache 7\n"), 7.0);
        assert_eq!(extract.of("anon 1\nfile 9\nfile_mapped 3\n"), 9.0);
        assert!(!extract.is_offered_by("anon 1\n"));
        assert_eq!(Extract::Key(&["usage_usec"], 1e3).of("usage_usec 5\n"), 5000.0);
    }

    #[test]
    fn devices_are_added_up() {
        let v1 = "8:0 Read 100\n8:0 Write 5\n7:1 Read 11\n7:1 Total 16\nTotal 116\n";
        assert_eq!(Extract::PerDevice("Read").of(v1), 111.0);
        // What a kernel writes that counts nothing.
        assert!(Extract::PerDevice("Write").of("Total 0\n").is_nan());
        assert!(Extract::PerDevice("Write").is_offered_by("Total 0\n"));
        let v2 = "8:0 rbytes=90112 wbytes=0 rios=22 wios=0\n7:1 rbytes=10 wbytes=7 rios=1 wios=x\n";
        assert_eq!(Extract::Assigned("rbytes").of(v2), 90122.0);
        assert_eq!(Extract::Assigned("wios").of(v2), 0.0);
        assert!(Extract::Assigned("rios").of("").is_sign_positive());
    }

    #[test]
    fn pressure_of_a_group() {
        assert_eq!(Extract::Pressure(Kind::Some).of("some avg10=0 total=4\n"), 4.0);
        assert!(!Extract::Pressure(Kind::Full).is_offered_by("some avg10=0 total=4\n"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9a-zA-Z:=_ \n]{0,200}") {
            for extract in [
                Extract::Number,
                Extract::Limit,
                Extract::Key(&["a", "b"], 2.0),
                Extract::PerDevice("Read"),
                Extract::Assigned("rbytes"),
                Extract::Pressure(Kind::Some),
            ] {
                let _any = (extract.of(&text), extract.is_offered_by(&text));
            }
        }
    }
}
