//! A table of text that fits a width: the least important columns are left out first.

/// Which side a column's cells are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// One column with its cells.
#[derive(Clone, Debug)]
pub(crate) struct TextColumn {
    pub(crate) header: String,
    pub(crate) align: Align,
    /// Columns with a higher number are left out first; those with 0 never are.
    pub(crate) dispensable: u8,
    pub(crate) cells: Vec<String>,
}

/// Two spaces between columns.
const GAP: &str = "  ";

/// The lines of the table, the header first; at most `width` wide if the dispensable columns suffice for that.
pub(crate) fn render(mut columns: Vec<TextColumn>, width: usize) -> Vec<String> {
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty() && cell != "-"));
    while total(&columns) > width {
        let worst = columns.iter().map(|column| column.dispensable).max().unwrap_or(0);
        let Some(position) =
            columns.iter().rposition(|column| column.dispensable == worst && worst > 0)
        else {
            break;
        };
        columns.remove(position);
    }
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let header: Vec<&str> = columns.iter().map(|column| column.header.as_str()).collect();
    let mut lines = vec![line(&columns, &header)];
    for row in 0..rows {
        let cells: Vec<&str> = columns.iter().map(|column| column.cells[row].as_str()).collect();
        lines.push(line(&columns, &cells));
    }
    lines
}

fn column_width(column: &TextColumn) -> usize {
    let cells = column.cells.iter().map(|cell| cell.chars().count());
    cells.chain([column.header.chars().count()]).max().unwrap_or(0)
}

fn total(columns: &[TextColumn]) -> usize {
    let widths: usize = columns.iter().map(column_width).sum();
    widths + GAP.len() * columns.len().saturating_sub(1)
}

fn line(columns: &[TextColumn], cells: &[&str]) -> String {
    let padded: Vec<String> = columns
        .iter()
        .zip(cells)
        .map(|(column, cell)| {
            let width = column_width(column);
            match column.align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        })
        .collect();
    padded.join(GAP).trim_end().to_string()
}

/// Text broken into lines of at most `width`, the following ones indented.
pub(crate) fn wrap(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = first.to_string();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let separator = usize::from(!is_empty);
        if !is_empty && current.chars().count() + separator + word.chars().count() > width {
            lines.push(std::mem::replace(&mut current, rest.to_string()));
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::{Align, TextColumn, render, wrap};

    fn column(header: &str, align: Align, dispensable: u8, cells: &[&str]) -> TextColumn {
        TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: cells.iter().map(|cell| cell.to_string()).collect(),
        }
    }

    fn columns() -> Vec<TextColumn> {
        vec![
            column("design", Align::Left, 0, &["NVMe", "SATA"]),
            column("NOPM", Align::Right, 0, &["12,345", "900"]),
            column("idle", Align::Right, 2, &["12 %", "61 %"]),
            column("p95", Align::Right, 1, &["1 ms", "20 ms"]),
            column("TPM", Align::Right, 3, &["-", ""]),
        ]
    }

    #[test]
    fn cells_are_aligned_and_empty_columns_left_out() {
        let lines = render(columns(), 80);
        assert_eq!(lines[0], "design    NOPM  idle    p95");
        assert_eq!(lines[1], "NVMe    12,345  12 %   1 ms");
        assert_eq!(lines[2], "SATA       900  61 %  20 ms");
    }

    #[test]
    fn narrow_tables_drop_what_matters_least() {
        assert_eq!(render(columns(), 22)[0], "design    NOPM    p95");
        assert_eq!(render(columns(), 10)[0], "design    NOPM");
    }

    #[test]
    fn text_is_wrapped_at_words() {
        let lines = wrap("one two three four", 12, "- ", "  ");
        assert_eq!(lines, ["- one two", "  three four"]);
        assert_eq!(wrap("unbreakable", 4, "", ""), ["unbreakable"]);
    }
}
