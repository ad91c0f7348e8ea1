//! The configuration of a managed server: what Underlay sets, what the study sets, what is in force.

use std::fmt;

/// A setting of the study that the server does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// Its name.
    pub name: String,
    /// As the study wrote it.
    pub value: String,
    /// Why not.
    pub reason: String,
}

/// A setting as the running server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingInForce {
    /// Its name.
    pub name: String,
    /// As `SHOW` prints it.
    pub value: String,
    /// `configuration file`, `command line`, `override`, ... as `pg_settings.source`.
    pub source: String,
}

impl fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} = {}`: {}", self.name, self.value, self.reason)
    }
}
