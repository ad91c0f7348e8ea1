//! Answers of MariaDB or MySQL, packet by packet: what is expected, what arrived, and what comes
//! next.
//!
//! ```text
//! preparation:  OK with number and counts | definitions of parameters | definitions of columns
//! statement:    OK
//!            or number of columns | their definitions | rows | OK or EOF
//! call:         any number of the latter, each said to be followed by more, and an OK
//! ```
//!
//! Each of them may end in an error instead. It neither reads nor writes: [`Direct`](super::Direct) brings the packets.

use mysql_async::{Error, ServerError};

use crate::connection::Completed;

use super::packet::{protocol, server_error, take, take_array, take_length};
use super::row::{Column, Row};

/// The bit of a status: another result follows.
const MORE_RESULTS: u16 = 0x0008;

/// What was agreed on with the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Definitions and rows end in a packet that is called EOF; otherwise only rows do, and it is an OK.
    pub has_eof: bool,
    /// Columns of prepared statements are described again only when they have changed.
    pub keeps_columns: bool,
}

/// What a packet brought.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Nothing that anybody waits for.
    More,
    /// A row.
    Row(Row<'a>),
    /// The server asks for the rows of a bulk load.
    File,
    /// The end of an answer.
    Completed(Completed),
    /// The end of a preparation: the statement's number, and how many parameters it has.
    Prepared(u32, u16),
    /// The end of an answer: the server did not do it.
    Refused(ServerError),
}

/// An answer that is being received.
#[derive(Debug)]
pub(super) struct Answer {
    agreed: Agreed,
    expected: Expected,
    /// Rows are in the binary protocol.
    is_binary: bool,
    /// The server may ask for the rows of a bulk load.
    has_file: bool,
    columns: Vec<Column>,
    /// They came with this answer.
    is_described: bool,
    completed: Completed,
    /// Number and parameters of what is being prepared.
    prepared: (u32, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Nothing,
    /// The first packet of a preparation's answer.
    Preparation,
    /// So many packets about parameters, then those about so many columns.
    Parameters {
        left: u64,
        columns: u16,
    },
    /// So many packets about columns; the preparation ends with them.
    PreparedColumns {
        left: u64,
    },
    /// The first packet of a result.
    Result,
    /// So many packets about columns; rows follow.
    Columns {
        left: u64,
    },
    Rows,
}

impl Answer {
    /// Nothing is expected.
    pub(super) fn new(agreed: Agreed) -> Answer {
        Answer {
            agreed,
            expected: Expected::Nothing,
            is_binary: false,
            has_file: false,
            columns: Vec::new(),
            is_described: false,
            completed: Completed::default(),
            prepared: (0, 0),
        }
    }

    /// Nothing is expected any more.
    pub(super) fn is_over(&self) -> bool {
        self.expected == Expected::Nothing
    }

    /// Columns, when they were described in the answer that has ended.
    pub(super) fn described(&self) -> Option<&[Column]> {
        self.is_described.then_some(&self.columns)
    }

    /// COM_STMT_PREPARE was sent.
    pub(super) fn expect_preparation(&mut self) {
        self.expect(Expected::Preparation, &[], true);
    }

    /// COM_STMT_EXECUTE was sent; `columns` is how its rows were described last.
    pub(super) fn expect_rows(&mut self, columns: &[Column]) {
        self.expect(Expected::Result, columns, true);
    }

    /// COM_QUERY was sent. Its rows are text.
    pub(super) fn expect_result(&mut self) {
        self.expect(Expected::Result, &[], false);
    }

    /// COM_QUERY was sent with a statement that asks for rows of ours.
    pub(super) fn expect_request_for_file(&mut self) {
        self.expect(Expected::Result, &[], false);
        self.has_file = true;
    }

    fn expect(&mut self, expected: Expected, columns: &[Column], is_binary: bool) {
        debug_assert!(self.is_over(), "one answer at a time");
        self.expected = expected;
        self.is_binary = is_binary;
        self.has_file = false;
        self.columns.clear();
        self.columns.extend_from_slice(columns);
        self.is_described = false;
        self.completed = Completed::default();
    }

    /// Takes the next packet.
    ///
    /// # Errors
    /// If the server violates the protocol. Then the next message is unknown.
    pub(super) fn take<'a>(&'a mut self, body: &'a [u8]) -> Result<Step<'a>, Error> {
        if let [0xff, ..] = body {
            self.expected = Expected::Nothing;
            return Ok(Step::Refused(server_error(body)));
        }
        match self.expected {
            Expected::Nothing => Err(protocol("an unexpected reply")),
            Expected::Preparation => self.preparation(body),
            Expected::Parameters { left, columns } => Ok(self.parameters(left - 1, columns)),
            Expected::PreparedColumns { left } => {
                self.definition(left, body)?;
                Ok(self.prepared_columns(left - 1))
            }
            Expected::Result => self.result(body),
            Expected::Columns { left } => {
                self.definition(left, body)?;
                self.expected = match left - 1 {
                    0 => Expected::Rows,
                    left => Expected::Columns { left },
                };
                Ok(Step::More)
            }
            Expected::Rows => self.row(body),
        }
    }

    fn preparation(&mut self, mut body: &[u8]) -> Result<Step<'_>, Error> {
        if take_array(&mut body)? != [0] {
            return Err(protocol("an invalid reply to PREPARE"));
        }
        let number = u32::from_le_bytes(take_array(&mut body)?);
        let columns = u16::from_le_bytes(take_array(&mut body)?);
        let parameters = u16::from_le_bytes(take_array(&mut body)?);
        self.prepared = (number, parameters);
        self.is_described = true;
        Ok(self.parameters(self.packets(parameters.into()), columns))
    }

    fn parameters(&mut self, left: u64, columns: u16) -> Step<'_> {
        if left == 0 {
            return self.prepared_columns(self.packets(columns.into()));
        }
        self.expected = Expected::Parameters { left, columns };
        Step::More
    }

    fn prepared_columns(&mut self, left: u64) -> Step<'_> {
        if left == 0 {
            self.expected = Expected::Nothing;
            return Step::Prepared(self.prepared.0, self.prepared.1);
        }
        self.expected = Expected::PreparedColumns { left };
        Step::More
    }

    /// How many packets describe `count` columns or parameters.
    fn packets(&self, count: u64) -> u64 {
        count + u64::from(self.agreed.has_eof && count > 0)
    }

    /// Takes one of `left` packets about columns.
    fn definition(&mut self, left: u64, body: &[u8]) -> Result<(), Error> {
        let is_the_end = self.agreed.has_eof && left == 1;
        if !is_the_end && self.is_binary {
            self.columns.push(Column::parse(body)?);
        }
        Ok(())
    }

    fn result(&mut self, mut body: &[u8]) -> Result<Step<'_>, Error> {
        match body {
            [0, rest @ ..] => {
                let mut rest = rest;
                self.completed.changed = take_length(&mut rest)?;
                self.completed.last_insert_id = take_length(&mut rest)?;
                let status = u16::from_le_bytes(take_array(&mut rest)?);
                self.completed.warnings = u16::from_le_bytes(take_array(&mut rest)?);
                return Ok(self.end_of_result(status));
            }
            [0xfb, ..] if self.has_file => {
                self.has_file = false;
                return Ok(Step::File);
            }
            [0xfb, ..] => return Err(protocol("a request for a local file")),
            _ => {}
        }
        let count = take_length(&mut body)?;
        // As many as a table can have, many times over.
        if count == 0 || count > u64::from(u16::MAX) {
            return Err(protocol("a result with too many columns"));
        }
        if self.agreed.keeps_columns && take_array(&mut body)? == [0] {
            if self.is_binary && self.columns.len() as u64 != count {
                return Err(protocol("columns without a description"));
            }
            self.expected = Expected::Rows;
        } else {
            self.columns.clear();
            self.is_described = true;
            self.expected = Expected::Columns { left: self.packets(count) };
        }
        Ok(Step::More)
    }

    fn row<'a>(&'a mut self, body: &'a [u8]) -> Result<Step<'a>, Error> {
        // A row cannot begin so: its first column would be longer than a packet.
        let [0xfe, rest @ ..] = body else {
            self.completed.returned += 1;
            return match self.is_binary {
                true => Row::parse(&self.columns, body).map(Step::Row),
                false => Ok(Step::Row(Row::of_text(body))),
            };
        };
        let mut rest = rest;
        if self.agreed.has_eof {
            // Warnings.
            take(&mut rest, 2)?;
        } else {
            take_length(&mut rest)?;
            take_length(&mut rest)?;
        }
        let status = u16::from_le_bytes(take_array(&mut rest)?);
        Ok(self.end_of_result(status))
    }

    fn end_of_result(&mut self, status: u16) -> Step<'_> {
        if status & MORE_RESULTS != 0 {
            self.expected = Expected::Result;
            return Step::More;
        }
        self.expected = Expected::Nothing;
        Step::Completed(self.completed)
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
