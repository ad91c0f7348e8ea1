//! All problems of a request at once, so that the user does not find them one by one.

use crate::stop::Stop;

/// Problems of what was asked, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Complaints {
    found: Vec<(String, Option<String>)>,
}

impl Complaints {
    /// Notes a problem; one that is known already is not noted again.
    pub fn add(&mut self, message: impl Into<String>) {
        self.note(message.into(), None);
    }

    /// Notes a problem, and what can be done about it.
    pub fn add_with_hint(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.note(message.into(), Some(hint.into()));
    }

    fn note(&mut self, message: String, hint: Option<String>) {
        if self.found.iter().all(|(known, _)| *known != message) {
            self.found.push((message, hint));
        }
    }

    /// Refuses what was asked if there is any problem.
    pub fn settle(self) -> Result<(), Stop> {
        match &self.found[..] {
            [] => Ok(()),
            [(message, None)] => Err(Stop::bad_input(message)),
            [(message, Some(hint))] => Err(Stop::bad_input(message).with_hint(hint)),
            several => {
                let mut text = format!("{} problems", several.len());
                for (message, hint) in several {
                    text.push_str(&format!("\n  {message}"));
                    if let Some(hint) = hint {
                        text.push_str(&format!("\n    hint: {hint}"));
                    }
                }
                Err(Stop::bad_input(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Complaints;

    #[test]
    fn all_problems_are_said_each_once() {
        assert!(Complaints::default().settle().is_ok());
        let mut complaints = Complaints::default();
        complaints.add_with_hint("no", "yes");
        complaints.add("no");
        let one = complaints.settle().expect_err("a problem").to_string();
        assert_eq!(one, "no\n  hint: yes");
        let mut complaints = Complaints::default();
        complaints.add("first");
        complaints.add_with_hint("second", "do");
        let two = complaints.settle().expect_err("problems").to_string();
        assert_eq!(two, "2 problems\n  first\n  second\n    hint: do");
    }
}
