//! What the planner knows about PostgreSQL's settings: which ones belong to Underlay, which ones are
//! sizes, and how PostgreSQL reads sizes, times and booleans.
//!
//! It deliberately knows no list of all settings: that list differs between versions and is asked from
//! the server (see [`crate::InstalledServer`]).

use underlay_core::{Bytes, Nanos};

use crate::dialect::{Dialect, Doubtful, ScaledSetting};

/// Settings that Underlay sets itself, with what decides them instead.
const OWNED: [(&str, &str); 20] = [
    ("data_directory", "the volume `data`"),
    ("config_file", "Underlay writes the configuration file"),
    ("hba_file", "Underlay writes the access rules"),
    ("ident_file", "Underlay writes the access rules"),
    ("external_pid_file", "Underlay follows the server by its process"),
    ("listen_addresses", "the server listens on a socket of its own"),
    ("port", "a free port is chosen"),
    ("unix_socket_directories", "the server listens on a socket of its own"),
    ("unix_socket_permissions", "the server listens on a socket of its own"),
    ("unix_socket_group", "the server listens on a socket of its own"),
    ("logging_collector", "the server's log is kept with the record"),
    ("log_destination", "the server's log is kept with the record"),
    ("log_directory", "the server's log is kept with the record"),
    ("log_filename", "the server's log is kept with the record"),
    ("temp_tablespaces", "the volume `temp`"),
    ("restore_command", "every run starts from a restored template"),
    ("recovery_target", "every run starts from a restored template"),
    ("primary_conninfo", "every run starts from a restored template"),
    ("include", "settings belong in the study, which the record contains"),
    ("include_dir", "settings belong in the study, which the record contains"),
];

/// Size settings with the number of bytes that a bare number counts.
const SIZES: [(&str, u64); 12] = [
    ("shared_buffers", 8192),
    ("effective_cache_size", 8192),
    ("temp_buffers", 8192),
    ("wal_buffers", 8192),
    ("work_mem", 1024),
    ("maintenance_work_mem", 1024),
    ("autovacuum_work_mem", 1024),
    ("logical_decoding_work_mem", 1024),
    ("max_stack_depth", 1024),
    ("max_wal_size", 1 << 20),
    ("min_wal_size", 1 << 20),
    ("wal_keep_size", 1 << 20),
];

/// The size settings that similarity scaling divides.
const SCALED: [ScaledSetting; 5] = [
    ScaledSetting {
        name: "shared_buffers",
        least: Bytes::from_mib(1),
        default: SHARED_BUFFERS_DEFAULT,
    },
    ScaledSetting {
        name: "effective_cache_size",
        least: Bytes::from_mib(1),
        default: Bytes::from_gib(4),
    },
    ScaledSetting {
        name: "maintenance_work_mem",
        least: Bytes::from_mib(1),
        default: Bytes::from_mib(64),
    },
    ScaledSetting {
        name: "max_wal_size",
        least: Bytes::from_mib(64),
        default: MAX_WAL_SIZE_DEFAULT,
    },
    ScaledSetting {
        name: "min_wal_size",
        least: Bytes::from_mib(32),
        default: Bytes::from_mib(80),
    },
];

/// What the server uses when the study says nothing: `shared_buffers`.
const SHARED_BUFFERS_DEFAULT: Bytes = Bytes::from_mib(128);
/// What the server uses when the study says nothing: `max_wal_size`.
const MAX_WAL_SIZE_DEFAULT: Bytes = Bytes::from_gib(1);
/// What the server uses when the study says nothing: `max_connections`.
const MAX_CONNECTIONS_DEFAULT: u32 = 100;
/// What the server uses when the study says nothing: `checkpoint_timeout`.
const CHECKPOINT_TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(300);
/// Connections that are not for users: 3 that the server reserves for its administrator by default,
/// and 7 of Underlay (statistics, wait events, checks and one more of each in reserve).
const RESERVED_CONNECTIONS: u32 = 10;

/// PostgreSQL's.
pub(crate) static DIALECT: Dialect = Dialect {
    title: "PostgreSQL",
    majors: 13..=18,
    install: "install the server (Debian, Ubuntu: apt install postgresql)",
    programs: "initdb and postgres",
    owned: &OWNED,
    sizes: &SIZES,
    scaled: &SCALED,
    buffers: ("shared_buffers", SHARED_BUFFERS_DEFAULT),
    log: ("max_wal_size", MAX_WAL_SIZE_DEFAULT),
    log_may_grow: true,
    connections: MAX_CONNECTIONS_DEFAULT,
    reserved_connections: RESERVED_CONNECTIONS,
    checkpoint_timeout: Some(("checkpoint_timeout", CHECKPOINT_TIMEOUT_DEFAULT)),
    size,
    size_text,
    size_units: "PostgreSQL knows B, kB, MB, GB and TB, all powers of 1024",
    size_example: "write for example \"96MB\"",
    doubtful: &DOUBTFUL,
};

const DOUBTFUL: [Doubtful; 4] = [
    Doubtful {
        name: "fsync",
        is: is_off,
        words: "is off",
        code: "fsync-off",
        consequence: "no write of the server is durable, and it hardly ever waits for the storage",
    },
    Doubtful {
        name: "full_page_writes",
        is: is_off,
        words: "is off",
        code: "full-page-writes-off",
        consequence: "a torn page after a crash cannot be repaired, and less log is written than in production",
    },
    Doubtful {
        name: "synchronous_commit",
        is: is_off,
        words: "is off",
        code: "synchronous-commit-off",
        consequence: "commits do not wait for the log device",
    },
    Doubtful {
        name: "autovacuum",
        is: is_off,
        words: "is off",
        code: "autovacuum-off",
        consequence: "dead rows pile up, and background writes are missing",
    },
];

/// A size as PostgreSQL reads it, `bare` bytes per unit when there is no unit.
///
/// PostgreSQL knows B, kB, MB, GB and TB, all powers of 1024, and no other spelling.
fn size(text: &str, bare: u64) -> Option<Bytes> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => bare,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    scaled(number, factor).map(Bytes)
}

/// A size in the largest unit of PostgreSQL that needs no fraction.
fn size_text(size: Bytes) -> String {
    let units = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    units
        .iter()
        .find(|(_, shift)| size.0 > 0 && size.0.trailing_zeros() >= *shift)
        .map(|(unit, shift)| format!("{}{unit}", size.0 >> shift))
        .unwrap_or_else(|| format!("{}B", size.0))
}

/// A time as PostgreSQL reads it, `bare` nanoseconds per unit when there is no unit.
pub(crate) fn time(text: &str, bare: u64) -> Option<Nanos> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => bare,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    scaled(number, factor).map(Nanos)
}

/// Whether the text is one of PostgreSQL's words for no.
pub(crate) fn is_off(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    matches!(text.as_str(), "off" | "of" | "false" | "fals" | "fal" | "fa" | "f" | "no" | "n" | "0")
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

fn scaled(number: f64, factor: u64) -> Option<u64> {
    let value = (number * factor as f64).round();
    (value < 1e18).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::{is_off, size, size_text, time};
    use underlay_core::{Bytes, Nanos};

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        assert_eq!(size("96MB", 8192), Some(Bytes::from_mib(96)));
        assert_eq!(size("16384", 8192), Some(Bytes::from_mib(128)));
        assert_eq!(size(" 1.5 GB ", 8192), Some(Bytes::from_mib(1536)));
        for wrong in ["96MiB", "96mb", "96M", "MB", "", "-1", "1e3MB"] {
            assert_eq!(size(wrong, 8192), None, "{wrong}");
        }
    }

    #[test]
    fn size_texts_are_read_back() {
        for bytes in [1, 8192, 96 << 20, 3 << 30, 5 << 40, (1 << 20) + 1] {
            let text = size_text(Bytes(bytes));
            assert_eq!(size(&text, 1), Some(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn times_and_booleans() {
        assert_eq!(time("5min", 1), Some(Nanos::from_secs(300)));
        assert_eq!(time("30", 1_000_000_000), Some(Nanos::from_secs(30)));
        assert_eq!(time("30sec", 1), None);
        assert!(is_off("OFF") && is_off("false") && is_off("0"));
        assert!(!is_off("on") && !is_off("") && !is_off("o"));
    }
}
