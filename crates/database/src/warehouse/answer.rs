//! The rows of a result, as text. How they are asked for is in the file of each engine.

/// Rows of a result; no value is `None`.
pub(crate) type Rows = Vec<Vec<Option<String>>>;
