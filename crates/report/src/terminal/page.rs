//! Lines of text under construction, wrapped at the width of the terminal.
//!
//! What it deliberately does not do: know what a line is about.

use super::colour::{Colour, Style};
use crate::text_table::{TextColumn, render, wrap};

/// Narrower terminals are treated as this wide.
const NARROWEST: usize = 40;

/// Lines of text under construction.
pub(crate) struct Page {
    lines: Vec<String>,
    width: usize,
    colour: Colour,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(width: usize, colour: Colour) -> Page {
        Page { lines: Vec::new(), width: width.max(NARROWEST), colour }
    }

    /// All lines. Ends with a line feed.
    pub(crate) fn text(self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.lines.push(String::new());
    }

    /// What the reader should see first.
    pub(crate) fn headline(&mut self, text: &str) {
        self.styled(Style::Bold, text, "", "");
    }

    /// A sentence below it.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.wrapped(text, "  ", "  ");
    }

    /// What explains a table.
    pub(super) fn note(&mut self, text: &str) {
        self.styled(Style::Faint, text, "", "");
    }

    /// A table; the columns that can be dispensed with give way to its width.
    pub(crate) fn table(&mut self, columns: Vec<TextColumn>) {
        let mut lines = render(columns, self.width).into_iter();
        if let Some(header) = lines.next() {
            self.lines.push(self.colour.paint(Style::Faint, &header));
        }
        self.lines.extend(lines);
    }

    /// A text whose first line and whose others begin with something.
    pub(super) fn wrapped(&mut self, text: &str, first: &str, others: &str) {
        self.lines.extend(wrap(text, self.width, first, others));
    }

    /// The same, painted.
    pub(super) fn styled(&mut self, style: Style, text: &str, first: &str, others: &str) {
        let lines = wrap(text, self.width, first, others);
        self.lines.extend(lines.iter().map(|line| self.colour.paint(style, line)));
    }
}
