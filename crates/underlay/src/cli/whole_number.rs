//! Whole numbers of the command line: seeds and counts of 64 bits.
//!
//! clap's own parser reports `-1` only as an invalid digit.

/// A whole number from 0.
///
/// # Errors
/// What would have been accepted, for the parser to print behind the option.
pub fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("use a whole number from 0 to {}", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::whole_number;

    #[test]
    fn what_is_none_is_told_what_is_one() {
        assert_eq!(whole_number("7"), Ok(7));
        for wrong in ["-1", "1.5", "", "18446744073709551616", "one"] {
            let message = "use a whole number from 0 to 18446744073709551615";
            assert_eq!(whole_number(wrong), Err(message.to_string()), "{wrong}");
        }
    }
}
