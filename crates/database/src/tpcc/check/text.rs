//! The small language of the texts: what no engine's SQL has, and what engines write differently.
//!
//! * `{table}`, `$first`, `$last`, `$warehouses`: see [`Piece`].
//! * `a <=> b`: whether two values are equal, or both NULL.
//! * `say('warehouse [w]: [w_ytd]')`: a text with values in it; NULL is `none`.

use super::piece::Piece;
use super::sql::Dialect;
use crate::tpcc::TableNames;

/// A text in an engine's SQL.
pub(super) fn sql_of(text: &str, dialect: &Dialect, piece: &Piece, tables: &TableNames) -> String {
    let sql = said(&piece.insert_into(text, tables));
    sql.replace("<=>", dialect.null_safe_equal)
}

/// With each `say('...')` as an expression.
fn said(text: &str) -> String {
    let Some((before, rest)) = text.split_once("say('") else { return text.to_string() };
    let Some((words, after)) = rest.split_once("')") else { return text.to_string() };
    let mut parts = Vec::new();
    for part in words.split('[') {
        match part.split_once(']') {
            Some((expression, words)) => {
                // The text of NULL is NULL or empty, as the engine has it.
                parts.push(format!("coalesce(nullif(concat({expression}), ''), 'none')"));
                parts.push(format!("'{words}'"));
            }
            None => parts.push(format!("'{part}'")),
        }
    }
    format!("{before}concat({}){}", parts.join(", "), said(after))
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn values_stand_between_words() {
        assert_eq!(
            said("SELECT say('w [w]: [a + b] of c'), say('x')"),
            "SELECT concat('w ', coalesce(nullif(concat(w), ''), 'none'), ': ', \
             coalesce(nullif(concat(a + b), ''), 'none'), ' of c'), concat('x')"
        );
        assert_eq!(said("SELECT 1"), "SELECT 1");
    }
}
