//! Choosing a value among layers, and remembering who decided.

use std::ops::Range;

use crate::entry::Entry;
use crate::plan::{Origin, Setting};
use crate::problem::position;
use crate::report::Report;

/// Where a candidate for a value comes from. Earlier layers take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer<'a> {
    /// The study file.
    File,
    /// The built-in design of that name.
    Builtin(&'a str),
    /// `defaults.toml`.
    Default,
}

/// A value that was decided.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen<T> {
    pub value: T,
    /// Dotted path in the file format.
    pub path: String,
    pub origin: Origin,
    /// Its bytes, when the study file decided.
    pub span: Option<Range<usize>>,
}

/// The outcome of looking through the layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pick<T> {
    Found(Chosen<T>),
    /// The first layer that has the key has a refused value.
    Refused,
    Absent,
}

impl<T> Pick<T> {
    /// Whether no layer has the key.
    pub fn is_absent(&self) -> bool {
        matches!(self, Pick::Absent)
    }

    /// The value, if there is one.
    pub fn found(self) -> Option<Chosen<T>> {
        match self {
            Pick::Found(chosen) => Some(chosen),
            Pick::Refused | Pick::Absent => None,
        }
    }
}

impl<T> Chosen<T> {
    /// A value decided by an option of the command line.
    pub fn command_line(value: T, path: &str, option: &'static str) -> Chosen<T> {
        Chosen { value, path: path.to_string(), origin: Origin::CommandLine { option }, span: None }
    }

    /// The same decision about another value.
    pub fn with<U>(&self, value: U) -> Chosen<U> {
        Chosen {
            value,
            path: self.path.clone(),
            origin: self.origin.clone(),
            span: self.span.clone(),
        }
    }

    /// The value after scaling; `full` is how the value before was written.
    pub fn scaled<U>(&self, value: U, full: String) -> Chosen<U> {
        let origin = Origin::Scale { full, of: Box::new(self.origin.clone()) };
        Chosen { value, path: self.path.clone(), origin, span: self.span.clone() }
    }

    /// How a message calls the value: the option that decided it, or its path.
    pub fn called(&self) -> String {
        match &self.origin {
            Origin::CommandLine { option } => format!("`{option}`"),
            _ => format!("`{}`", self.path),
        }
    }

    /// Reports a problem with this value.
    pub fn problem(
        &self,
        report: &mut Report,
        code: &'static str,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        report.add(self.span.clone(), code, message, label, help);
    }

    /// The line of the study file that decided.
    pub fn line(&self, text: &str) -> Option<usize> {
        self.span.as_ref().map(|span| position(text, span.start).0)
    }

    /// The line of the provenance table.
    pub fn setting(&self, value: String) -> Setting {
        Setting { path: self.path.clone(), value, origin: self.origin.clone() }
    }
}

/// The first layer that has the key decides.
pub(crate) fn pick<T: Clone>(
    text: &str,
    path: &str,
    candidates: &[(Layer<'_>, &Entry<T>)],
) -> Pick<T> {
    for (layer, entry) in candidates {
        let (value, span) = match entry {
            Entry::Absent => continue,
            Entry::Refused => return Pick::Refused,
            Entry::Given { value, span } => (value, span),
        };
        let origin = match layer {
            Layer::File => Origin::File { line: position(text, span.start).0 },
            Layer::Builtin(name) => Origin::Builtin { name: (*name).to_string() },
            Layer::Default => Origin::Default,
        };
        return Pick::Found(Chosen {
            value: value.clone(),
            path: path.to_string(),
            origin,
            span: (*layer == Layer::File).then(|| span.clone()),
        });
    }
    Pick::Absent
}
