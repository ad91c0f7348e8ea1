//! How a finding is made: about the whole record, or about one of its runs.

use crate::analysis::{Finding, FindingSeverity};
use crate::digest::Digest;

/// A finding about the whole record.
pub(super) fn finding(severity: FindingSeverity, code: &str, text: String) -> Finding {
    Finding { severity, code: code.to_string(), text, design: None, run: None, users: None }
}

/// The same that the reader must know before the numbers are used.
pub(super) fn warning(code: &str, text: String) -> Finding {
    finding(FindingSeverity::Warning, code, text)
}

/// A finding about one run.
pub(super) fn of(finding: Finding, run: usize, digest: &Digest) -> Finding {
    let design = digest.runs.get(run).map(|run| run.design as usize);
    Finding { run: Some(run), design, ..finding }
}
