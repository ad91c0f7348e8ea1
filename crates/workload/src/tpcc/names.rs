//! Customer last names, made of three syllables (clause 4.3.2.3).

use super::cardinality::LAST_NAMES;

/// One syllable per decimal digit.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Bytes of the longest last name.
pub const LAST_NAME_BYTES_MAX: usize = 15;

/// The last name with `number` 0 to 999: a syllable per digit, the highest digit first.
///
/// # Panics
/// When `number` has more than three digits.
pub fn last_name(number: u32) -> String {
    syllables(number).concat()
}

/// Writes the last name with `number` to the front of `out` and returns its length in bytes.
pub(crate) fn write_last_name(number: u32, out: &mut [u8; LAST_NAME_BYTES_MAX]) -> usize {
    let mut length = 0;
    for syllable in syllables(number) {
        out[length..length + syllable.len()].copy_from_slice(syllable.as_bytes());
        length += syllable.len();
    }
    length
}

fn syllables(number: u32) -> [&'static str; 3] {
    assert!(number < LAST_NAMES, "last names have numbers below 1000, not {number}");
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{LAST_NAME_BYTES_MAX, last_name, write_last_name};

    #[test]
    fn digits_become_syllables() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
        assert_eq!(last_name(40), "BARPRESBAR");
    }

    #[test]
    fn all_names_differ_and_both_writers_agree() {
        let mut buffer = [0; LAST_NAME_BYTES_MAX];
        let mut longest = 0;
        let names: BTreeSet<String> = (0..1000)
            .map(|number| {
                let length = write_last_name(number, &mut buffer);
                longest = longest.max(length);
                assert_eq!(buffer[..length], *last_name(number).as_bytes());
                last_name(number)
            })
            .collect();
        assert_eq!(names.len(), 1000);
        assert_eq!(longest, LAST_NAME_BYTES_MAX);
    }

    #[test]
    #[should_panic(expected = "below 1000")]
    fn a_fourth_digit_is_a_programming_error() {
        last_name(1000);
    }
}
