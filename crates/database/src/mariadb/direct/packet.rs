//! The contents of MariaDB or MySQL packets: numbers, texts, errors, the executions of prepared statements.
//!
//! Answers as a whole are [`answer`](super::answer)'s, rows are [`row`](super::row)'s.

use std::io;

use mysql_async::{Error, IoError, ServerError};

/// The error number that the protocol gives to what has none.
const UNKNOWN_ERROR: u16 = 1105;
const TYPE_LONG: u8 = 0x03;
const TYPE_NULL: u8 = 0x06;
const TYPE_VAR_STRING: u8 = 0xfd;
/// The flag of an array whose types come with it.
const ARRAY_SENDS_TYPES: u16 = 128;
/// Before a value of an array.
const INDICATOR_NONE: u8 = 0;
/// In place of a value of an array.
const INDICATOR_NULL: u8 = 1;
/// The longest number, its sign, and the point before two places.
const DECIMAL_BYTES_MAX: usize = 22;

/// A value of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Parameter<'a> {
    /// NULL.
    Null,
    /// INTEGER.
    Int(i32),
    /// DECIMAL with two places, in hundredths.
    Cents(i64),
    /// CHAR, in the session's character set.
    Text(&'a [u8]),
}

impl Parameter<'_> {
    /// The protocol's number for its type.
    fn kind(&self) -> u8 {
        match self {
            Parameter::Null => TYPE_NULL,
            Parameter::Int(_) => TYPE_LONG,
            Parameter::Cents(_) | Parameter::Text(_) => TYPE_VAR_STRING,
        }
    }
}

/// The body of COM_STMT_EXECUTE: statement, no cursor, once; which values are NULL, types, values.
pub(super) fn write_execution(output: &mut Vec<u8>, number: u32, parameters: &[Parameter<'_>]) {
    output.extend_from_slice(&number.to_le_bytes());
    output.push(0);
    output.extend_from_slice(&1u32.to_le_bytes());
    if parameters.is_empty() {
        return;
    }
    let nulls = output.len();
    output.resize(nulls + parameters.len().div_ceil(8), 0);
    output.push(1);
    for (index, parameter) in parameters.iter().enumerate() {
        if let Parameter::Null = parameter {
            output[nulls + index / 8] |= 1 << (index % 8);
        }
        output.extend_from_slice(&[parameter.kind(), 0]);
    }
    for parameter in parameters {
        write_value(output, parameter);
    }
}

/// The body of COM_STMT_BULK_EXECUTE: statement, types, and the values of whole rows, each behind a byte that says
/// whether it is NULL.
///
/// # Errors
/// For values of different types in a column: the protocol has one type for all of them.
pub(super) fn write_array_execution(
    output: &mut Vec<u8>,
    number: u32,
    columns: usize,
    values: &[Parameter<'_>],
) -> Result<(), Error> {
    output.extend_from_slice(&number.to_le_bytes());
    output.extend_from_slice(&ARRAY_SENDS_TYPES.to_le_bytes());
    for column in 0..columns {
        let mut kinds = values.iter().skip(column).step_by(columns).map(Parameter::kind);
        let kind = kinds.find(|kind| *kind != TYPE_NULL).unwrap_or(TYPE_NULL);
        if kinds.any(|other| other != kind && other != TYPE_NULL) {
            return Err(protocol("an array with values of several types in a column"));
        }
        output.extend_from_slice(&[kind, 0]);
    }
    for value in values {
        output.push(match value {
            Parameter::Null => INDICATOR_NULL,
            _ => INDICATOR_NONE,
        });
        write_value(output, value);
    }
    Ok(())
}

/// A value in the binary protocol; of NULL there is none.
fn write_value(output: &mut Vec<u8>, value: &Parameter<'_>) {
    match value {
        Parameter::Null => {}
        Parameter::Int(value) => output.extend_from_slice(&value.to_le_bytes()),
        Parameter::Cents(cents) => {
            let (digits, begin) = decimal(*cents);
            write_text(output, &digits[begin..]);
        }
        Parameter::Text(text) => write_text(output, text),
    }
}

fn write_text(output: &mut Vec<u8>, text: &[u8]) {
    write_length(output, text.len());
    output.extend_from_slice(text);
}

/// An amount as the decimal text that the server takes: it begins at the number that comes with it.
pub(in crate::mariadb) fn decimal(cents: i64) -> ([u8; DECIMAL_BYTES_MAX], usize) {
    let mut text = [b'0'; DECIMAL_BYTES_MAX];
    let mut at = text.len();
    let mut rest = cents.unsigned_abs();
    // Both places and a digit before them, whatever the amount.
    while rest > 0 || at > text.len() - 4 {
        at -= 1;
        if at == text.len() - 3 {
            text[at] = b'.';
        } else {
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
    if cents < 0 {
        at -= 1;
        text[at] = b'-';
    }
    (text, at)
}

fn write_length(output: &mut Vec<u8>, length: usize) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=250 => output.push(bytes[0]),
        251..=0xffff => {
            output.push(0xfc);
            output.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            output.push(0xfd);
            output.extend_from_slice(&bytes[..3]);
        }
        _ => {
            output.push(0xfe);
            output.extend_from_slice(&bytes);
        }
    }
}

/// Takes `count` bytes off the front.
pub(super) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Error> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(cut)?;
    *bytes = rest;
    Ok(taken)
}

/// Takes a number of `N` bytes off the front, the lowest first.
pub(super) fn take_array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Error> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    *bytes = rest;
    Ok(*taken)
}

/// Takes a number of one to nine bytes off the front.
pub(super) fn take_length(bytes: &mut &[u8]) -> Result<u64, Error> {
    let [first] = take_array(bytes)?;
    let count = match first {
        0..=250 => return Ok(u64::from(first)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return Err(protocol("an invalid number")),
    };
    let digits = take(bytes, count)?;
    Ok(digits.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Takes a text with its length before it off the front.
pub(super) fn take_text<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let length = take_length(bytes)?;
    take(bytes, usize::try_from(length).map_err(|_| cut())?)
}

/// An error packet: a number, usually a state after `#`, and words.
pub(super) fn server_error(body: &[u8]) -> ServerError {
    let number = body.get(1..3).and_then(|bytes| bytes.first_chunk());
    let code = number.map_or(UNKNOWN_ERROR, |bytes| u16::from_le_bytes(*bytes));
    let rest = body.get(3..).unwrap_or_default();
    let (state, words) = match rest.split_at_checked(6) {
        Some(([b'#', state @ ..], words)) => (state, words),
        _ => (&b"HY000"[..], rest),
    };
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    ServerError { code, message: text(words), state: text(state) }
}

pub(super) fn refused(body: &[u8]) -> Result<(), Error> {
    match body {
        [0xff, ..] => Err(Error::Server(server_error(body))),
        _ => Ok(()),
    }
}

pub(super) fn broken(error: io::Error) -> Error {
    Error::Io(IoError::Io(error))
}

pub(in crate::mariadb) fn protocol(what: &'static str) -> Error {
    broken(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn cut() -> Error {
    protocol("a truncated packet")
}

#[cfg(test)]
mod tests {
    use super::{
        Parameter, decimal, server_error, take_length, write_array_execution, write_execution,
        write_length,
    };

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 250, 251, 252, 65_535, 65_536, 0xff_ffff, 0x100_0000, 1 << 40] {
            let mut bytes = Vec::new();
            write_length(&mut bytes, number);
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!(take_length(&mut rest).unwrap(), number as u64);
            assert_eq!(rest, [7]);
            let mut cut = &bytes[..bytes.len() - 2];
            assert!(take_length(&mut cut).is_err(), "{number} is cut");
        }
        assert!(take_length(&mut &[0xff][..]).is_err());
    }

    #[test]
    fn an_execution_has_its_types_before_its_values() {
        let mut bytes = Vec::new();
        write_execution(&mut bytes, 0x0102, &[Parameter::Text(b"ab"), Parameter::Int(-2)]);
        let expected = [
            2, 1, 0, 0, 0, 1, 0, 0, 0, // statement, cursor, times
            0, 1, 0xfd, 0, 3, 0, // no NULL, types follow
            2, b'a', b'b', 0xfe, 0xff, 0xff, 0xff,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_null_has_a_bit_and_no_value() {
        let mut bytes = Vec::new();
        let mut parameters = [Parameter::Int(1); 10];
        parameters[1] = Parameter::Null;
        parameters[9] = Parameter::Null;
        write_execution(&mut bytes, 1, &parameters);
        assert_eq!(bytes[9..12], [0b10, 0b10, 1]);
        assert_eq!(bytes[12 + 2..12 + 4], [6, 0]);
        assert_eq!(bytes.len(), 12 + 20 + 8 * 4);
    }

    #[test]
    fn an_array_has_its_types_once_and_says_of_each_value_whether_it_is_null() {
        let mut bytes = Vec::new();
        let rows = [
            [Parameter::Null, Parameter::Cents(105)],
            [Parameter::Int(-2), Parameter::Null],
            [Parameter::Int(3), Parameter::Text(b"ab")],
        ];
        write_array_execution(&mut bytes, 0x0102, 2, rows.as_flattened()).unwrap();
        let expected = [
            &[2, 1, 0, 0, 128, 0, 3, 0, 0xfd, 0][..], // statement, types follow, types
            &[1, 0, 4, b'1', b'.', b'0', b'5'],
            &[0, 0xfe, 0xff, 0xff, 0xff, 1],
            &[0, 3, 0, 0, 0, 0, 2, b'a', b'b'],
        ];
        assert_eq!(bytes, expected.concat());
        // A column where all are NULL has no other type.
        bytes.clear();
        write_array_execution(&mut bytes, 1, 1, &[Parameter::Null; 2]).unwrap();
        assert_eq!(bytes, [1, 0, 0, 0, 128, 0, 6, 0, 1, 1]);
    }

    #[test]
    fn a_column_of_an_array_has_one_type() {
        let mixed = [Parameter::Int(1), Parameter::Null, Parameter::Text(b"1")];
        assert!(write_array_execution(&mut Vec::new(), 1, 1, &mixed).is_err());
        // They are of different columns here.
        write_array_execution(&mut Vec::new(), 1, 3, &mixed).unwrap();
    }

    #[test]
    fn amounts_are_exact() {
        for (cents, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (-5, "-0.05"),
            (107, "1.07"),
            (500_000, "5000.00"),
            (i64::MIN, "-92233720368547758.08"),
        ] {
            let (digits, begin) = decimal(cents);
            assert_eq!(std::str::from_utf8(&digits[begin..]).unwrap(), text);
        }
    }

    #[test]
    fn errors_are_read_with_and_without_a_state() {
        let error = server_error(b"\xff\x26\x04#23000Duplicate");
        assert_eq!((error.code, &*error.state, &*error.message), (1062, "23000", "Duplicate"));
        // Before the protocol is agreed on there is no state.
        let error = server_error(b"\xff\x10\x04Too many");
        assert_eq!((error.code, &*error.state, &*error.message), (1040, "HY000", "Too many"));
        assert_eq!(server_error(&[0xff]).code, 1105);
    }
}
