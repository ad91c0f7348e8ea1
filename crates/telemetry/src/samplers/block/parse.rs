//! The text of `/proc/diskstats`. Pure.

/// Last parts of the series names, in the order of the file.
pub(crate) const FIELDS: [&str; 17] = [
    "read.ios",
    "read.merges",
    "read.sectors",
    "read.time",
    "write.ios",
    "write.merges",
    "write.sectors",
    "write.time",
    "in_flight",
    "io_ticks",
    "queue_time",
    "discard.ios",
    "discard.merges",
    "discard.sectors",
    "discard.time",
    "flush.ios",
    "flush.time",
];

/// Fields every kernel has; discards came with Linux 4.18, flushes with 5.5.
const FIELDS_MIN: usize = 11;

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) device: &'a str,
    /// 11, 15 or 17 fields as the kernel has them; later ones are unknown and left out.
    pub(crate) values: Vec<u64>,
}

/// The devices of the text; malformed lines are left out.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| {
        let mut columns = line.split_ascii_whitespace().skip(2);
        let device = columns.next()?;
        let values: Vec<u64> =
            columns.take(FIELDS.len()).map(str::parse).collect::<Result<_, _>>().ok()?;
        (values.len() >= FIELDS_MIN).then_some(Line { device, values })
    })
}

#[cfg(test)]
mod tests {
    use super::lines;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn old_and_new_kernels_are_read() {
        let text = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n\
                    254 0 vda 81784 11598 6770266 30513 29024 25924 4740312 16574 0 10812 47955 9284 27 860776 705 3915 162\n\
                    8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n";
        let lines: Vec<_> = lines(text).collect();
        assert_eq!(lines[0].values.len(), 11);
        assert_eq!((lines[1].device, lines[1].values[16]), ("vda", 162));
        assert_eq!(lines[2].values.len(), 17, "unknown later fields are left out");
    }

    #[test]
    fn malformed_lines_are_left_out() {
        assert_eq!(lines("8 0 sda 1 2 3\n\n8 0\n8 0 sdb 1 2 3 4 5 6 7 8 9 ten 11\n").count(), 0);
    }

    proptest! {
        #[test]
        fn never_panics(text in "([0-9]{1,4} ){0,2}[a-z0-9]{0,8}( [0-9]{1,25}){0,20}\n?.{0,20}") {
            prop_assert!(lines(&text).all(|line| (11..=17).contains(&line.values.len())));
        }
    }
}
