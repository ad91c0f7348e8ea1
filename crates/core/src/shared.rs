//! Choices that several layers know by the same words: a study names them, a datastore, a database or a record follows.
//!
//! Only values and their names; the code that uses a choice decides what follows from it.

use crate::words;

words! {
    /// Which acknowledged writes survive a power cut of an emulated device.
    pub enum Durability: "durability" {
        /// As each device's profile says: all of them when its write buffer is protected or absent,
        /// otherwise those that a later flush covered or that had drained.
        Profile = "profile",
        /// Only those covered by a later flush, or drained, whatever the profile says.
        Flushed = "flushed",
        /// All of them.
        Acknowledged = "acknowledged",
        /// Those that had drained: flushes are acknowledged at once and do nothing. What a lying
        /// drive does to a database.
        Lying = "lying",
    }
}

words! {
    /// The file systems that a volume can be formatted with.
    pub enum FileSystem: "file system" {
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
    }
}

words! {
    /// How the gaps between the arrivals of an open loop are distributed.
    pub enum Arrivals: "arrival process" {
        /// Independent exponential gaps: users who do not know of each other.
        Poisson = "poisson",
        /// Equal gaps.
        Uniform = "uniform",
    }
}

words! {
    /// How a transaction of TPC-C reaches the server.
    pub enum CallMode: "mode" {
        /// One call of a server-side function: one round trip, commit included.
        Procedures = "procedures",
        /// Each SQL statement by itself, with an explicit BEGIN and COMMIT.
        Statements = "statements",
    }
}

words! {
    /// What an I/O of a database means to its sessions. `underlay_model::io_class` says which request is of which class.
    pub enum IoClass: "class of I/O" {
        /// Writes and flushes of the log: a commit waits for them.
        Log = "log",
        /// Reads that a session waits for.
        Read = "read",
        /// Everything that no session waits for: pages written back, discards, backups.
        DataWrite = "data-write",
    }
}

words! {
    /// What a run can be made to wait longer for, one at a time, to see whether it limits throughput.
    pub enum Resource: "resource" {
        /// Writes and flushes of the log.
        Log = "log",
        /// Reads.
        Read = "data-read",
        /// Writes and flushes of everything else.
        DataWrite = "data-write",
        /// Messages between the hosts of a cluster.
        Network = "network",
        /// The processors that the database server may use.
        Cpu = "cpu",
        /// The processor time that the load generator needs per transaction.
        Client = "client",
        /// The connections that users share.
        Connections = "connections",
    }
}

/// What a consistency check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The condition holds.
    Ok,
    /// The condition is violated.
    Violated {
        /// How many rows violate it.
        rows: u64,
        /// One of them, in words.
        example: String,
    },
    /// The check itself could not be made.
    Failed {
        /// Why not.
        error: String,
    },
}

impl CheckOutcome {
    /// The word used in files and pages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            CheckOutcome::Ok => "ok",
            CheckOutcome::Violated { .. } => "violated",
            CheckOutcome::Failed { .. } => "failed",
        }
    }
}
