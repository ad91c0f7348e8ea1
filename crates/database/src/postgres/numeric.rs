//! Money and rates in PostgreSQL's binary `numeric`, from exact integers.
//!
//! The binary form is base 10,000: count of digits, weight of the first, sign, decimal places, digits
//! (`numeric_send` in the server's sources documents it). Only what this workload needs: values with two or
//! four decimal places.

use bytes::BufMut;

const NEGATIVE: i16 = 0x4000;

/// Appends `value / 10^(4)` with `scale` decimal places shown.
fn put_ten_thousandths(out: &mut impl BufMut, value: i64, scale: i16) {
    let magnitude = value.unsigned_abs();
    let (mut whole, fraction) = (magnitude / 10_000, magnitude % 10_000);
    let mut digits = [0i16; 6];
    let mut used = 0;
    while whole > 0 {
        digits[used] = (whole % 10_000) as i16;
        whole /= 10_000;
        used += 1;
    }
    let fraction_digits = i16::from(fraction > 0);
    out.put_i16(used as i16 + fraction_digits);
    out.put_i16(used as i16 - 1);
    out.put_i16(if value < 0 { NEGATIVE } else { 0 });
    out.put_i16(scale);
    digits[..used].iter().rev().for_each(|digit| out.put_i16(*digit));
    if fraction > 0 {
        out.put_i16(fraction as i16);
    }
}

/// Appends an amount in cents as `numeric(.., 2)`.
pub fn put_cents(out: &mut impl BufMut, cents: i64) {
    put_ten_thousandths(out, cents * 100, 2);
}

/// Appends a rate in ten-thousandths as `numeric(4, 4)`.
pub fn put_rate(out: &mut impl BufMut, ten_thousandths: u32) {
    put_ten_thousandths(out, i64::from(ten_thousandths), 4);
}

#[cfg(test)]
mod tests {
    use super::{put_cents, put_rate};

    /// Reads the binary form back into ten-thousandths.
    fn decode(bytes: &[u8]) -> (i64, i16) {
        let word = |at: usize| i16::from_be_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        let (digits, weight, sign, scale) = (word(0), word(1), word(2), word(3));
        let mut value = 0i64;
        for index in 0..digits {
            let power = weight - index;
            let digit = i64::from(word(4 + usize::try_from(index).unwrap()));
            value += digit * 10_000i64.pow(u32::try_from(power + 1).unwrap());
        }
        (if sign == 0 { value } else { -value }, scale)
    }

    #[test]
    fn cents_read_back() {
        for cents in [0, 1, -1, 99, 100, 500_000, -1_000, 30_000_000, 999_999_999_999, 1_000_000] {
            let mut out = Vec::new();
            put_cents(&mut out, cents);
            assert_eq!(decode(&out), (cents * 100, 2), "{cents}");
        }
    }

    #[test]
    fn rates_read_back() {
        for rate in [0, 1, 2_000, 5_000] {
            let mut out = Vec::new();
            put_rate(&mut out, rate);
            assert_eq!(decode(&out), (i64::from(rate), 4));
        }
    }
}
