//! Random text, fast.
//!
//! Generating text is most of the work of a load, so it must not be slower than the database's
//! input. One 64-bit number gives ten characters: five groups of 12 bits, each looked up in a table
//! of character pairs (8 KiB, stays in the first-level cache).

use std::fmt;

use rand::Rng;
use rand_pcg::Pcg64;

use crate::draw::uniform;
use crate::tpcc::{Entropy, Parameters};

/// A text of a row, borrowed from its generator: letters, digits and (in fixed patterns) spaces, all
/// ASCII.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// The bytes of the text, one per character.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text as a string; the bytes are checked again, prefer [`Text::as_bytes`] for bulk.
    pub fn as_str(self) -> &'a str {
        std::str::from_utf8(self.0).expect("generators write ASCII only")
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

/// A text of at most `N` bytes that is rewritten for each row.
#[derive(Clone, Debug)]
pub(super) struct TextBuffer<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> TextBuffer<N> {
    pub(super) const fn new() -> TextBuffer<N> {
        TextBuffer { bytes: [b' '; N], length: 0 }
    }

    pub(super) fn text(&self) -> Text<'_> {
        Text(&self.bytes[..self.length])
    }

    /// Writes with `write`, which returns the length of what it wrote.
    pub(super) fn write_with(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        self.length = write(&mut self.bytes);
    }

    /// Makes room for `length` bytes and returns it.
    pub(super) fn resize(&mut self, length: usize) -> &mut [u8] {
        self.length = length;
        &mut self.bytes[..length]
    }

    /// Puts `mark` over the text at a random place.
    pub(super) fn overwrite(&mut self, random: &mut TextSource, mark: &[u8]) {
        let last_place = self.length - mark.len();
        let place = random.number(0, last_place as u32) as usize;
        self.bytes[place..place + mark.len()].copy_from_slice(mark);
    }
}

/// The random stream of one table of one warehouse.
#[derive(Clone, Debug)]
pub(super) struct TextSource {
    random: Pcg64,
    entropy: Entropy,
}

impl TextSource {
    pub(super) fn new(parameters: &Parameters, name: &str, warehouse: u32) -> TextSource {
        let random = parameters.seed.stream(name, u64::from(warehouse));
        TextSource { random, entropy: parameters.entropy }
    }

    /// The stream itself, for draws that are not text.
    pub(super) fn random(&mut self) -> &mut Pcg64 {
        &mut self.random
    }

    /// A number in `low..=high`.
    pub(super) fn number(&mut self, low: u32, high: u32) -> u32 {
        uniform(&mut self.random, low, high)
    }

    /// An a-string of `low` to `high` characters, as random as the entropy says.
    pub(super) fn string<const N: usize>(&mut self, out: &mut TextBuffer<N>, low: u32, high: u32) {
        let length = self.number(low, high) as usize;
        self.fill(out.resize(length));
    }

    /// An a-string of exactly the size of `out`, as random as the entropy says.
    pub(super) fn fill(&mut self, out: &mut [u8]) {
        let (random, pattern) = out.split_at_mut(self.entropy.random_bytes(out.len()));
        fill_alphanumeric(&mut self.random, random);
        pattern.copy_from_slice(&PATTERN[..pattern.len()]);
    }

    /// An a-string of `low` to `high` characters that is random whatever the entropy is.
    pub(super) fn random_string<const N: usize>(
        &mut self,
        out: &mut TextBuffer<N>,
        low: u32,
        high: u32,
    ) {
        let length = self.number(low, high) as usize;
        fill_alphanumeric(&mut self.random, out.resize(length));
    }

    /// Random decimal digits, at most 18.
    pub(super) fn digits(&mut self, out: &mut [u8]) {
        debug_assert!(out.len() <= 18, "one draw of 64 bits gives 18 digits with negligible bias");
        let mut rest = self.random.next_u64();
        for digit in out {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Random capital letters.
    pub(super) fn letters(&mut self, out: &mut [u8]) {
        for letter in out {
            *letter = b'A' + self.number(0, 25) as u8;
        }
    }
}

/// The longest text of any column.
const TEXT_BYTES_MAX: usize = 500;

/// The content of texts that are not random.
const PATTERN: [u8; TEXT_BYTES_MAX] = {
    let words = *b"underlay";
    let mut pattern = [0; TEXT_BYTES_MAX];
    let mut place = 0;
    while place < pattern.len() {
        pattern[place] = words[place % words.len()];
        place += 1;
    }
    pattern
};

/// Characters that one 64-bit number gives.
const CHARACTERS_PER_DRAW: usize = 10;

/// The pairs of characters for 12 bits.
static PAIRS: [[u8; 2]; 4096] = {
    let mut pairs = [[0; 2]; 4096];
    let mut code = 0;
    while code < pairs.len() {
        pairs[code] = [character(code & 63), character(code >> 6)];
        code += 1;
    }
    pairs
};

/// 64 codes for 62 characters: `0` and `1` have two codes each.
const fn character(code: usize) -> u8 {
    const ALPHANUMERIC: [u8; 62] =
        *b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    ALPHANUMERIC[code % 62]
}

/// Fills `out` with random alphanumeric characters.
fn fill_alphanumeric(random: &mut Pcg64, out: &mut [u8]) {
    let (tens, rest) = out.as_chunks_mut::<CHARACTERS_PER_DRAW>();
    for ten in tens {
        *ten = ten_characters(random.next_u64());
    }
    if !rest.is_empty() {
        let ten = ten_characters(random.next_u64());
        rest.copy_from_slice(&ten[..rest.len()]);
    }
}

/// The characters of the 60 highest bits.
fn ten_characters(bits: u64) -> [u8; CHARACTERS_PER_DRAW] {
    let mut ten = [0; CHARACTERS_PER_DRAW];
    let (pairs, _) = ten.as_chunks_mut::<2>();
    for (place, pair) in pairs.iter_mut().enumerate() {
        *pair = PAIRS[(bits >> (4 + 12 * place) & 0xFFF) as usize];
    }
    ten
}

#[cfg(test)]
mod tests {
    use underlay_core::RootSeed;

    use super::{TextBuffer, TextSource};
    use crate::tpcc::{Entropy, Parameters};

    fn source(percent: u8) -> TextSource {
        let entropy = Entropy::new(percent).unwrap();
        TextSource::new(&Parameters::new(1, RootSeed(1), entropy).unwrap(), "test", 1)
    }

    #[test]
    fn text_is_alphanumeric_with_the_promised_entropy() {
        let mut text = vec![0; 1_000_003];
        source(100).fill(&mut text);
        let mut counts = [0u64; 256];
        text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(text.iter().all(u8::is_ascii_alphanumeric));
        assert_eq!(counts.iter().filter(|count| **count > 0).count(), 62);
        let bits: f64 = counts
            .iter()
            .filter(|count| **count > 0)
            .map(|count| *count as f64 / text.len() as f64)
            .map(|share| -share * share.log2())
            .sum();
        assert!((bits - Entropy::BITS_PER_RANDOM_BYTE).abs() < 0.001, "{bits}");
    }

    #[test]
    fn pairs_of_neighbours_are_independent() {
        // Every place of a draw and every seam between draws: all 62 x 62 pairs occur.
        let mut text = vec![0; 200_000];
        source(100).fill(&mut text);
        for place in 0..10 {
            let mut seen = std::collections::HashSet::new();
            seen.extend(text[place..].windows(2).step_by(10));
            assert!(seen.len() > 3_800, "{} of 3844 pairs at place {place}", seen.len());
        }
    }

    #[test]
    fn entropy_is_the_random_share_of_each_text() {
        for (percent, random_bytes) in [(0, 0), (1, 1), (50, 12), (75, 18), (100, 24)] {
            let (mut one, mut other) = ([0; 24], [0; 24]);
            let mut source = source(percent);
            source.fill(&mut one);
            source.fill(&mut other);
            let equal_tail = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b);
            assert!(equal_tail.count() >= 24 - random_bytes);
            assert_eq!(one[random_bytes..], super::PATTERN[..24 - random_bytes]);
            assert_eq!(one[..random_bytes] == other[..random_bytes], random_bytes == 0);
        }
        assert!((Entropy::new(50).unwrap().bits_per_byte() - 2.96875).abs() < 1e-9);
    }

    #[test]
    fn marks_land_everywhere() {
        let mut source = source(0);
        let mut text = TextBuffer::<12>::new();
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..200 {
            source.string(&mut text, 12, 12);
            text.overwrite(&mut source, b"ORIGINAL");
            places.insert(text.text().as_str().find("ORIGINAL"));
        }
        assert_eq!(places, (0..=4).map(Some).collect());
    }
}
