//! The closed sets of words in a record: statuses, kinds, severities.
//!
//! They are stored as text, so that the file can be read with any SQLite tool. Reading fails on a word that is
//! not in its set.

/// Declares an enum whose variants are stored as words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The word used in files and pages.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The value named by `as_str`, if any.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Status of the execution of a study.
    ExecutionStatus {
        /// Being written, or its writer was killed.
        Running = "running",
        /// Every run of the plan finished.
        Finished = "finished",
        /// Ended by an error that concerns all runs.
        Failed = "failed",
        /// Ended by the user.
        Cancelled = "cancelled",
    }
}

words! {
    /// Status of one run.
    RunStatus {
        /// Being written.
        Running = "running",
        /// All its phases finished.
        Finished = "finished",
        /// Ended by an error; its reason names the cause.
        Failed = "failed",
        /// Ended by the user or by the death of the writer.
        Interrupted = "interrupted",
    }
}

words! {
    /// What a phase of a run does.
    PhaseKind {
        /// Creating volumes, file systems and the server.
        Prepare = "prepare",
        /// Loading the database that the template is taken from.
        Load = "load",
        /// Restoring the template onto the volumes.
        Restore = "restore",
        /// Starting the server.
        Start = "start",
        /// Verifying consistency, before or after the load.
        Check = "check",
        /// Load that fills caches; not measured.
        WarmUp = "warm-up",
        /// Users being added; not measured.
        RampUp = "ramp-up",
        /// Waiting for the rate to settle after a ramp; not measured.
        Settle = "settle",
        /// Offering rate after rate, in search of the highest that meets a latency target.
        Search = "search",
        /// The measured window of one rung of the ladder.
        Measure = "measure",
        /// The load of a rung without the delays of the modelled storage: what this host can do at most. No measurement of a design.
        NullTwin = "null-twin",
        /// Resources being slowed and released one after another, to find which one limits; not measured.
        CausalCheck = "causal-check",
        /// No users any more: what goes on by itself is sampled; not measured.
        CoolDown = "cool-down",
        /// A fault and the recovery from it.
        Fault = "fault",
        /// Stopping load and server.
        Stop = "stop",
    }
}

words! {
    /// Status of a phase.
    PhaseStatus {
        /// Being executed.
        Running = "running",
        /// Done.
        Finished = "finished",
        /// Ended by an error.
        Failed = "failed",
        /// Ended by the user or by the death of the writer.
        Interrupted = "interrupted",
        /// Left out on purpose.
        Skipped = "skipped",
    }
}

words! {
    /// When a check ran.
    CheckMoment {
        /// After the restore, before any load.
        Before = "before",
        /// After the load.
        After = "after",
    }
}

words! {
    /// Severity of a finding.
    Severity {
        /// Worth knowing.
        Information = "information",
        /// Measured, but suspicious: belongs on page one.
        Warning = "warning",
        /// The run is no evidence for its question.
        Invalid = "invalid",
    }
}

/// Whether a source could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceStatus {
    /// Everything it declares is there.
    Available,
    /// Part of it is missing, for the reason given.
    Degraded(String),
    /// Nothing can be read, for the reason given.
    Absent(String),
}

impl SourceStatus {
    /// The word used in files and pages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            SourceStatus::Available => "available",
            SourceStatus::Degraded(_) => "degraded",
            SourceStatus::Absent(_) => "absent",
        }
    }

    /// Why it is not available.
    pub fn reason(&self) -> Option<&str> {
        match self {
            SourceStatus::Available => None,
            SourceStatus::Degraded(reason) | SourceStatus::Absent(reason) => Some(reason),
        }
    }

    /// The status with this word and reason, if the word is known.
    pub fn from_word(word: &str, reason: Option<String>) -> Option<SourceStatus> {
        let reason = reason.unwrap_or_default();
        match word {
            "available" => Some(SourceStatus::Available),
            "degraded" => Some(SourceStatus::Degraded(reason)),
            "absent" => Some(SourceStatus::Absent(reason)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PhaseKind, SourceStatus};

    #[test]
    fn words_round_trip() {
        for kind in PhaseKind::ALL {
            assert_eq!(PhaseKind::from_word(kind.as_str()), Some(*kind));
        }
        assert_eq!(PhaseKind::from_word("warmup"), None);
    }

    #[test]
    fn source_status_keeps_its_reason() {
        let status = SourceStatus::Absent("no PSI in this kernel".into());
        let reason = status.reason().map(str::to_string);
        assert_eq!(SourceStatus::from_word(status.as_str(), reason), Some(status));
        assert_eq!(SourceStatus::from_word("gone", None), None);
    }
}
