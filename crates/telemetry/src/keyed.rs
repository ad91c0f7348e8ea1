//! Texts of the form `key value` per line, as in meminfo, vmstat, memory.stat and cpu.stat. Pure.

/// All entries of the text in its order. Keys may be followed by a colon; values are unsigned
/// integers, anything else is left out.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let (key, rest) = line.split_once([' ', ':', '\t'])?;
        let value = rest.trim_start_matches([' ', ':', '\t']).split(' ').next()?;
        Some((key, value.trim_end().parse::<u64>().ok()? as f64))
    })
}

/// The value of one key.
pub(crate) fn value_of(text: &str, key: &str) -> Option<f64> {
    entries(text).find(|(found, _)| *found == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::{entries, value_of};
    use proptest::prelude::proptest;

    #[test]
    fn both_notations_are_read() {
        let text = "MemFree:        23888776 kB\npgfault 12\nHugePages_Total:       0\nodd\nx y\n";
        let found: Vec<_> = entries(text).collect();
        assert_eq!(found, [("MemFree", 23888776.0), ("pgfault", 12.0), ("HugePages_Total", 0.0)]);
        assert_eq!(value_of(text, "HugePages_Total"), Some(0.0));
        assert_eq!(value_of(text, "x"), None);
        assert_eq!(value_of(text, "absent"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z: \t\n0-9]{0,200}") {
            let _any = entries(&text).count();
        }
    }
}
