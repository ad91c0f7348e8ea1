//! Names that become part of file names and of series names.

use super::chosen::Chosen;
use super::resolver::Resolver;
use crate::limits::NAME_LENGTH_MAX;

/// Reports a name that is not safe in a file name.
pub(super) fn check(resolver: &mut Resolver<'_>, name: &Chosen<String>) {
    let text = &name.value;
    let Some(reason) = unsafe_because(text) else { return };
    let proposal = proposed(text);
    let help = match proposal.is_empty() {
        true => "use lower case letters, digits, `-`, `_` and `.`".to_string(),
        false => format!("use lower case letters, digits, `-`, `_` and `.`: \"{proposal}\""),
    };
    name.problem(
        &mut resolver.report,
        "unsafe-name",
        format!("{} cannot be used in file names", name.called()),
        reason,
        help,
    );
}

/// Why a name is not safe in a file name.
pub(crate) fn unsafe_because(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if name.is_empty() {
        return Some("the name is empty".to_string());
    }
    if name.len() > NAME_LENGTH_MAX {
        return Some(format!("longer than {NAME_LENGTH_MAX} characters"));
    }
    if let Some(wrong) = name.chars().find(|c| !allowed(*c)) {
        return Some(format!("contains {wrong:?}"));
    }
    let first = name.chars().next()?;
    (!first.is_ascii_alphanumeric()).then(|| format!("starts with {first:?}"))
}

/// The nearest safe name.
pub(crate) fn proposed(name: &str) -> String {
    let replaced: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .collect();
    let trimmed = replaced.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    trimmed.chars().take(NAME_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{proposed, unsafe_because};

    #[test]
    fn safe_names_pass_and_proposals_are_safe() {
        for name in ["a", "kingston-k2", "5200eco", "x_1.y"] {
            assert_eq!(unsafe_because(name), None, "{name}");
        }
        for name in ["", "A", "a b", "a/b", "..", "-a", "\u{e9}", &"x".repeat(65)] {
            assert!(unsafe_because(name).is_some(), "{name}");
            let proposal = proposed(name);
            assert!(proposal.is_empty() || unsafe_because(&proposal).is_none(), "{proposal}");
        }
        assert_eq!(proposed("My Study!"), "my-study");
    }
}
