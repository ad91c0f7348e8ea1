//! What receives the columns of rows, one after the other.
//!
//! Not here: column types, SQL; those are the engine's.

use super::date::Date;

/// Takes the columns of rows.
pub trait Fields {
    /// A whole number.
    fn integer(&mut self, value: i64);
    /// Text of ASCII letters, digits, spaces and `@.-`.
    fn text(&mut self, value: &str);
    /// An amount of money.
    fn cents(&mut self, value: i64);
    /// A day.
    fn date(&mut self, value: Date);
    /// The row is complete.
    fn end_row(&mut self);
}
