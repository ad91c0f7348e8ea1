//! The server's messages (PostgreSQL manual, chapter "Message Formats") that a client of prepared statements needs.
//!
//! Descriptions of rows are skipped: the caller knows its statements.

use std::io;

/// The length that follows the tag of a message counts itself.
const HEADER_BYTES: usize = 5;

/// An error as the server reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `ERROR`, `FATAL` or `PANIC`.
    pub severity: String,
    /// Five characters.
    pub code: String,
    /// What happened.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
}

/// What matters of a message of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// A statement has ended; the number of changed rows.
    Complete(u64),
    /// The columns of a row: their number, then each with its length before it.
    Row(&'a [u8]),
    /// The server waits for the rows of a COPY.
    CopyIn,
    Error(Report),
    Ready,
    Other,
}

/// The first message in `bytes` and its length, if it is there as a whole.
pub(super) fn parse(bytes: &[u8]) -> io::Result<Option<(Message<'_>, usize)>> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [tag, length @ ..] = header;
    let length = u32::from_be_bytes(*length) as usize + 1;
    if length < HEADER_BYTES {
        return Err(invalid("a message of impossible length"));
    }
    let Some(message) = bytes.get(..length) else { return Ok(None) };
    let message = match tag {
        b'C' => Message::Complete(rows_of(&message[HEADER_BYTES..])),
        b'D' => Message::Row(&message[HEADER_BYTES..]),
        b'G' => Message::CopyIn,
        b'E' => Message::Error(report(&message[HEADER_BYTES..])?),
        b'Z' => Message::Ready,
        _ => Message::Other,
    };
    Ok(Some((message, length)))
}

/// The number at the end of a command's tag: "INSERT 0 5", "BEGIN". Rows that are returned are counted as they come.
fn rows_of(tag: &[u8]) -> u64 {
    if tag.starts_with(b"SELECT ") || tag.starts_with(b"FETCH ") {
        return 0;
    }
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let last = tag.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(last).ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The fields of an error: a type of one byte and a text that ends with a zero, as often as there are fields, and a
/// zero.
fn report(mut fields: &[u8]) -> io::Result<Report> {
    let mut report = Report::default();
    loop {
        let (kind, rest) = match fields {
            [0, ..] => return Ok(report),
            [kind, rest @ ..] => (*kind, rest),
            [] => return Err(invalid("an error without an end")),
        };
        let end = rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| invalid("a field of an error without an end"))?;
        let text = || String::from_utf8_lossy(&rest[..end]).into_owned();
        match kind {
            // The one that is not translated, since PostgreSQL 9.6.
            b'V' => report.severity = text(),
            b'S' if report.severity.is_empty() => report.severity = text(),
            b'C' => report.code = text(),
            b'M' => report.message = text(),
            b'D' => report.detail = Some(text()),
            _ => {}
        }
        fields = &rest[end + 1..];
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::{Message, Report, parse};

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn messages_are_taken_whole_or_not_at_all() {
        let mut bytes = message(b'C', b"UPDATE 1\0");
        bytes.extend(message(b'Z', b"I"));
        for cut in 0..14 {
            assert_eq!(parse(&bytes[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(parse(&bytes).unwrap(), Some((Message::Complete(1), 14)));
        assert_eq!(parse(&bytes[14..]).unwrap(), Some((Message::Ready, 6)));
        assert!(parse(&[b'Z', 0, 0, 0, 3]).is_err(), "shorter than its own length");
    }

    #[test]
    fn tags_of_commands_say_how_many_rows() {
        for (tag, count) in [("INSERT 0 5", 5), ("SELECT 100", 0), ("BEGIN", 0), ("DELETE 3", 3)] {
            let bytes = message(b'C', format!("{tag}\0").as_bytes());
            let (parsed, _) = parse(&bytes).unwrap().unwrap();
            assert_eq!(parsed, Message::Complete(count), "{tag}");
        }
    }

    #[test]
    fn errors_are_read_with_the_severity_that_is_not_translated() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mdoppelt\0DKey (id)=(1)\0\0";
        let expected = Report {
            severity: "ERROR".to_string(),
            code: "23505".to_string(),
            message: "doppelt".to_string(),
            detail: Some("Key (id)=(1)".to_string()),
        };
        let bytes = message(b'E', body);
        let (got, _) = parse(&bytes).unwrap().unwrap();
        assert_eq!(got, Message::Error(expected));
        assert!(parse(&message(b'E', b"Mcut")).is_err());
    }
}
