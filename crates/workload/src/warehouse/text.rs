//! Text of comments, addresses and telephone numbers.
//!
//! The specification's comments come from a text that its own tool makes; only the words that queries look for, and
//! about how often they meet, matter here. Sentences are made of our own words by a grammar of our own, with those
//! words among them.

use rand_pcg::Pcg64;

use crate::draw::{below, uniform};

/// Includes the first words of the 13th query.
const ADJECTIVES: [&str; 20] = [
    "special", "pending", "unusual", "express", "early", "late", "heavy", "fragile", "sealed",
    "urgent", "modest", "broad", "narrow", "patient", "honest", "vacant", "distant", "formal",
    "gentle", "spare",
];
/// Includes its second words.
const NOUNS: [&str; 20] = [
    "packages",
    "requests",
    "accounts",
    "deposits",
    "invoices",
    "parcels",
    "ledgers",
    "contracts",
    "pallets",
    "vouchers",
    "claims",
    "quotes",
    "receipts",
    "crates",
    "routes",
    "drivers",
    "samples",
    "letters",
    "agents",
    "tariffs",
];
const VERBS: [&str; 16] = [
    "wait", "arrive", "travel", "settle", "remain", "return", "gather", "follow", "expire",
    "improve", "stall", "recover", "vanish", "match", "depart", "linger",
];
const ADVERBS: [&str; 14] = [
    "soon",
    "rarely",
    "twice",
    "overnight",
    "in turn",
    "at noon",
    "by rail",
    "on credit",
    "as agreed",
    "in part",
    "by sea",
    "at cost",
    "in bulk",
    "once more",
];
const PREPOSITIONS: [&str; 10] = [
    "near", "behind", "beside", "without", "after", "before", "among", "under", "above", "despite",
];

/// 64 characters, so that six bits choose one.
const ADDRESS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789,.";

fn word(random: &mut Pcg64, words: &[&'static str]) -> &'static str {
    words[below(random, words.len() as u64) as usize]
}

fn push_phrase(random: &mut Pcg64, text: &mut String) {
    if uniform(random, 0, 3) > 0 {
        text.push_str(word(random, &ADJECTIVES));
        text.push(' ');
    }
    text.push_str(word(random, &NOUNS));
}

/// A text of sentences, `low` to `high` characters long.
pub(super) fn comment(random: &mut Pcg64, low: u32, high: u32) -> String {
    let length = uniform(random, low, high) as usize;
    let mut text = String::with_capacity(length + 80);
    while text.len() < length {
        push_phrase(random, &mut text);
        text.push(' ');
        text.push_str(word(random, &VERBS));
        if uniform(random, 0, 1) == 0 {
            text.push(' ');
            text.push_str(word(random, &ADVERBS));
        }
        if uniform(random, 0, 2) > 0 {
            text.push(' ');
            text.push_str(word(random, &PREPOSITIONS));
            text.push(' ');
            push_phrase(random, &mut text);
        }
        text.push_str(if uniform(random, 0, 3) == 0 { "; " } else { ". " });
    }
    text.truncate(length);
    // A blank at the end would be part of the text in one engine and none in another.
    if text.ends_with(' ') {
        text.pop();
        text.push('.');
    }
    text
}

/// Random characters, 10 to 40.
pub(super) fn address(random: &mut Pcg64) -> String {
    let length = uniform(random, 10, 40);
    (0..length).map(|_| char::from(ADDRESS[below(random, 64) as usize])).collect()
}

/// Country code and local number.
pub(super) fn phone(random: &mut Pcg64, nation: u32) -> String {
    let (a, b, c) =
        (uniform(random, 100, 999), uniform(random, 100, 999), uniform(random, 1000, 9999));
    format!("{}-{a}-{b}-{c}", nation + 10)
}

#[cfg(test)]
mod tests {
    use super::{address, comment, phone};
    use underlay_core::RootSeed;

    #[test]
    fn texts_keep_their_lengths_and_characters() {
        let mut random = RootSeed(1).stream("text", 0);
        for _ in 0..5_000 {
            let text = comment(&mut random, 19, 78);
            assert!((19..=78).contains(&text.len()) && !text.ends_with(' '), "{text:?}");
            assert!(text.bytes().all(|byte| byte.is_ascii_lowercase() || b" .;".contains(&byte)));
            let text = address(&mut random);
            assert!((10..=40).contains(&text.len()), "{text:?}");
            let text = phone(&mut random, 24);
            assert!(text.len() == 15 && text.starts_with("34-"), "{text:?}");
        }
    }

    /// The 13th query excludes about one order in a hundred.
    #[test]
    fn comments_hold_the_words_that_are_looked_for() {
        let mut random = RootSeed(2).stream("text", 0);
        let found = (0..40_000).filter(|_| {
            let text = comment(&mut random, 19, 78);
            text.find("special").is_some_and(|at| text[at..].contains("requests"))
        });
        let share = found.count() as f64 / 40_000.0;
        assert!((0.002..0.02).contains(&share), "{share}");
    }
}
