//! The answer to the study's question, and what the designs are.
//!
//! What it deliberately does not do: word the answer (`headline`).

use super::colour::Style;
use super::page::Page;
use crate::analysis::{Analysis, Answer, Confidence};

/// The answer.
pub(super) fn answer(page: &mut Page, analysis: &Analysis) {
    let verdict = &analysis.verdict;
    let style = match verdict.answer {
        Answer::Winner | Answer::Equivalent => Style::Good,
        Answer::Invalid | Answer::NotComparable | Answer::HostLimited => Style::Bad,
        _ => Style::Bold,
    };
    page.styled(style, &verdict.headline, "", "");
    for sentence in &verdict.support {
        page.paragraph(sentence);
    }
    if verdict.confidence != Confidence::None {
        let word = verdict.confidence.as_str();
        let reasons = verdict.confidence_reasons.join("; ");
        page.paragraph(&format!("Confidence: {word} ({reasons})."));
    }
}

/// What each design is: sentences and tables use its title only.
pub(super) fn designs(page: &mut Page, analysis: &Analysis) {
    // The variants of a design are one design.
    let is_first = |position: usize| {
        let of = &analysis.designs[position].of;
        analysis.designs[..position].iter().all(|other| other.of != *of)
    };
    let described = analysis
        .designs
        .iter()
        .enumerate()
        .filter(|(position, design)| is_first(*position) && !design.description.is_empty())
        .map(|(_, design)| design);
    for (position, design) in described.enumerate() {
        if position == 0 {
            page.blank();
            page.styled(Style::Faint, "designs", "", "");
        }
        let text = format!("{}: {}", design.of_title, design.description);
        page.wrapped(&text, "  ", "    ");
    }
}
