//! Rows as the text that `LOAD DATA` reads: a tab between fields, a newline after a row.
//!
//! Nothing is escaped: texts of populations have neither tabs nor newlines nor backslashes.

use bytes::{BufMut, BytesMut};

use crate::connection::RowEncoder;

/// Writes rows of text.
#[derive(Debug, Default)]
pub(crate) struct TextRows {
    has_field: bool,
    /// The last moment and its text: nearly all moments of a population are the same.
    moment: Option<(i64, String)>,
}

impl TextRows {
    fn next<'a>(&mut self, out: &'a mut BytesMut) -> &'a mut BytesMut {
        if self.has_field {
            out.put_u8(b'\t');
        }
        self.has_field = true;
        out
    }
}

impl RowEncoder for TextRows {
    fn begin(&mut self, _: &mut BytesMut, _: usize) {
        self.has_field = false;
    }

    fn int(&mut self, out: &mut BytesMut, value: u32) {
        put_number(self.next(out), u64::from(value), 1);
    }

    fn small(&mut self, out: &mut BytesMut, value: u32) {
        self.int(out, value);
    }

    fn text(&mut self, out: &mut BytesMut, text: &[u8]) {
        self.next(out).put_slice(text);
    }

    fn binary(&mut self, out: &mut BytesMut, bytes: &[u8]) {
        let out = self.next(out);
        for byte in bytes {
            out.put_u8(b"0123456789ABCDEF"[usize::from(byte >> 4)]);
            out.put_u8(b"0123456789ABCDEF"[usize::from(byte & 15)]);
        }
    }

    fn null(&mut self, out: &mut BytesMut) {
        self.next(out).put_slice(b"\\N");
    }

    fn cents(&mut self, out: &mut BytesMut, cents: i64) {
        let out = self.next(out);
        if cents < 0 {
            out.put_u8(b'-');
        }
        put_number(out, cents.unsigned_abs() / 100, 1);
        out.put_u8(b'.');
        put_number(out, cents.unsigned_abs() % 100, 2);
    }

    fn rate(&mut self, out: &mut BytesMut, ten_thousandths: u32) {
        let out = self.next(out);
        put_number(out, u64::from(ten_thousandths / 10_000), 1);
        out.put_u8(b'.');
        put_number(out, u64::from(ten_thousandths % 10_000), 4);
    }

    fn timestamp(&mut self, out: &mut BytesMut, unix_seconds: i64) {
        let out = self.next(out);
        if self.moment.as_ref().is_none_or(|(moment, _)| *moment != unix_seconds) {
            self.moment = Some((unix_seconds, date_text(unix_seconds)));
        }
        let text = self.moment.as_ref().map_or("", |(_, text)| text);
        out.put_slice(text.as_bytes());
    }

    fn end(&mut self, out: &mut BytesMut) {
        out.put_u8(b'\n');
    }
}

/// Appends a number with at least `width` digits.
fn put_number(out: &mut BytesMut, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.put_slice(&digits[at.min(digits.len() - width)..]);
}

/// `2026-01-01 00:00:00`, by the proleptic Gregorian calendar. Years begin in March here, so that a leap year's additional
/// day is its last.
fn date_text(unix_seconds: i64) -> String {
    let (days, seconds) = (unix_seconds.div_euclid(86_400), unix_seconds.rem_euclid(86_400));
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!(
        "{:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        year + era * 400 + next,
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::{TextRows, date_text};
    use crate::connection::RowEncoder;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let check = |seconds, text: &str| assert_eq!(date_text(seconds), text);
        check(0, "1970-01-01 00:00:00");
        check(951_782_400, "2000-02-29 00:00:00");
        check(1_709_164_800, "2024-02-29 00:00:00");
        check(1_767_225_600, "2026-01-01 00:00:00");
        check(1_767_225_599, "2025-12-31 23:59:59");
    }

    #[test]
    fn rows_are_text_between_tabs() {
        let (mut rows, mut out) = (TextRows::default(), BytesMut::new());
        for cents in [30_000_000, -1_005] {
            rows.begin(&mut out, 7);
            rows.int(&mut out, 0);
            rows.cents(&mut out, cents);
            rows.rate(&mut out, 2_000);
            rows.null(&mut out);
            rows.text(&mut out, b"");
            rows.timestamp(&mut out, 0);
            rows.binary(&mut out, &[0xa0, 7]);
            rows.end(&mut out);
        }
        assert_eq!(
            std::str::from_utf8(&out).unwrap(),
            "0\t300000.00\t0.2000\t\\N\t\t1970-01-01 00:00:00\tA007\n\
             0\t-10.05\t0.2000\t\\N\t\t1970-01-01 00:00:00\tA007\n"
        );
    }
}
