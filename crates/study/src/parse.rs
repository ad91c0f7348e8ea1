//! From text to the file types: TOML syntax first, then every key.

use std::ops::Range;

use toml::de::DeTable;

use crate::file;
use crate::problem::{Problems, Source, position};
use crate::reader::Keys;
use crate::report::Report;
use crate::section::Table;

/// A study file that was read. Whether it makes sense is decided by [`crate::plan`].
#[derive(Clone, Debug)]
pub struct Study {
    pub(crate) source: Source,
    pub(crate) file: file::Study,
}

impl Study {
    /// The text it was read from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The name the study gives itself; empty when it has none.
    pub fn name(&self) -> &str {
        self.file.name.get().map_or("", String::as_str)
    }

    /// The title, or the name.
    pub fn title(&self) -> &str {
        self.file.title.get().map_or_else(|| self.name(), String::as_str)
    }

    /// Whether it has a laptop size.
    pub fn has_laptop_size(&self) -> bool {
        self.file.laptop.is_present()
    }

    /// What it asks; empty when it asks nothing.
    pub fn question(&self) -> &str {
        self.file.question.get().map_or("", String::as_str)
    }
}

/// How far the text could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// The text is TOML; every key was read.
    Sound,
    /// The text is not TOML; what was read cannot be relied upon.
    Broken,
}

/// Reads a whole text with `read`, putting every problem into `report`.
pub(crate) fn read_text<T>(
    text: &str,
    report: &mut Report,
    read: impl FnOnce(&mut Keys<'_, '_>) -> T,
) -> (T, Syntax) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut found = Report::default();
    let mut keys = Keys::new(document.get_ref(), "", &mut found);
    let content = read(&mut keys);
    keys.finish();
    let Some(first_error) = errors.iter().filter_map(|error| error.span()).map(|s| s.start).min()
    else {
        let broken = !errors.is_empty();
        for error in errors {
            report.add(None, "syntax", error.message(), "", SYNTAX_HELP);
        }
        report.append(found);
        return (content, if broken { Syntax::Broken } else { Syntax::Sound });
    };
    for (span, message) in worth_reading(text, &errors) {
        let help = syntax_help(&message, &text[span.clone()]);
        report.at(&span, "syntax", format!("not TOML: {message}"), "here", help);
    }
    // Behind the first error the parser guesses. What it read before is certain.
    found.retain(|draft| {
        draft.code != "missing-key" && draft.span.as_ref().is_some_and(|s| s.end <= first_error)
    });
    report.append(found);
    (content, Syntax::Broken)
}

/// Reads a study without resolving it: for lists of studies, and as a first step of [`crate::plan`].
///
/// # Errors
/// Syntax errors, unknown keys, wrong types and units: everything that can be seen without resolving.
pub fn read(source: &Source) -> Result<Study, Problems> {
    let mut report = Report::default();
    let (file, _) = read_text(&source.text, &mut report, file::Study::read);
    match Problems::from_drafts(source, report.into_drafts()) {
        None => Ok(Study { source: source.clone(), file }),
        Some(problems) => Err(problems),
    }
}

const SYNTAX_HELP: &str =
    "look at quotes, brackets and commas around here; every line is `key = value` or a [header]";

/// The errors without the avalanche behind them: one per line, and one for a list that never ends.
fn worth_reading(text: &str, errors: &[toml::de::Error]) -> Vec<(Range<usize>, String)> {
    let mut worth: Vec<(Range<usize>, String)> = Vec::new();
    let (mut last_line, mut in_array) = (0, false);
    // The parser makes several passes; people read from the top.
    let mut errors: Vec<_> = errors.iter().collect();
    errors.sort_by_key(|error| error.span().map_or(text.len(), |span| span.start));
    for error in errors {
        let span = on_characters(text, error.span().unwrap_or(text.len()..text.len()));
        let (line, _) = position(text, span.start);
        let array = error.message().contains("array");
        if line != last_line && !(array && in_array) {
            worth.push((span, error.message().to_string()));
        }
        last_line = line;
        in_array |= array;
    }
    worth
}

fn syntax_help(message: &str, found: &str) -> String {
    if message.contains("duplicate key") {
        "duplicate key; keep one of them".to_string()
    } else if message.contains("between array elements") {
        "a comma is missing here, or the list before it lacks its `]`".to_string()
    } else if message.contains("must be quoted") && !found.is_empty() {
        format!("write it in quotes: \"{found}\"")
    } else {
        SYNTAX_HELP.to_string()
    }
}

/// Widens a span to whole characters inside the text.
fn on_characters(text: &str, span: Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}
