//! The specs of these tests, their rows, and their servers' processes.

use std::fs;

use underlay_database::managed::{Install, Listen};
use underlay_database::postgres::ServerSpec;
use underlay_testbed::Bed;

/// The spec of a server that is named after `run`, with access over TCP too.
pub fn spec(bed: &Bed, run: &str, pairs: &[(&str, &str)]) -> ServerSpec {
    let Install::Postgres(install) = bed.install.clone() else { panic!("{:?}", bed.install) };
    ServerSpec { listen: Listen::Loopback, ..bed.spec(install, run, pairs) }
}

pub const MAKE_ROWS: &str = "CREATE TABLE t AS SELECT g AS id, repeat(md5(g::text), 8) AS text \
     FROM generate_series(1, 20000) g; CREATE INDEX ON t (id)";
pub const SUM: &str =
    "SELECT count(*) || ' ' || sum(id) || ' ' || md5(string_agg(text, ',' ORDER BY id)) FROM t";

/// Gone, or a zombie that the first process of the system has not collected yet.
pub fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

pub fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_ascii_whitespace().map(|child| child.parse().unwrap()).collect()
}
