//! The classes of a verdict and of the time budget, for readers.

use crate::analysis::TimeClass;

/// A class for readers.
pub(super) fn title(class: &str) -> String {
    match class {
        "data-read" => "data reads".to_string(),
        "data-write" => "data writes".to_string(),
        "log" => "the log".to_string(),
        "log-behind-data" => "the log behind data writes".to_string(),
        "cpu-limit" => "the server's CPU limit".to_string(),
        "host-io" => "this host".to_string(),
        "lock" => "locks".to_string(),
        "latch" => "latches".to_string(),
        "cpu" => "CPU".to_string(),
        other => other.replace('-', " "),
    }
}

/// A class of the time budget for readers.
pub(crate) fn class_title(class: TimeClass) -> &'static str {
    match class {
        TimeClass::Driver => "in the load generator",
        TimeClass::DriverLimit => "stopped by the load generator's CPU limit",
        TimeClass::Client => "at the client",
        TimeClass::ClientNetwork => "on the client's network",
        TimeClass::Cpu => "running on a processor",
        TimeClass::RunQueue => "waiting for a processor",
        TimeClass::CpuLimit => "stopped by the server's CPU limit",
        TimeClass::HostIo => "in I/O of this host beyond the modelled device's",
        TimeClass::Log => "waiting for the log",
        TimeClass::LogBehindData => "waiting for the log behind data writes",
        TimeClass::DataRead => "waiting for data reads",
        TimeClass::DataWrite => "waiting for data writes",
        TimeClass::Lock => "waiting for locks",
        TimeClass::Latch => "waiting for latches",
        TimeClass::Other => "waiting for something else",
    }
}
