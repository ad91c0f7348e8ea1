//! How a transaction failed, before its session classifies it.

use crate::connection::RequestError;
use crate::error::CommitState;

/// An error on the way to an [`super::Outcome`], with what was known of the commit.
pub(super) struct Failure {
    pub error: RequestError,
    pub commit: CommitState,
}
