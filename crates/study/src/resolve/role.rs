//! What of a study is resolved: all of it, one of its databases, or all of it around them. No database is resolved here.

use super::volume_choice::VolumeChoice;
use crate::plan::DatabasePlan;

/// What of a study is resolved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Role<'a> {
    /// All of it: it names no databases.
    #[default]
    Only,
    /// One of its databases.
    Member,
    /// All of it around these databases.
    Whole(&'a [Member]),
}

/// A database that was resolved.
#[derive(Debug)]
pub(super) struct Member {
    /// Its volumes in each design, under their names in the datastore.
    pub volumes: Vec<(String, Vec<VolumeChoice>)>,
    /// `None` where it has a problem.
    pub plan: Option<DatabasePlan>,
}
