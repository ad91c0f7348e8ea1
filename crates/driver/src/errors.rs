//! Counts of errors by class, and the first message of each class as an explanation. Pure.

use underlay_core::Nanos;
use underlay_database::{ErrorClass, SessionError};

const CLASSES: usize = ErrorClass::ALL.len();

/// Errors by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounts(pub(crate) [u64; CLASSES]);

impl ErrorCounts {
    /// Counts one error.
    pub fn count(&mut self, class: ErrorClass) {
        self.0[class.index()] += 1;
    }

    /// Number of errors of one class.
    pub fn of(&self, class: ErrorClass) -> u64 {
        self.0[class.index()]
    }

    /// Number of errors of all classes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each class with its number of errors.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorClass, u64)> + '_ {
        ErrorClass::ALL.into_iter().zip(self.0)
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &ErrorCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// One error as the database put it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// When it was noticed.
    pub at: Nanos,
    /// Its class.
    pub class: ErrorClass,
    /// The engine's code, if it sent one.
    pub sqlstate: Option<String>,
    /// The message.
    pub message: String,
    /// Whether the user has no right to what was tried.
    pub is_denial: bool,
}

/// The earliest error of each class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorSamples(pub(crate) [Option<ErrorSample>; CLASSES]);

impl ErrorSamples {
    /// Keeps `error` if it is the first of its class.
    pub fn note(&mut self, at: Nanos, error: &SessionError) {
        self.0[error.class.index()].get_or_insert_with(|| ErrorSample {
            at,
            class: error.class,
            sqlstate: error.sqlstate.clone(),
            message: error.message.clone(),
            is_denial: error.is_denial(),
        });
    }

    /// The samples, in the order of [`ErrorClass::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = &ErrorSample> {
        self.0.iter().flatten()
    }

    /// Keeps the earlier of both in each class.
    pub fn merge(&mut self, other: ErrorSamples) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            let earlier = match (&mine, &theirs) {
                (Some(mine), Some(theirs)) => theirs.at < mine.at,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if earlier {
                *mine = theirs;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorCounts, ErrorSamples};
    use underlay_core::Nanos;
    use underlay_database::{ErrorClass, SessionError};

    fn error(message: &str) -> SessionError {
        SessionError {
            class: ErrorClass::Io,
            sqlstate: Some("53100".to_string()),
            message: message.to_string(),
            commit_unknown: false,
        }
    }

    #[test]
    fn counts_add_up() {
        let mut counts = ErrorCounts::default();
        ErrorClass::ALL.into_iter().for_each(|class| counts.count(class));
        let mut sum = counts;
        sum.merge(&counts);
        assert_eq!((sum.total(), sum.of(ErrorClass::Timeout)), (16, 2));
    }

    #[test]
    fn the_earliest_message_of_a_class_is_kept() {
        let (mut early, mut late) = (ErrorSamples::default(), ErrorSamples::default());
        late.note(Nanos(2), &error("late"));
        early.note(Nanos(1), &error("early"));
        early.note(Nanos(3), &error("later"));
        late.merge(early);
        let kept: Vec<&str> = late.iter().map(|sample| sample.message.as_str()).collect();
        assert_eq!(kept, ["early"]);
    }
}
