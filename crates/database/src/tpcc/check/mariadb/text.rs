//! The small language of the conditions' texts: what this SQL lacks, written once.
//!
//! * `{table}`, `$first`, `$last`: see [`Piece`].
//! * `$warehouses`: a query of the numbers `w` that must exist.
//! * `say('warehouse [w]: [w_ytd]')`: a text with values in it, nulls included.

use crate::tpcc::TableNames;
use crate::tpcc::check::Piece;

/// A text as SQL.
pub fn sql_of(text: &str, piece: &Piece, tables: &TableNames) -> String {
    let numbers: Vec<String> =
        piece.warehouses().map(|number| format!("SELECT {number} AS w")).collect();
    let text = text.replace("$warehouses", &format!("({})", numbers.join(" UNION ALL ")));
    said(&piece.insert_into(&text, tables))
}

/// With each `say('...')` as an expression.
fn said(text: &str) -> String {
    let Some((before, rest)) = text.split_once("say('") else { return text.to_string() };
    let Some((words, after)) = rest.split_once("')") else { return text.to_string() };
    let mut parts = Vec::new();
    for part in words.split('[') {
        match part.split_once(']') {
            Some((expression, words)) => {
                parts.push(format!("coalesce({expression}, 'none')"));
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
            "SELECT concat('w ', coalesce(w, 'none'), ': ', coalesce(a + b, 'none'), ' of c'), concat('x')"
        );
        assert_eq!(said("SELECT 1"), "SELECT 1");
    }
}
