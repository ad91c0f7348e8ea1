//! The text of a pressure file, of the host or of a control group. Pure.

/// Stall totals in microseconds; `NAN` where the file has no such line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Totals {
    pub(crate) some_us: f64,
    pub(crate) full_us: f64,
}

/// Reads `some avg10=... total=123` and `full ... total=123`.
pub(crate) fn parse(text: &str) -> Totals {
    let mut totals = Totals { some_us: f64::NAN, full_us: f64::NAN };
    for line in text.lines() {
        let total = line
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix("total="))
            .and_then(|total| total.parse::<u64>().ok());
        let Some(total) = total else { continue };
        if line.starts_with("some ") {
            totals.some_us = total as f64;
        } else if line.starts_with("full ") {
            totals.full_us = total as f64;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::proptest;

    #[test]
    fn totals_are_taken_and_averages_are_not() {
        let totals = parse(
            "some avg10=2.60 avg60=1.26 avg300=0.90 total=15380962\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n",
        );
        assert_eq!((totals.some_us, totals.full_us), (15380962.0, 12.0));
    }

    #[test]
    fn a_missing_line_is_missing() {
        assert!(parse("full avg10=0.00 total=5\n").some_us.is_nan());
        assert!(parse("some avg10=0.00 total=-5\nfull\n").some_us.is_nan());
        assert!(parse("").full_us.is_nan());
    }

    proptest! {
        #[test]
        fn never_panics(text in "(some|full)? ?(total=)?.{0,60}\n?(full total=[0-9]{0,30})?") {
            let _any = parse(&text);
        }
    }
}
