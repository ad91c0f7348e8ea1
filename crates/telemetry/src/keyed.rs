//! Texts of the form `key value` per line, as in meminfo, vmstat, memory.stat and cpu.stat. Pure.

/// Puts the value of each wanted key into its slot; what is not found stays untouched.
///
/// Keys may be followed by a colon. Values are unsigned integers; anything else is left out.
pub(crate) fn pick(text: &str, keys: &[&str], slots: &mut [f64]) {
    assert_eq!(keys.len(), slots.len(), "one slot per key");
    for (key, value) in entries(text) {
        if let Some(index) = keys.iter().position(|wanted| *wanted == key) {
            slots[index] = value;
        }
    }
}

/// All entries of the text in its order.
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
    use super::{entries, pick, value_of};
    use proptest::prelude::proptest;

    #[test]
    fn both_notations_are_read() {
        let mut slots = [f64::NAN; 3];
        let text = "MemFree:        23888776 kB\npgfault 12\nHugePages_Total:       0\nodd\nx y\n";
        pick(text, &["MemFree", "pgfault", "absent"], &mut slots);
        assert_eq!(slots[..2], [23888776.0, 12.0]);
        assert!(slots[2].is_nan());
        assert_eq!(value_of(text, "HugePages_Total"), Some(0.0));
        assert_eq!(value_of(text, "x"), None);
        assert_eq!(entries(text).count(), 3);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z: \t\n0-9]{0,200}") {
            let mut slots = [f64::NAN; 2];
            pick(&text, &["a", "b"], &mut slots);
        }
    }
}
