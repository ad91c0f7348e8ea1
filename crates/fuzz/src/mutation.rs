//! What is done to a valid input. Pure: everything derives from the random stream that is given.

use std::collections::BTreeSet;

use rand::RngExt;
use rand_pcg::Pcg64;

/// Inputs do not grow beyond this.
const LENGTH_MAX: usize = 64 << 10;
/// Most acts of damage to one input.
const ACTS_MAX: u32 = 8;
/// Words that have broken parsers before.
const SPLINTERS: [&[u8]; 24] = [
    b"",
    b"\"",
    b"'",
    b"[",
    b"]",
    b"{",
    b"}",
    b"=",
    b",",
    b":",
    b"\n",
    b"\\",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"-1",
    b"1e309",
    b"nan",
    b"18446744073709551616",
    b"9223372036854775807",
    b"null",
    b"true",
    b"\"\"\"",
    b"\xef\xbb\xbf",
];

/// Words of the corpus, to be put where they do not belong.
pub struct Dictionary(Vec<Vec<u8>>);

impl Dictionary {
    /// The words of a corpus.
    pub fn of(corpus: &[Vec<u8>]) -> Dictionary {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./".contains(byte);
        let words: BTreeSet<Vec<u8>> = corpus
            .iter()
            .flat_map(|text| text.split(|byte| !is_word(byte)))
            .filter(|word| (2..40).contains(&word.len()))
            .map(<[u8]>::to_vec)
            .collect();
        Dictionary(words.into_iter().collect())
    }
}

/// A damaged version of something in the corpus; now and then, nothing but noise.
pub fn mutated(corpus: &[Vec<u8>], dictionary: &Dictionary, random: &mut Pcg64) -> Vec<u8> {
    if random.random_range(0..50) == 0 {
        let length = random.random_range(0..512);
        return (0..length).map(|_| random.random_range(0..=255)).collect();
    }
    let mut input = corpus[random.random_range(0..corpus.len())].clone();
    let mut acts = 1;
    while acts < ACTS_MAX && random.random_range(0..2) == 0 {
        acts += 1;
    }
    for _ in 0..acts {
        damage(&mut input, corpus, dictionary, random);
        input.truncate(LENGTH_MAX);
    }
    input
}

fn damage(input: &mut Vec<u8>, corpus: &[Vec<u8>], dictionary: &Dictionary, random: &mut Pcg64) {
    let at = random.random_range(0..=input.len());
    match random.random_range(0..11) {
        0 => with_byte(input, at, |byte| byte ^ (1 << random.random_range(0..8))),
        1 => with_byte(input, at, |_| random.random_range(0..=255)),
        2 => number(input, at, random),
        3 => drop(input.drain(range(input.len(), random))),
        4 => {
            let part = input[range(input.len(), random)].to_vec();
            input.splice(at..at, part);
        }
        5 => {
            let other = &corpus[random.random_range(0..corpus.len())];
            let part = other[range(other.len(), random)].to_vec();
            input.splice(at..at, part);
        }
        6 => input.truncate(at),
        7 => {
            let splinter = SPLINTERS[random.random_range(0..SPLINTERS.len())];
            input.splice(at..at, splinter.iter().copied());
        }
        8 if !dictionary.0.is_empty() => word(input, dictionary, random),
        9 => digits(input, random),
        _ => {
            let line = line_at(input, at);
            let copy = input[line.clone()].to_vec();
            match random.random_range(0..2) {
                0 => drop(input.drain(line)),
                _ => drop(input.splice(line.end..line.end, copy)),
            }
        }
    }
}

fn with_byte(input: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = input.get_mut(at) {
        *byte = change(*byte);
    }
}

/// A number of a binary format, in either order of its bytes, becomes an extreme one.
fn number(input: &mut [u8], at: usize, random: &mut Pcg64) {
    const EXTREMES: [u64; 12] = [
        0,
        1,
        u64::MAX,
        1 << 31,
        1 << 63,
        0x7fff_ffff,
        0xffff_ffff,
        0x7fff_ffff_ffff_ffff,
        511,
        4096,
        65_536,
        0xffff_f000,
    ];
    let value = EXTREMES[random.random_range(0..EXTREMES.len())];
    let width = 1 << random.random_range(0..4);
    let Some(place) = input.get_mut(at..at + width) else { return };
    match random.random_range(0..2) {
        0 => place.copy_from_slice(&value.to_le_bytes()[..width]),
        _ => place.copy_from_slice(&value.to_be_bytes()[8 - width..]),
    }
}

/// A word is replaced by another one of the corpus.
fn word(input: &mut Vec<u8>, dictionary: &Dictionary, random: &mut Pcg64) {
    let new = &dictionary.0[random.random_range(0..dictionary.0.len())];
    let old = &dictionary.0[random.random_range(0..dictionary.0.len())];
    let found = input.windows(old.len()).position(|window| window == old);
    let place = match found {
        Some(start) => start..start + old.len(),
        None => {
            let at = random.random_range(0..=input.len());
            at..at
        }
    };
    input.splice(place, new.iter().copied());
}

/// A number of a text becomes another one.
fn digits(input: &mut Vec<u8>, random: &mut Pcg64) {
    const NUMBERS: [&[u8]; 9] = [
        b"0",
        b"1",
        b"-1",
        b"4294967296",
        b"18446744073709551615",
        b"9223372036854775808",
        b"1e308",
        b"0.1",
        b"7",
    ];
    let from = random.random_range(0..=input.len());
    let Some(start) = input[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
        return;
    };
    let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[random.random_range(0..NUMBERS.len())];
    input.splice(start..start + length, number.iter().copied());
}

/// A short part of something of that length.
fn range(length: usize, random: &mut Pcg64) -> std::ops::Range<usize> {
    let start = random.random_range(0..=length);
    let most = (length - start).min(1 << random.random_range(0..10));
    start..start + random.random_range(0..=most)
}

fn line_at(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end =
        input[at..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |n| at + n + 1);
    start..end
}
