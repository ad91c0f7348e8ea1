//! Rows as the text that PostgreSQL's `COPY` and MariaDB's `LOAD DATA` both read: a tab between fields, a newline
//! after a row. The population's text needs no escapes.

use bytes::{BufMut, BytesMut};
use underlay_workload::dvdstore::population::{Date, Fields};

/// More than the rows of any unit take: a review has at most 132 words of 7 letters, and 39 ratings.
pub(crate) const UNIT_BYTES_MAX: usize = 4_096;

/// Rows that are being written.
#[derive(Default)]
pub(crate) struct RowText {
    /// Complete rows, and the begin of the next.
    pub buffer: BytesMut,
    /// Complete rows so far.
    pub rows: u64,
    has_field: bool,
}

impl RowText {
    fn separate(&mut self) {
        if self.has_field {
            self.buffer.put_u8(b'\t');
        }
        self.has_field = true;
    }

    fn put_number(&mut self, mut value: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while value > 0 {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
        }
        self.buffer.put_slice(&digits[at.min(digits.len() - width)..]);
    }
}

impl Fields for RowText {
    fn integer(&mut self, value: i64) {
        self.separate();
        if value < 0 {
            self.buffer.put_u8(b'-');
        }
        self.put_number(value.unsigned_abs(), 1);
    }

    fn text(&mut self, value: &str) {
        self.separate();
        self.buffer.put_slice(value.as_bytes());
    }

    fn cents(&mut self, value: i64) {
        self.separate();
        if value < 0 {
            self.buffer.put_u8(b'-');
        }
        self.put_number(value.unsigned_abs() / 100, 1);
        self.buffer.put_u8(b'.');
        self.put_number(value.unsigned_abs() % 100, 2);
    }

    fn date(&mut self, value: Date) {
        self.separate();
        self.put_number(u64::from(Date::YEAR), 4);
        self.buffer.put_u8(b'-');
        self.put_number(u64::from(value.month), 2);
        self.buffer.put_u8(b'-');
        self.put_number(u64::from(value.day), 2);
    }

    fn end_row(&mut self) {
        self.buffer.put_u8(b'\n');
        self.rows += 1;
        self.has_field = false;
    }
}

#[cfg(test)]
mod tests {
    use super::RowText;
    use underlay_workload::dvdstore::population::{Date, Fields};

    #[test]
    fn rows_are_text_between_tabs() {
        let mut out = RowText::default();
        for cents in [2_999, 5, -1_005] {
            out.integer(0);
            out.text("");
            out.cents(cents);
            out.date(Date { month: 2, day: 28 });
            out.integer(-70);
            out.end_row();
        }
        assert_eq!(out.rows, 3);
        assert_eq!(
            std::str::from_utf8(&out.buffer).unwrap(),
            "0\t\t29.99\t2013-02-28\t-70\n0\t\t0.05\t2013-02-28\t-70\n0\t\t-10.05\t2013-02-28\t-70\n"
        );
    }
}
