//! The warehouse's SQL.

pub(super) mod queries;
