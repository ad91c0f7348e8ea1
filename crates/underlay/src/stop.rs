//! Why a command failed: a message for a person and an exit code for a program.
//!
//! Causes are found and worded in the crates where they happen; this type only carries them to
//! `main` with the right exit code.

use crate::exit_code;
use std::error::Error;
use std::fmt;

/// An expected end: something the user, the host or the database caused.
#[derive(Clone, Debug)]
pub struct Stop {
    code: u8,
    message: String,
    hint: Option<String>,
    is_denial: bool,
}

impl Stop {
    fn new(code: u8, message: impl Into<String>) -> Stop {
        Stop { code, message: message.into(), hint: None, is_denial: false }
    }

    /// Bad input; nothing was touched.
    pub fn bad_input(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::BAD_INPUT, message)
    }

    /// The host lacks something.
    pub fn host(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::HOST, message)
    }

    /// A run ended early.
    pub fn run_failed(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::RUN_FAILED, message)
    }

    /// A database refused something that its user has no right to; the caller that knows the command adds which rights to
    /// grant.
    pub fn denied(message: impl Into<String>) -> Stop {
        Stop { is_denial: true, ..Stop::run_failed(message) }
    }

    /// A consistency check found a violation.
    pub fn check_violated(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::CHECK_VIOLATED, message)
    }

    /// The load was not delivered.
    pub fn load_not_delivered(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::LOAD_NOT_DELIVERED, message)
    }

    /// Two things cannot be compared.
    pub fn not_comparable(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::NOT_COMPARABLE, message)
    }

    /// A gate refuses: worse than allowed.
    pub fn worse(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::WORSE, message)
    }

    /// A gate cannot tell.
    pub fn undecided(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::UNDECIDED, message)
    }

    /// No design meets a target.
    pub fn target_missed(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::TARGET_MISSED, message)
    }

    /// Something could not be removed.
    pub fn left_behind(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::LEFT_BEHIND, message)
    }

    /// Stopped by the user.
    pub fn interrupted(message: impl Into<String>) -> Stop {
        Stop::new(exit_code::INTERRUPTED, message)
    }

    /// Everything was already said.
    pub fn silent(code: u8) -> Stop {
        Stop::new(code, String::new())
    }

    /// An unforeseen error, with its causes.
    pub fn internal(error: &(dyn Error + 'static)) -> Stop {
        Stop::new(exit_code::INTERNAL, chain(error))
            .with_hint("this is a bug in Underlay: please report it with the lines above")
    }

    /// Adds what can be done about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Stop {
        self.hint = Some(hint.into());
        self
    }

    /// Whether a database refused something that its user has no right to.
    pub fn is_denial(&self) -> bool {
        self.is_denial
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl Error for Stop {}

/// An error and its causes in one line, each said once.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Stop, chain};
    use std::io;

    #[test]
    fn a_chain_says_each_cause_once() {
        let inner = io::Error::other("disk gone");
        assert_eq!(chain(&inner), "disk gone");
    }

    #[test]
    fn the_hint_follows_the_message() {
        let stop = Stop::host("no loop devices").with_hint("run as root");
        assert_eq!(stop.to_string(), "no loop devices\n  hint: run as root");
        assert_eq!(stop.code(), 3);
    }
}
