//! Rows of prepared statements (binary protocol), read in place: only requested values are decoded.
//!
//! Dates, times and floating-point numbers are passed over, never read.

use mysql_async::{Error, Value};

use crate::connection::Cells;

use super::packet::{protocol, take, take_array, take_length, take_text};

/// Texts before a column's properties: catalog, schema, table twice, name twice.
const TEXTS_OF_A_DEFINITION: usize = 6;
/// The flag of a column whose numbers have no sign.
const UNSIGNED: u16 = 0x20;
/// A row's bits of NULL begin behind two that are reserved.
const NULLS_FROM: usize = 2;
/// In place of a text.
const NULL_TEXT: u8 = 0xfb;

/// What a column's values are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    kind: Kind,
    is_unsigned: bool,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A whole number of so many bytes.
    Integer(u8),
    /// Bytes that are skipped: floating point, or always NULL.
    Opaque(u8),
    /// A date or a time: its length in one byte.
    Moment,
    /// Its length, as the protocol writes lengths.
    Text,
}

impl Column {
    /// Reads a column's definition.
    pub(super) fn parse(mut body: &[u8]) -> Result<Column, Error> {
        for _ in 0..TEXTS_OF_A_DEFINITION {
            take_text(&mut body)?;
        }
        // Their length; then character set (2) and width (4), which say nothing about how values are written.
        if take_length(&mut body)? < 10 {
            return Err(protocol("a column whose properties are missing"));
        }
        take(&mut body, 6)?;
        let [kind] = take_array(&mut body)?;
        let flags = u16::from_le_bytes(take_array(&mut body)?);
        let kind = match kind {
            0x01 => Kind::Integer(1),
            // SMALLINT, YEAR.
            0x02 | 0x0d => Kind::Integer(2),
            // INT, MEDIUMINT.
            0x03 | 0x09 => Kind::Integer(4),
            0x08 => Kind::Integer(8),
            // FLOAT, DOUBLE, NULL.
            0x04 => Kind::Opaque(4),
            0x05 => Kind::Opaque(8),
            0x06 => Kind::Opaque(0),
            // TIMESTAMP, DATE, TIME, DATETIME.
            0x07 | 0x0a..=0x0c => Kind::Moment,
            // DECIMAL, VARCHAR, BIT, JSON to GEOMETRY.
            0x00 | 0x0f | 0x10 | 0xf5..=0xff => Kind::Text,
            _ => return Err(protocol("a column of an unknown type")),
        };
        Ok(Column { kind, is_unsigned: flags & UNSIGNED != 0 })
    }
}

/// A row of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a>(Values<'a>);

#[derive(Clone, Copy, Debug)]
enum Values<'a> {
    /// As the server sent them.
    Binary { columns: &'a [Column], nulls: &'a [u8], values: &'a [u8] },
    /// As the server sent them in answer to a statement that was not prepared: texts.
    Text(&'a [u8]),
    /// As the client library gives them.
    Library(&'a mysql_async::Row),
}

impl<'a> Row<'a> {
    /// The row in a packet.
    pub(super) fn parse(columns: &'a [Column], mut body: &'a [u8]) -> Result<Row<'a>, Error> {
        if take_array(&mut body)? != [0] {
            return Err(protocol("an invalid row"));
        }
        let nulls = take(&mut body, (columns.len() + NULLS_FROM).div_ceil(8))?;
        Ok(Row(Values::Binary { columns, nulls, values: body }))
    }

    /// The row of texts in a packet.
    pub(super) fn of_text(body: &'a [u8]) -> Row<'a> {
        Row(Values::Text(body))
    }

    /// All columns of a row of texts.
    ///
    /// # Errors
    /// When the row is malformed.
    pub(in crate::mariadb) fn cells(&self) -> Result<Cells, Error> {
        let as_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut cells = Cells::new();
        match self.0 {
            Values::Text(mut rest) => {
                while let Some((first, behind)) = rest.split_first() {
                    if *first == NULL_TEXT {
                        rest = behind;
                        cells.push(None);
                    } else {
                        cells.push(Some(as_text(take_text(&mut rest)?)));
                    }
                }
            }
            Values::Library(row) => {
                for column in 0..row.len() {
                    cells.push(match row.as_ref(column) {
                        Some(Value::Bytes(text)) => Some(as_text(text)),
                        Some(Value::NULL) | None => None,
                        Some(other) => Some(other.as_sql(true)),
                    });
                }
            }
            Values::Binary { .. } => return Err(another_type()),
        }
        Ok(cells)
    }

    /// A row that the library has read.
    pub(in crate::mariadb) fn of_library(row: &'a mysql_async::Row) -> Row<'a> {
        Row(Values::Library(row))
    }

    /// The whole number in a column, counted from 0; none where it is NULL.
    ///
    /// # Errors
    /// When there is no such column, when it is of another type, and when the row is malformed.
    pub fn integer(&self, column: usize) -> Result<Option<i64>, Error> {
        let (columns, nulls, values) = match &self.0 {
            Values::Binary { columns, nulls, values } => (*columns, *nulls, *values),
            Values::Text(_) => return Err(another_type()),
            Values::Library(row) => {
                return match row.as_ref(column) {
                    Some(Value::Int(value)) => Ok(Some(*value)),
                    Some(Value::UInt(value)) => {
                        Ok(Some(i64::try_from(*value).map_err(|_| too_large())?))
                    }
                    Some(Value::NULL) => Ok(None),
                    _ => Err(another_type()),
                };
            }
        };
        let Some((described, value)) = found(columns, nulls, values, column)? else {
            return Ok(None);
        };
        let Kind::Integer(bytes) = described.kind else { return Err(another_type()) };
        let unsigned = value.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        if described.is_unsigned {
            return Ok(Some(i64::try_from(unsigned).map_err(|_| too_large())?));
        }
        // Shifted to the top and back, the sign fills what was not sent.
        let shift = 64 - 8 * u32::from(bytes);
        Ok(Some((unsigned << shift).cast_signed() >> shift))
    }

    /// The text in a column, counted from 0, as the server sent it; none where it is NULL.
    ///
    /// # Errors
    /// As [`Row::integer`].
    pub fn text(&self, column: usize) -> Result<Option<&'a [u8]>, Error> {
        let (columns, nulls, values) = match &self.0 {
            Values::Binary { columns, nulls, values } => (*columns, *nulls, *values),
            Values::Text(_) => return Err(another_type()),
            Values::Library(row) => {
                return match row.as_ref(column) {
                    Some(Value::Bytes(text)) => Ok(Some(text)),
                    Some(Value::NULL) => Ok(None),
                    _ => Err(another_type()),
                };
            }
        };
        match found(columns, nulls, values, column)? {
            None => Ok(None),
            Some((Column { kind: Kind::Text, .. }, value)) => Ok(Some(value)),
            Some(_) => Err(another_type()),
        }
    }
}

/// A column and its value without its length; none where it is NULL.
fn found<'a>(
    columns: &'a [Column],
    nulls: &[u8],
    mut values: &'a [u8],
    wanted: usize,
) -> Result<Option<(&'a Column, &'a [u8])>, Error> {
    for (index, column) in columns.iter().enumerate().take(wanted.saturating_add(1)) {
        let bit = index + NULLS_FROM;
        let is_null = nulls.get(bit / 8).is_some_and(|bits| bits & 1 << (bit % 8) != 0);
        if is_null {
            if index == wanted {
                return Ok(None);
            }
            continue;
        }
        let value = match column.kind {
            Kind::Integer(bytes) | Kind::Opaque(bytes) => take(&mut values, usize::from(bytes))?,
            Kind::Moment => {
                let [length] = take_array(&mut values)?;
                take(&mut values, usize::from(length))?
            }
            Kind::Text => take_text(&mut values)?,
        };
        if index == wanted {
            return Ok(Some((column, value)));
        }
    }
    Err(protocol("a row with too few columns"))
}

fn another_type() -> Error {
    protocol("a value of another type than the statement's")
}

fn too_large() -> Error {
    protocol("a number that is too large")
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Column, Row};

    /// A column's definition as servers send it.
    pub(in super::super) fn definition(kind: u8, flags: u16) -> Vec<u8> {
        let mut body = b"\x03def\x04tpcc\x05stock\x05stock\x01q\x0as_quantity\x0c".to_vec();
        body.extend([8, 0, 11, 0, 0, 0, kind]);
        body.extend(flags.to_le_bytes());
        body.extend([0, 0, 0]);
        body
    }

    fn columns(kinds: &[(u8, u16)]) -> Vec<Column> {
        let parsed = kinds.iter().map(|(kind, flags)| Column::parse(&definition(*kind, *flags)));
        parsed.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn values_are_found_behind_those_that_nobody_reads() {
        let columns = columns(&[
            (0x0c, 0), // DATETIME
            (0x05, 0), // DOUBLE
            (0xf6, 0), // DECIMAL
            (0x02, 0), // SMALLINT
            (0x03, 0), // INT
            (0x03, 0), // INT, NULL here
            (0x08, 0x20),
            (0xfe, 0), // CHAR
        ]);
        let mut body = vec![0, 0b1000_0000, 0];
        body.extend([4, 0xea, 7, 1, 2]);
        body.extend(1.5f64.to_le_bytes());
        body.extend(b"\x044.25");
        body.extend((-2i16).to_le_bytes());
        body.extend(70_000i32.to_le_bytes());
        body.extend(u64::from(u32::MAX).to_le_bytes());
        body.extend(b"\x02ab");
        let row = Row::parse(&columns, &body).unwrap();
        assert_eq!(row.text(2).unwrap(), Some(&b"4.25"[..]));
        assert_eq!(row.integer(3).unwrap(), Some(-2));
        assert_eq!(row.integer(4).unwrap(), Some(70_000));
        assert_eq!((row.integer(5).unwrap(), row.text(5).unwrap()), (None, None));
        assert_eq!(row.integer(6).unwrap(), Some(i64::from(u32::MAX)));
        assert_eq!(row.text(7).unwrap(), Some(&b"ab"[..]));
        // Another type, no such column.
        assert!(row.integer(0).is_err() && row.integer(7).is_err() && row.text(4).is_err());
        assert!(row.integer(8).is_err() && row.text(usize::MAX).is_err());
        for cut in 0..body.len() {
            let value = Row::parse(&columns, &body[..cut]).and_then(|row| row.text(7).map(drop));
            assert!(value.is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn numbers_without_a_sign_are_not_taken_for_negative_ones() {
        let unsigned = columns(&[(0x08, 0x20)]);
        let mut body = vec![0, 0];
        body.extend(u64::MAX.to_le_bytes());
        assert!(Row::parse(&unsigned, &body).unwrap().integer(0).is_err());
        assert_eq!(
            Row::parse(&columns(&[(0x08, 0)]), &body).unwrap().integer(0).unwrap(),
            Some(-1)
        );
    }

    #[test]
    fn definitions_that_are_cut_or_unknown_are_refused() {
        let whole = definition(3, 0);
        assert!(Column::parse(&whole).is_ok());
        // The last three bytes (decimals, filler) are not looked at.
        for cut in 0..whole.len() - 3 {
            assert!(Column::parse(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Column::parse(&definition(0x77, 0)).is_err());
    }
}
