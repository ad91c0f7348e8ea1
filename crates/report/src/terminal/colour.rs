//! Whether a terminal shows colours, and which ones a text has.
//!
//! What it deliberately does not do: ask the terminal or the environment. The caller has decided.

/// Whether text carries the colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text, for files, pipes and `NO_COLOR`.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// How a piece of text is to look.
#[derive(Clone, Copy)]
pub(super) enum Style {
    Bold,
    Faint,
    Good,
    Doubtful,
    Bad,
}

impl Colour {
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Bold => "1",
            Style::Faint => "2",
            Style::Good => "1;32",
            Style::Doubtful => "33",
            Style::Bad => "1;31",
        };
        match self {
            Colour::Never => text.to_string(),
            Colour::Always => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
