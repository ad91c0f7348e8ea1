//! The sink into which reader and resolver put problems while they keep going.

use std::ops::Range;

use crate::problem::Draft;

/// Problems found so far, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    drafts: Vec<Draft>,
}

impl Report {
    /// Adds a problem with bytes of the study file.
    pub fn at(
        &mut self,
        span: &Range<usize>,
        code: &'static str,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Some(span.clone()), code, message, label, help);
    }

    /// Adds a problem; without a span it belongs to the command line, the host or a built-in.
    pub fn add(
        &mut self,
        span: Option<Range<usize>>,
        code: &'static str,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        let (message, label, help) = (message.into(), label.into(), help.into());
        // The same mistake seen from two designs is one problem.
        if !self.drafts.iter().any(|draft| draft.message == message && draft.span == span) {
            self.drafts.push(Draft { code, message, span, label, help });
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Keeps only the problems for which `keep` holds.
    pub fn retain(&mut self, keep: impl FnMut(&Draft) -> bool) {
        self.drafts.retain(keep);
    }

    /// Takes over what `other` found and this does not know yet.
    pub fn absorb(&mut self, other: Report) {
        for Draft { code, message, span, label, help } in other.drafts {
            self.add(span, code, message, label, help);
        }
    }

    /// Takes over everything that `other` found.
    pub fn append(&mut self, other: Report) {
        self.drafts.extend(other.drafts);
    }

    /// Everything found.
    pub fn into_drafts(self) -> Vec<Draft> {
        self.drafts
    }
}
