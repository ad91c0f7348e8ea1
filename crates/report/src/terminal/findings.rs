//! What the reader must know about the numbers.
//!
//! What it deliberately does not do: sort them.

use super::colour::Style;
use super::page::Page;
use crate::analysis::{Finding, FindingSeverity};
use crate::wording::count;

/// Findings that are only worth knowing are counted, not printed, beyond this many.
const MOST_INFORMATION: usize = 4;

/// The findings, gravest first as they come.
pub(crate) fn findings(page: &mut Page, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.blank();
    let mut information = 0;
    for finding in findings {
        let (style, word) = match finding.severity {
            FindingSeverity::Invalid => (Style::Bad, "invalid: "),
            FindingSeverity::Warning => (Style::Doubtful, "warning: "),
            FindingSeverity::Information => {
                information += 1;
                (Style::Faint, "note: ")
            }
        };
        if information <= MOST_INFORMATION {
            page.styled(style, &finding.text, word, "  ");
        }
    }
    if information > MOST_INFORMATION {
        let more = format!(
            "and {} in the report",
            count((information - MOST_INFORMATION) as u64, "more note")
        );
        page.styled(Style::Faint, &more, "", "");
    }
}
