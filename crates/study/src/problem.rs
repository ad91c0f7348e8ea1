//! Problems of a study: what is wrong, where, why, and what to write instead. All of them at once.
//!
//! [`Problems`] is an error and a miette diagnostic with one related diagnostic per problem;
//! [`Problems::render`] draws it without a global handler, [`Problems::to_json`] is for programs.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
    SourceSpan,
};
use serde_json::{Value, json};
use underlay_core::printable::{excerpt, is_unprintable, printable};

/// Messages quote what is in the study, which may be of any length. The remedy is the longest of their parts.
const PART_CHARACTERS_MAX: usize = 1_000;
/// Lines of the study that are longer are not drawn: the message has the place.
const LINE_BYTES_MAX: usize = 400;

/// A study as text, with the name it is reported under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// File name, or the name of a built-in study.
    pub name: String,
    /// The TOML text.
    pub text: String,
}

/// One problem.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Stable name for programs: `unknown-key`, `wrong-type`, `out-of-range`, ...
    pub code: &'static str,
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// The bytes of the source concerned; `None` when the command line or the host is at fault.
    pub span: Option<Range<usize>>,
    /// The reason, written below those bytes.
    pub label: String,
    /// What to do about it.
    pub help: String,
    source: Arc<NamedSource<String>>,
}

/// All problems of a study, in the order of the file. Never empty.
#[derive(Clone, Debug)]
pub struct Problems {
    source: Arc<NamedSource<String>>,
    list: Vec<Problem>,
}

/// Whether rendered text may carry terminal colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Text alone.
    Plain,
    /// With ANSI escape sequences.
    Ansi,
}

/// What becomes a [`Problem`] once it is known which text it concerns.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub code: &'static str,
    pub message: String,
    pub span: Option<Range<usize>>,
    pub label: String,
    pub help: String,
}

impl Problems {
    /// `None` when there is nothing to report.
    pub(crate) fn from_drafts(source: &Source, mut drafts: Vec<Draft>) -> Option<Problems> {
        if drafts.is_empty() {
            return None;
        }
        // Problems of the command line and the host have no place and come last.
        drafts.sort_by_key(|draft| draft.span.as_ref().map_or(usize::MAX, |span| span.start));
        let source = Arc::new(NamedSource::new(printable(&source.name), source.text.clone()));
        let short = |text: &str| excerpt(text, PART_CHARACTERS_MAX);
        let list = drafts
            .into_iter()
            .map(|draft| Problem {
                code: draft.code,
                // Without a place there is no line to write the reason below.
                message: match (&draft.span, draft.label.as_str()) {
                    (Some(_), _) | (None, "") => short(&draft.message),
                    (None, label) => format!("{}: {}", short(&draft.message), short(label)),
                },
                span: draft.span,
                label: short(&draft.label),
                help: short(&draft.help),
                source: Arc::clone(&source),
            })
            .collect();
        Some(Problems { source, list })
    }

    /// The problems in the order of the file.
    pub fn as_slice(&self) -> &[Problem] {
        &self.list
    }

    /// The report for people: every problem with its line, then the count.
    ///
    /// `width` is in columns; narrower than 40 is drawn as 40.
    pub fn render(&self, width: usize, colour: Colour) -> String {
        let theme = match colour {
            Colour::Plain => GraphicalTheme::unicode_nocolor(),
            Colour::Ansi => GraphicalTheme::unicode(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width.max(40))
            .with_links(false)
            .with_context_lines(1);
        let mut text = String::new();
        for problem in &self.list {
            let without_lines = Undrawable(problem);
            let drawn: &dyn Diagnostic =
                if problem.is_drawable() { problem } else { &without_lines };
            handler
                .render_report(&mut text, drawn)
                .expect("writing to a String cannot fail and spans lie within the source");
            text.push('\n');
        }
        text.push_str(&self.to_string());
        text.push('\n');
        text
    }

    /// The report for programs: one object per problem with line and column (from 1, in characters).
    pub fn to_json(&self) -> Value {
        let problems: Vec<Value> = self
            .list
            .iter()
            .map(|problem| {
                let position =
                    problem.span.as_ref().map(|span| position(problem.text(), span.start));
                json!({
                    "code": problem.code,
                    "message": problem.message,
                    "line": position.map(|(line, _)| line),
                    "column": position.map(|(_, column)| column),
                    "offset": problem.span.as_ref().map(|span| span.start),
                    "length": problem.span.as_ref().map(|span| span.len()),
                    "reason": problem.label,
                    "remedy": problem.help,
                })
            })
            .collect();
        json!({ "file": self.source.name(), "problems": problems })
    }
}

impl Problem {
    /// Line and column of the first byte concerned, from 1; columns count characters.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.span.as_ref().map(|span| position(self.text(), span.start))
    }

    fn text(&self) -> &str {
        self.source.inner()
    }

    /// Whether the lines concerned, with one before and one after, can be shown as they are.
    fn is_drawable(&self) -> bool {
        let Some(span) = &self.span else { return true };
        let first = position(self.text(), span.start).0;
        let last = position(self.text(), span.end).0;
        let shown = self.text().lines().skip(first.saturating_sub(2)).take(last - first + 3);
        shown.into_iter().all(|line| line.len() <= LINE_BYTES_MAX && !line.contains(is_unprintable))
    }
}

/// A problem whose lines are too long to be drawn, or contain control characters: it says where it is instead.
#[derive(Debug)]
struct Undrawable<'p>(&'p Problem);

impl fmt::Display for Undrawable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.label.is_empty() {
            write!(f, ": {}", self.0.label)?;
        }
        match self.0.position() {
            Some((line, column)) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Undrawable<'_> {}

impl Diagnostic for Undrawable<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.code()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help()
    }
}

/// Line and column, from 1, of a byte offset.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    (line, String::from_utf8_lossy(&before[line_start..]).chars().count() + 1)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.list.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "{count} {noun} in {}; nothing was started", self.source.name())
    }
}

impl std::error::Error for Problem {}
impl std::error::Error for Problems {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.as_ref().map(|_| &*self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = SourceSpan::from(self.span.clone()?);
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(
            Some(self.label.clone()),
            span,
        ))))
    }
}

impl Diagnostic for Problems {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.list.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}
