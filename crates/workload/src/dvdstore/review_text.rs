//! The words of a review, as random as a number that was drawn elsewhere.
//!
//! Not here: its stars and dates, which are columns of the population.

use super::random::RowRandom;
use super::words::{TITLE_WORDS, push_word};

/// Words of a summary, and of a text.
pub(super) const SUMMARY_WORDS: u32 = 3;
pub(super) const TEXT_WORDS: (u32, u32) = (6, 129);

/// The summary of a new review.
pub(super) fn write_summary(out: &mut String, draw: u64) {
    push_words(out, &mut RowRandom::of(draw), SUMMARY_WORDS);
}

/// The text of a new review.
pub(super) fn write_review_text(out: &mut String, draw: u64) {
    let mut random = RowRandom::of(!draw);
    let words = random.uniform(TEXT_WORDS.0, TEXT_WORDS.1);
    push_words(out, &mut random, words);
}

pub(super) fn push_words(out: &mut String, random: &mut RowRandom, count: u32) {
    for number in 0..count {
        if number > 0 {
            out.push(' ');
        }
        push_word(out, random.below(TITLE_WORDS));
    }
}
