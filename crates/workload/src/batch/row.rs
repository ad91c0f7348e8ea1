//! A row of the study's table, made from its number.
//!
//! The columns, their types and their order are the study's. It inserts the same value in every row, except for the
//! number; here every value varies within what the study's value is an example of, so that rows cannot be mistaken
//! for each other. The moment of insertion is not part of a row: the server fills it in.

use rand::Rng;
use sha2::{Digest, Sha256};
use underlay_core::RootSeed;

use crate::draw::uniform;

/// The columns of text, with the number of characters of their type, in the order of [`Row::texts`].
pub const TEXT_COLUMNS: [(&str, usize); 13] = [
    ("date", 8),
    ("time", 8),
    ("reff", 10),
    ("acc", 10),
    ("stock", 6),
    ("bs", 1),
    ("price", 8),
    ("qty", 8),
    ("status", 1),
    ("owflag", 3),
    ("ordrec", 8),
    ("firmid", 5),
    ("branchid", 5),
];
/// Length of the column `checkord`.
pub const CHECKORD_BYTES: usize = 16;

const WIDEST: usize = 10;

/// A short text of printable ASCII without spaces at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; WIDEST],
    length: u8,
}

/// What one row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The primary key, from 1.
    pub rec_num: u32,
    /// The columns of [`TEXT_COLUMNS`].
    pub texts: [Text; TEXT_COLUMNS.len()],
    /// The column `checkord`.
    pub checkord: [u8; CHECKORD_BYTES],
}

impl Text {
    /// From what a database sent; `None` when it is too long for any column. Blanks at the end are not part of the
    /// text: `char(n)` fills up with them.
    pub fn from_column(text: &str) -> Option<Text> {
        let text = text.trim_end_matches(' ').as_bytes();
        let mut bytes = [0; WIDEST];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Text { bytes, length: text.len() as u8 })
    }

    /// A letter or nothing, then `number` with at least `digits` digits.
    fn number(prefix: Option<u8>, number: u32, digits: usize) -> Text {
        let mut text = Text { bytes: [0; WIDEST], length: 0 };
        if let Some(prefix) = prefix {
            text.push(prefix);
        }
        text.push_number(number, digits);
        text
    }

    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }

    fn push_number(&mut self, number: u32, digits: usize) {
        let used = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        for place in (0..digits.max(used) as u32).rev() {
            self.push(b'0' + (number / 10u32.pow(place) % 10) as u8);
        }
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Made from ASCII or from a `str`.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Row {
    /// Row `rec_num` of the table that follows from `seed`.
    pub fn of(seed: RootSeed, rec_num: u32) -> Row {
        let mut random = seed.stream("batch-row", u64::from(rec_num));
        let r = &mut random;
        let mut draw = |low, high| uniform(r, low, high);
        // A day of the study's year, at an hour at which an exchange is open.
        let date = 20_160_000 + draw(1, 12) * 100 + draw(1, 28);
        let mut time = Text::number(None, draw(9, 15), 2);
        for _ in 0..2 {
            time.push(b':');
            time.push_number(draw(0, 59), 2);
        }
        let reff = Text::number(None, draw(1_000_000_000, u32::MAX), 10);
        let acc = Text::number(Some(b'A' + draw(0, 25) as u8), draw(0, 999_999_999), 9);
        let stock = Text::number(None, draw(600_000, 603_999), 6);
        let mut bs = Text::number(None, 0, 0);
        bs.bytes[0] = if draw(0, 1) == 0 { b'B' } else { b'S' };
        let cents = draw(100, 99_999);
        let mut price = Text::number(None, cents / 100, 1);
        price.push(b'.');
        price.push_number(cents % 100, 2);
        let qty = Text::number(None, draw(1, 9_999) * 100, 1);
        let digit = |number| Text::number(None, number, 1);
        let status = digit(draw(0, 9));
        let owflag = digit(draw(1, 3));
        let ordrec = digit(draw(1, 9_999_999));
        let firmid = Text::number(None, draw(0, 999), 3);
        let branchid = Text::number(None, draw(0, 999), 3);
        let mut checkord = [0; CHECKORD_BYTES];
        random.fill_bytes(&mut checkord);
        let date = Text::number(None, date, 8);
        let texts = [
            date, time, reff, acc, stock, bs, price, qty, status, owflag, ordrec, firmid, branchid,
        ];
        Row { rec_num, texts, checkord }
    }

    /// Adds the row to a checksum of contents: number, texts with their lengths, bytes.
    pub(super) fn add_to(&self, hash: &mut Sha256) {
        hash.update(self.rec_num.to_le_bytes());
        for text in &self.texts {
            hash.update([text.length]);
            hash.update(text.as_bytes());
        }
        hash.update(self.checkord);
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, TEXT_COLUMNS, Text};
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};
    use underlay_core::RootSeed;

    proptest! {
        #[test]
        fn every_row_fits_its_columns(seed: u64, rec_num in 1u32..=i32::MAX as u32) {
            let row = Row::of(RootSeed(seed), rec_num);
            prop_assert_eq!(&row, &Row::of(RootSeed(seed), rec_num));
            for (text, (column, width)) in row.texts.iter().zip(TEXT_COLUMNS) {
                let text = text.as_str();
                prop_assert!((1..=width).contains(&text.len()), "{} {:?}", column, text);
                prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{} {:?}", column, text);
                let again = Text::from_column(&format!("{text:width$}")).unwrap();
                prop_assert_eq!(again.as_str(), text);
            }
            let [date, time, ..] = row.texts;
            prop_assert!(date.as_str().starts_with("2016"));
            prop_assert_eq!(time.as_bytes()[2], b':');
        }
    }

    #[test]
    fn rows_are_those_of_released_versions() {
        let mut hash = Sha256::new();
        for rec_num in 1..=1000 {
            Row::of(RootSeed(42), rec_num).add_to(&mut hash);
        }
        let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "69f7bd2b5d1b6b996a0379f7113549f0e1799dc49bcbe85c0ddf412a30676004");
    }

    #[test]
    fn rows_differ() {
        let rows: std::collections::BTreeSet<[u8; 16]> =
            (1..=2000).map(|rec_num| Row::of(RootSeed(1), rec_num).checkord).collect();
        assert_eq!(rows.len(), 2000);
        assert_ne!(Row::of(RootSeed(1), 1).texts, Row::of(RootSeed(2), 1).texts);
        assert_eq!(Text::from_column("12345678901"), None);
    }
}
