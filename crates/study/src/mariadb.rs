//! What the planner knows about the settings of MariaDB and MySQL.

use underlay_core::Bytes;

use crate::dialect::{Dialect, Doubtful, ScaledSetting};

/// Settings that Underlay sets itself, with what decides them instead.
const OWNED: [(&str, &str); 16] = [
    ("datadir", "the volume `data`"),
    ("innodb_data_home_dir", "the volume `data`"),
    ("innodb_undo_directory", "the volume `data`"),
    ("tmpdir", "the volume `data`"),
    ("innodb_log_group_home_dir", "the volume `wal`"),
    ("socket", "the server listens on a socket of its own"),
    ("port", "the server listens on a socket of its own"),
    ("bind_address", "the server listens on a socket of its own"),
    ("skip_networking", "the server listens on a socket of its own"),
    ("skip_grant_tables", "only the server's user and root may connect"),
    ("pid_file", "Underlay follows the server by its process"),
    ("log_error", "the server's log is kept with the record"),
    ("init_file", "Underlay writes it"),
    ("local_infile", "the load needs it"),
    ("user", "Underlay decides which user runs the server"),
    ("basedir", "it follows from the server's programs"),
];

const SIZES: [(&str, u64); 8] = [
    ("innodb_buffer_pool_size", 1),
    ("innodb_log_file_size", 1),
    ("innodb_log_buffer_size", 1),
    ("innodb_redo_log_capacity", 1),
    ("innodb_sort_buffer_size", 1),
    ("sort_buffer_size", 1),
    ("join_buffer_size", 1),
    ("tmp_table_size", 1),
];

const BUFFERS: (&str, Bytes) = ("innodb_buffer_pool_size", Bytes::from_mib(128));
const LOG: (&str, Bytes) = ("innodb_log_file_size", Bytes::from_mib(96));
/// MySQL's redo log, whose size MariaDB's setting does not decide.
const MYSQL_LOG: (&str, Bytes) = ("innodb_redo_log_capacity", Bytes::from_mib(100));

const SCALED: [ScaledSetting; 2] = [
    ScaledSetting { name: BUFFERS.0, least: Bytes::from_mib(8), default: BUFFERS.1 },
    ScaledSetting { name: LOG.0, least: Bytes::from_mib(4), default: LOG.1 },
];

const MYSQL_SCALED: [ScaledSetting; 2] = [
    ScaledSetting { name: BUFFERS.0, least: Bytes::from_mib(8), default: BUFFERS.1 },
    ScaledSetting { name: MYSQL_LOG.0, least: Bytes::from_mib(8), default: MYSQL_LOG.1 },
];

const DOUBTFUL: [Doubtful; 3] = [
    Doubtful {
        name: "innodb_flush_log_at_trx_commit",
        is: |value| value.trim() != "1",
        words: "is not 1",
        code: "flush-log-not-at-commit",
        consequence: "commits do not wait for the log device",
    },
    Doubtful {
        name: "innodb_doublewrite",
        is: is_off,
        words: "is off",
        code: "doublewrite-off",
        consequence: "a torn page after a crash cannot be repaired, and half as much is written as in production",
    },
    Doubtful {
        name: "innodb_flush_method",
        is: |value| value.to_ascii_lowercase().contains("nosync") || value.ends_with("NO_FSYNC"),
        words: "does not wait",
        code: "flush-method-without-sync",
        consequence: "no write to the data files is durable",
    },
];

/// MariaDB's.
pub(crate) static MARIADB: Dialect = Dialect {
    title: "MariaDB",
    majors: 10..=12,
    install: "install the server's programs (Debian, Ubuntu: apt install mariadb-server-core)",
    programs: "mariadbd",
    owned: &OWNED,
    sizes: &SIZES,
    scaled: &SCALED,
    buffers: BUFFERS,
    log: LOG,
    log_may_grow: false,
    connections: 151,
    // One for the administrator, which the server adds itself, and Underlay's own as on PostgreSQL.
    reserved_connections: 8,
    checkpoint_timeout: None,
    size,
    size_text,
    size_units: "MariaDB knows bytes and K, M, G and T, all powers of 1024",
    size_example: "write for example \"96M\"",
    doubtful: &DOUBTFUL,
};

/// MySQL's.
pub(crate) static MYSQL: Dialect = Dialect {
    title: "MySQL",
    majors: 8..=9,
    install: "install the server's programs",
    programs: "mysqld",
    scaled: &MYSQL_SCALED,
    log: MYSQL_LOG,
    owned: &OWNED,
    sizes: &SIZES,
    buffers: BUFFERS,
    log_may_grow: false,
    connections: 151,
    reserved_connections: 8,
    checkpoint_timeout: None,
    size,
    size_text,
    size_units: "MySQL knows bytes and K, M, G and T, all powers of 1024",
    size_example: "write for example \"96M\"",
    doubtful: &DOUBTFUL,
};

/// A size as MariaDB reads it, `bare` bytes per unit when there is no unit.
fn size(text: &str, bare: u64) -> Option<Bytes> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let factor = match text[end..].to_ascii_uppercase().as_str() {
        "" => bare,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor).filter(|bytes| *bytes < 1 << 60).map(Bytes)
}

/// A size in the largest unit of MariaDB that needs no fraction.
fn size_text(size: Bytes) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    units
        .iter()
        .find(|(_, shift)| size.0 > 0 && size.0.trailing_zeros() >= *shift)
        .map(|(unit, shift)| format!("{}{unit}", size.0 >> shift))
        .unwrap_or_else(|| size.0.to_string())
}

fn is_off(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "off" | "false" | "0")
}

#[cfg(test)]
mod tests {
    use super::{is_off, size, size_text};
    use underlay_core::Bytes;

    #[test]
    fn sizes_are_read_as_the_server_reads_them() {
        assert_eq!(size("96M", 1), Some(Bytes::from_mib(96)));
        assert_eq!(size("1g", 1), Some(Bytes::from_gib(1)));
        assert_eq!(size(" 134217728 ", 1), Some(Bytes::from_mib(128)));
        for wrong in ["96MB", "96MiB", "1.5G", "M", "", "-1", "99999999999T"] {
            assert_eq!(size(wrong, 1), None, "{wrong}");
        }
        for bytes in [1, 8192, 96 << 20, 3 << 30, 5 << 40, (1 << 20) + 1] {
            assert_eq!(size(&size_text(Bytes(bytes)), 1), Some(Bytes(bytes)));
        }
        assert!(is_off("OFF") && is_off("0") && !is_off("ON"));
    }
}
