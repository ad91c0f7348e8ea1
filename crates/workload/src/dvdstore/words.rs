//! The shop's words: 1,000 for titles and reviews, 200 first and 200 last names, places.
//!
//! Words are made from syllables of fixed length, so that different numbers give different words without a list. All have
//! at least five letters: full-text indexes leave out shorter ones, and common words, which none of these is.

/// Words of titles and reviews.
pub const TITLE_WORDS: u32 = 1_000;
/// First names of actors, and as many last names.
pub const NAMES: u32 = 200;
/// Countries other than the first one.
pub const OTHER_COUNTRIES: u32 = 10;
/// States of the first country.
pub const STATES: u32 = 8;

/// The categories, by their number from 1.
pub const CATEGORIES: [&str; 16] = [
    "Action",
    "Animation",
    "Children",
    "Classics",
    "Comedy",
    "Documentary",
    "Drama",
    "Family",
    "Foreign",
    "Games",
    "Horror",
    "Music",
    "New",
    "Sci-Fi",
    "Sports",
    "Travel",
];

const WORD_HEADS: [&str; 10] = ["BA", "CU", "DO", "FE", "GI", "KA", "LU", "MO", "PE", "TI"];
const WORD_MIDDLES: [&str; 10] = ["RA", "LE", "NI", "VO", "SU", "MA", "DE", "TI", "KO", "BU"];
const WORD_TAILS: [&str; 10] = ["NT", "RK", "SH", "LD", "MP", "ST", "CK", "ND", "RN", "LM"];

const FIRST_HEADS: [&str; 20] = [
    "AL", "BE", "CA", "DA", "EL", "FA", "GE", "HA", "IS", "JO", "KE", "LI", "MA", "NO", "OR", "PA",
    "RO", "SA", "TE", "VI",
];
const FIRST_TAILS: [&str; 10] =
    ["BIN", "CIA", "DRA", "FER", "LIO", "MON", "NIS", "RAD", "TTE", "VEN"];
const LAST_HEADS: [&str; 20] = [
    "ASH", "BLA", "CRO", "DEN", "EAS", "FOR", "GRA", "HOL", "IRO", "JAR", "KIN", "LAN", "MOR",
    "NOR", "OAK", "PEN", "RIV", "STO", "THO", "WIN",
];
const LAST_TAILS: [&str; 10] =
    ["BERG", "COTE", "DALE", "FORD", "GATE", "HURS", "LAND", "MERE", "SIDE", "WELL"];

const COUNTRIES: [&str; OTHER_COUNTRIES as usize] = [
    "Argentina",
    "Brazil",
    "Egypt",
    "India",
    "Italy",
    "Kenya",
    "Mexico",
    "Norway",
    "Poland",
    "Thailand",
];
const STATE_CODES: [&str; STATES as usize] = ["AK", "CO", "FL", "IA", "MT", "NY", "TX", "WA"];

/// Appends the word `number`, 0 to 999: six letters.
pub fn push_word(out: &mut String, number: u32) {
    let number = number as usize;
    out.push_str(WORD_HEADS[number / 100]);
    out.push_str(WORD_MIDDLES[number / 10 % 10]);
    out.push_str(WORD_TAILS[number % 10]);
}

/// Appends the first name `number`, 0 to 199: five letters.
pub fn push_first_name(out: &mut String, number: u32) {
    let number = number as usize;
    out.push_str(FIRST_HEADS[number / 10]);
    out.push_str(FIRST_TAILS[number % 10]);
}

/// Appends the last name `number`, 0 to 199: seven letters.
pub fn push_last_name(out: &mut String, number: u32) {
    let number = number as usize;
    out.push_str(LAST_HEADS[number / 10]);
    out.push_str(LAST_TAILS[number % 10]);
}

/// The country `number`, 0 to 9, of those that are not the first one.
pub fn country(number: u32) -> &'static str {
    COUNTRIES[number as usize]
}

/// The state `number`, 0 to 7.
pub fn state(number: u32) -> &'static str {
    STATE_CODES[number as usize]
}

#[cfg(test)]
mod tests {
    use super::{NAMES, TITLE_WORDS, push_first_name, push_last_name, push_word};
    use std::collections::BTreeSet;

    fn all(count: u32, push: fn(&mut String, u32)) -> BTreeSet<String> {
        (0..count)
            .map(|number| {
                let mut word = String::new();
                push(&mut word, number);
                word
            })
            .collect()
    }

    #[test]
    fn words_differ_and_are_long_enough_for_full_text_indexes() {
        let words = all(TITLE_WORDS, push_word);
        let (first, last) = (all(NAMES, push_first_name), all(NAMES, push_last_name));
        assert_eq!((words.len(), first.len(), last.len()), (1_000, 200, 200));
        for word in words.iter().chain(&first).chain(&last) {
            assert!(
                word.len() >= 5 && word.bytes().all(|byte| byte.is_ascii_uppercase()),
                "{word}"
            );
        }
    }
}
