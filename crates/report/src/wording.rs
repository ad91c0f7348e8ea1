//! Numbers in words: the same spelling in headlines, findings and summaries.

/// A count or rate with thousands separated: `12,345`; below 100 with up to three digits.
pub(crate) fn amount(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    let magnitude = value.abs();
    if magnitude < 99.95 {
        let decimals = match magnitude {
            m if m == 0.0 || m >= 9.995 => usize::from(m != 0.0),
            _ => 2,
        };
        let text = format!("{value:.decimals$}");
        return match text.split_once('.') {
            Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            None => text,
        };
    }
    let digits = format!("{:.0}", magnitude);
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

/// A factor: `2.1x`, `1.04x`, `13x`.
pub(crate) fn factor(ratio: f64) -> String {
    format!("{}x", factor_digits(ratio))
}

/// The interval of a factor: `[1.9, 2.3]`.
pub(crate) fn factor_interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", factor_digits(low), factor_digits(high))
}

fn factor_digits(ratio: f64) -> String {
    match ratio {
        r if r >= 9.95 => format!("{r:.0}"),
        // Around 1 the second decimal is what matters.
        r if r >= 1.5 => format!("{r:.1}"),
        r if r >= 0.095 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

/// A share: `61 %`, `3 %`, `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    // What rounds to 0 has no sign.
    let value = if value.abs() < 0.05 { 0.0 } else { value };
    let text = if value.abs() >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// A time in nanoseconds with three digits: `850 us`, `12.3 ms`, `1.5 s`.
pub(crate) fn time_ns(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", amount(value))
}

/// A duration in seconds: `11:20` or `1:02:05` from a minute on, `6.06 s` below.
pub(crate) fn minutes(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..60 => format!("{} s", amount(seconds)),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// A list in words: `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `1 user`, `16 users`.
pub(crate) fn count(n: u64, singular: &str) -> String {
    if n == 1 { format!("1 {singular}") } else { format!("{n} {singular}s") }
}

pub(crate) fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// A size in words: `0.9 GB`, of little `25 MB`.
pub(crate) fn gigabytes(bytes: f64) -> String {
    match bytes / 1e9 {
        huge if huge >= 10.0 => format!("{huge:.0} GB"),
        large if large >= 0.1 => format!("{large:.1} GB"),
        _ => format!("{:.0} MB", bytes / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        amount, count, factor, factor_interval, gigabytes, list, minutes, percent, time_ns,
    };

    #[test]
    fn numbers_are_short_and_grouped() {
        let amounts = [
            (0.0, "0"),
            (0.123, "0.12"),
            (9.99, "9.99"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1,234"),
            (1_463_290.0, "1,463,290"),
            (-1234.0, "-1,234"),
            (f64::NAN, "-"),
        ];
        for (value, expected) in amounts {
            assert_eq!(amount(value), expected);
        }
        assert_eq!(
            (factor(2.14), factor(1.038), factor(13.2)),
            ("2.1x".into(), "1.04x".into(), "13x".into())
        );
        assert_eq!(factor_interval(0.97, 1.62), "[0.97, 1.6]");
        assert_eq!(percent(-0.0004), "0 %");
        assert_eq!(
            (percent(0.614), percent(0.0042), percent(0.0)),
            ("61 %".into(), "0.4 %".into(), "0 %".into())
        );
    }

    #[test]
    fn times_and_lists_read_well() {
        let times = [(850.0, "850 ns"), (12_345.0, "12.3 us"), (1.5e9, "1.5 s"), (4.2e6, "4.2 ms")];
        for (nanos, expected) in times {
            assert_eq!(time_ns(nanos), expected);
        }
        let durations = [(6.06, "6.06 s"), (59.6, "1:00"), (680.0, "11:20"), (3725.0, "1:02:05")];
        for (seconds, expected) in durations {
            assert_eq!(minutes(seconds), expected);
        }
        let items = ["a".to_string(), "b".to_string(), "c".to_string()];
        assert_eq!(list(&items), "a, b and c");
        assert_eq!(list(&items[..1]), "a");
        assert_eq!((count(1, "user"), count(16, "user")), ("1 user".into(), "16 users".into()));
    }

    #[test]
    fn sizes_have_units_that_fit() {
        let texts = [2.5e7, 9.4e8, 1.23e11].map(gigabytes);
        assert_eq!(texts, ["25 MB", "0.9 GB", "123 GB"]);
    }
}
