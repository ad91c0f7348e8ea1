//! What is in the packets of a MariaDB or MySQL, as far as whoever counts rows needs it: executions of prepared
//! statements, first packets of answers, errors.
//!
//! Values of rows are passed over unread.

use std::io;

use mysql_async::{Error, IoError, ServerError};

/// The error number that the protocol gives to what has none.
const UNKNOWN_ERROR: u16 = 1105;
const TYPE_LONG: u8 = 0x03;
const TYPE_VAR_STRING: u8 = 0xfd;

/// A statement that the server has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The server's number for it.
    pub(super) number: u32,
    /// How many values it takes.
    pub(super) parameters: u16,
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Parameter<'a> {
    /// INTEGER.
    Int(i32),
    /// CHAR.
    Text(&'a str),
}

/// The first packet of an answer to a statement.
pub(super) enum First {
    Done(u64),
    Refused(ServerError),
    Columns(u64),
}

pub(super) fn first_answer(body: &[u8]) -> Result<First, Error> {
    match body {
        [0, rest @ ..] => length_encoded(rest).map(First::Done),
        [0xff, ..] => Ok(First::Refused(server_error(body))),
        [0xfb, ..] => Err(protocol("a request for a local file")),
        _ => length_encoded(body).map(First::Columns),
    }
}
/// The body of COM_STMT_EXECUTE: statement, no cursor, once; which values are NULL (none), types, values.
pub(super) fn write_execution(
    output: &mut Vec<u8>,
    statement: Prepared,
    parameters: &[Parameter<'_>],
) {
    output.extend_from_slice(&statement.number.to_le_bytes());
    output.push(0);
    output.extend_from_slice(&1u32.to_le_bytes());
    if parameters.is_empty() {
        return;
    }
    output.resize(output.len() + parameters.len().div_ceil(8), 0);
    output.push(1);
    for parameter in parameters {
        let kind = match parameter {
            Parameter::Int(_) => TYPE_LONG,
            Parameter::Text(_) => TYPE_VAR_STRING,
        };
        output.extend_from_slice(&[kind, 0]);
    }
    for parameter in parameters {
        match parameter {
            Parameter::Int(value) => output.extend_from_slice(&value.to_le_bytes()),
            Parameter::Text(text) => {
                write_length(output, text.len());
                output.extend_from_slice(text.as_bytes());
            }
        }
    }
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

/// A number of one to nine bytes.
fn length_encoded(bytes: &[u8]) -> Result<u64, Error> {
    let (first, rest) = bytes.split_first().ok_or_else(|| protocol("a packet that is cut"))?;
    let count = match first {
        0..=250 => return Ok(u64::from(*first)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return Err(protocol("a number that is none")),
    };
    let digits = rest.get(..count).ok_or_else(|| protocol("a packet that is cut"))?;
    Ok(digits.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
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

pub(super) fn protocol(what: &'static str) -> Error {
    broken(io::Error::new(io::ErrorKind::InvalidData, what))
}

#[cfg(test)]
mod tests {
    use super::{
        First, Parameter, Prepared, first_answer, length_encoded, server_error, write_execution,
        write_length,
    };

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 250, 251, 252, 65_535, 65_536, 0xff_ffff, 0x100_0000, 1 << 40] {
            let mut bytes = Vec::new();
            write_length(&mut bytes, number);
            assert_eq!(length_encoded(&bytes).unwrap(), number as u64);
            bytes.pop();
            assert!(length_encoded(&bytes).is_err(), "{number} is cut");
        }
        assert!(length_encoded(&[0xff]).is_err());
    }

    #[test]
    fn an_execution_has_its_types_before_its_values() {
        let mut bytes = Vec::new();
        let statement = Prepared { number: 0x0102, parameters: 2 };
        write_execution(&mut bytes, statement, &[Parameter::Text("ab"), Parameter::Int(-2)]);
        let expected = [
            2, 1, 0, 0, 0, 1, 0, 0, 0, // statement, cursor, times
            0, 1, 0xfd, 0, 3, 0, // no NULL, types follow
            2, b'a', b'b', 0xfe, 0xff, 0xff, 0xff,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(matches!(first_answer(&[0, 5, 0]), Ok(First::Done(5))));
        assert!(matches!(first_answer(&[3]), Ok(First::Columns(3))));
        assert!(first_answer(&[0xfb, b'x']).is_err());
        assert!(first_answer(&[]).is_err());
        let Ok(First::Refused(error)) = first_answer(b"\xff\x26\x04#23000Duplicate") else {
            panic!("an error");
        };
        assert_eq!((error.code, &*error.state, &*error.message), (1062, "23000", "Duplicate"));
        // Before the protocol is agreed on there is no state.
        let error = server_error(b"\xff\x10\x04Too many");
        assert_eq!((error.code, &*error.state, &*error.message), (1040, "HY000", "Too many"));
        assert_eq!(server_error(&[0xff]).code, 1105);
    }
}
