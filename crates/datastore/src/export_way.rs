//! How requests of the kernel reach the server: part of the evidence, because one way costs the host half of what the other does.

use serde::{Deserialize, Serialize};

/// Through what the kernel's file system requests come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportWay {
    /// There is no mount; volumes are reached otherwise.
    #[default]
    None,
    /// One system call per request and one per answer.
    Fuse,
    /// FUSE over io_uring: shared memory, one system call for many. Where Linux 6.14 or later has it switched on
    /// (`/sys/module/fuse/parameters/enable_uring`).
    FuseIoUring,
}

impl ExportWay {
    /// As records and messages name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ExportWay::None => "none",
            ExportWay::Fuse => "fuse",
            ExportWay::FuseIoUring => "fuse-io-uring",
        }
    }
}
