//! What is said of a violated rule of a profile.
//!
//! What is not here: the rules.

/// One violated rule of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}; {rule}")]
pub struct ProfileProblem {
    /// The field, as a dotted path: `medium.units`.
    pub field: &'static str,
    /// What it holds.
    pub value: String,
    /// What it must hold.
    pub rule: &'static str,
}
