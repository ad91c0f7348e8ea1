//! What `pg_controldata` says about a stopped cluster.

use std::path::Path;

use underlay_host::run_program;

use crate::managed::ServerError;
use crate::postgres::install::Install;

/// The facts that copies depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlData {
    /// `shut down`, `in production`, ...
    pub state: String,
    /// The WAL segment in which the next start begins to read.
    pub redo_segment: String,
    /// The size of WAL segments.
    pub segment_bytes: u64,
}

impl ControlData {
    /// Of the cluster in this directory.
    pub fn read(install: &Install, data: &Path) -> Result<ControlData, ServerError> {
        let program = install.program("pg_controldata");
        let text = run_program(program, &["-D".as_ref(), data.as_os_str()], None)?;
        ControlData::parse(&text).ok_or(ServerError::Unparsable { program: "pg_controldata", text })
    }

    fn parse(text: &str) -> Option<ControlData> {
        let value = |key: &str| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name == key).then(|| value.trim().to_string())
            })
        };
        Some(ControlData {
            state: value("Database cluster state")?,
            redo_segment: value("Latest checkpoint's REDO WAL file")?,
            segment_bytes: value("Bytes per WAL segment")?.parse().ok()?,
        })
    }

    /// Whether the cluster needs no recovery.
    pub fn is_clean(&self) -> bool {
        self.state == "shut down"
    }

    /// The names of the `count` segments after the one that the next start reads first.
    pub fn following_segments(&self, count: u64) -> Vec<String> {
        let mut names = Vec::new();
        let mut last = self.redo_segment.clone();
        for _ in 0..count {
            let Some(next) = segment_after(&last, self.segment_bytes) else { break };
            names.push(next.clone());
            last = next;
        }
        names
    }
}

/// Segment names are three hexadecimal numbers of eight digits: time line, log, segment in the log; a
/// log has 4 GiB.
fn segment_after(name: &str, segment_bytes: u64) -> Option<String> {
    let part = |range: std::ops::Range<usize>| u64::from_str_radix(name.get(range)?, 16).ok();
    let (time_line, log, segment) = (part(0..8)?, part(8..16)?, part(16..24)?);
    let per_log = (1u64 << 32).checked_div(segment_bytes)?;
    let (log, segment) = if segment + 1 >= per_log { (log + 1, 0) } else { (log, segment + 1) };
    Some(format!("{time_line:08X}{log:08X}{segment:08X}"))
}

#[cfg(test)]
mod tests {
    use super::{ControlData, segment_after};

    #[test]
    fn reads_the_facts() {
        let text = "pg_control version number:            1300\n\
            Database cluster state:               shut down\n\
            Latest checkpoint's REDO WAL file:    00000001000000000000000A\n\
            Bytes per WAL segment:                16777216\n";
        let data = ControlData::parse(text).unwrap();
        assert!(data.is_clean());
        assert_eq!(
            data.following_segments(2),
            ["00000001000000000000000B", "00000001000000000000000C"]
        );
        assert_eq!(ControlData::parse("Database cluster state: in production\n"), None);
    }

    #[test]
    fn segments_carry_over() {
        let after = |name: &str| segment_after(name, 16 << 20).unwrap();
        assert_eq!(after("0000000100000000000000FF"), "000000010000000100000000");
        assert_eq!(after("000000020000000000000009"), "00000002000000000000000A");
        assert_eq!(segment_after("short", 16 << 20), None);
        assert_eq!(
            segment_after("000000010000000000000003", 1 << 30).unwrap(),
            "000000010000000100000000"
        );
    }
}
