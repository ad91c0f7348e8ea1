//! The statistics views, their columns as found in the catalogue, and the SQL that reads them. Pure.
//!
//! Nothing here knows a version: a view that a server does not have yields nothing, a column that it
//! does not have is not asked for, and a new numeric column is read as a counter.

use std::collections::BTreeMap;
use underlay_core::series::SeriesSpec;

/// How the rows of a view become one set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One row, chosen by a condition (possibly empty).
    Row(&'static str),
    /// All rows added up.
    Sum,
    /// Rows added up per kind of process and kind of object.
    PerActor,
}

/// A view of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
}

/// All that are read where they exist.
pub(super) const VIEWS: [View; 7] = [
    View { name: "pg_stat_database", shape: Shape::Row("WHERE datname = current_database()") },
    View { name: "pg_stat_wal", shape: Shape::Row("") },
    View { name: "pg_stat_bgwriter", shape: Shape::Row("") },
    View { name: "pg_stat_checkpointer", shape: Shape::Row("") },
    View { name: "pg_stat_slru", shape: Shape::Sum },
    View { name: "pg_stat_user_tables", shape: Shape::Sum },
    View { name: "pg_stat_io", shape: Shape::PerActor },
];

/// Finds the columns of the views (parameter 1) that hold numbers, and the time of the last reset.
pub(super) const FIND_COLUMNS: &str = "\
    SELECT c.relname::text, a.attname::text, t.typname::text
      FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
      JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
     WHERE c.relnamespace = 'pg_catalog'::regnamespace
       AND c.relname = ANY ($1)
       AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY c.relname, a.attnum";

/// Position of the log in bytes since the cluster began, on a primary or a standby.
pub(super) const LOG_POSITION: &str = "\
    SELECT ARRAY[((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                        ELSE pg_current_wal_lsn() END) - '0/0'::pg_lsn)::float8]";

/// Kinds of processes with series of their own from `pg_stat_io`; all others are summed as `other`.
const ACTORS: &str =
    "'client backend', 'checkpointer', 'background writer', 'autovacuum worker', 'walwriter'";

const NUMERIC_TYPES: [&str; 6] = ["int2", "int4", "int8", "float4", "float8", "numeric"];

/// Columns that are no counters although they are numbers.
const GAUGES: [&str; 7] = [
    "numbackends",
    "n_live_tup",
    "n_dead_tup",
    "n_mod_since_analyze",
    "n_ins_since_vacuum",
    "op_bytes",
    RESET,
];

const RESET: &str = "stats_reset";

/// A view with the columns a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Discovered {
    pub(super) view: View,
    /// Name and type.
    columns: Vec<(String, String)>,
}

/// Keeps the usable columns of rows (view, column, type) in their order.
pub(super) fn discover(rows: &[(String, String, String)]) -> Vec<Discovered> {
    let usable = |view: View, column: &str, kind: &str| {
        // The reset time of added-up rows is none.
        let is_reset = column == RESET && matches!(view.shape, Shape::Row(_));
        NUMERIC_TYPES.contains(&kind) || (is_reset && kind == "timestamptz")
    };
    VIEWS
        .iter()
        .map(|view| Discovered {
            view: *view,
            columns: rows
                .iter()
                .filter(|(name, column, kind)| name == view.name && usable(*view, column, kind))
                .map(|(_, column, kind)| (column.clone(), kind.clone()))
                .collect(),
        })
        .filter(|discovered| !discovered.columns.is_empty())
        .collect()
}

impl Discovered {
    /// A query with one array of numbers per row; per-actor queries have actor and object first.
    pub(super) fn sql(&self) -> String {
        let name = self.view.name;
        let array = |wrap: &dyn Fn(&str) -> String| {
            let columns = self.columns.iter().map(|(column, kind)| {
                let quoted = format!("\"{}\"", column.replace('"', "\"\""));
                match kind.as_str() {
                    "timestamptz" => format!("extract(epoch FROM {quoted})::float8"),
                    _ => wrap(&quoted),
                }
            });
            columns.collect::<Vec<_>>().join(", ")
        };
        match self.view.shape {
            Shape::Row(condition) => {
                let columns = array(&|column| format!("{column}::float8"));
                format!("SELECT ARRAY[{columns}] FROM pg_catalog.{name} {condition}")
            }
            Shape::Sum => {
                let columns = array(&|column| format!("sum({column})::float8"));
                format!("SELECT ARRAY[{columns}] FROM pg_catalog.{name}")
            }
            Shape::PerActor => {
                let columns = array(&|column| format!("sum({column})::float8"));
                format!(
                    "SELECT CASE WHEN backend_type IN ({ACTORS}) THEN backend_type ELSE 'other' END, \
                     object, ARRAY[{columns}] FROM pg_catalog.{name} GROUP BY 1, 2"
                )
            }
        }
    }

    /// One series per column. `part` is empty, or actor and object.
    pub(super) fn series(&self, part: &str) -> Vec<SeriesSpec> {
        let view = self.view.name.trim_start_matches("pg_stat_");
        let prefix = match part {
            "" => view.to_string(),
            part => format!("{view}.{part}"),
        };
        let of_column = |(column, _): &(String, String)| {
            let name = format!("{prefix}.{column}");
            if GAUGES.contains(&column.as_str()) {
                SeriesSpec::gauge(name, unit_of(self.view.name, column))
            } else {
                SeriesSpec::counter(name, unit_of(self.view.name, column))
            }
        };
        self.columns.iter().map(of_column).collect()
    }
}

/// Part of a series name for a row of a per-actor view.
pub(super) fn part_of(actor: &str, object: &str) -> String {
    format!("{}.{}", actor.replace(' ', "_"), object.replace(' ', "_"))
}

/// Unit of a column, from the naming habits of the server's views.
fn unit_of(view: &str, column: &str) -> &'static str {
    let has = |part: &str| column.split('_').any(|word| word == part);
    match column {
        RESET => "s",
        "numbackends" => "sessions",
        _ if column.ends_with("_time") => "ms",
        _ if has("bytes") => "bytes",
        _ if column.starts_with("blks_") || column.starts_with("buffers_") => "blocks",
        _ if column.starts_with("xact_") => "transactions",
        _ if column.starts_with("tup_") || column.starts_with("n_") || has("tup") => "rows",
        "wal_records" => "records",
        "reads" | "writes" | "extends" | "writebacks" | "hits" | "evictions" | "reuses"
        | "fsyncs"
            if view == "pg_stat_io" =>
        {
            "ios"
        }
        _ => "events",
    }
}

/// Where the values of each array go: indexes into the list of all series, which grows for names
/// that were never seen.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_name: BTreeMap<String, usize>,
}

impl Places {
    /// The place of this series; a new one is appended to `all`.
    pub(super) fn of(&mut self, spec: &SeriesSpec, all: &mut Vec<SeriesSpec>) -> usize {
        *self.by_name.entry(spec.name.clone()).or_insert_with(|| {
            all.push(spec.clone());
            all.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Discovered, Places, Shape, View, discover, part_of};
    use proptest::prelude::{prop_assert_eq, proptest};
    use underlay_core::series::{SeriesKind, SeriesSpec};

    fn rows(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
        rows.iter().map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string())).collect()
    }

    #[test]
    fn only_numbers_and_the_reset_time_are_kept() {
        let found = discover(&rows(&[
            ("pg_stat_database", "datid", "oid"),
            ("pg_stat_database", "datname", "name"),
            ("pg_stat_database", "numbackends", "int4"),
            ("pg_stat_database", "xact_commit", "int8"),
            ("pg_stat_database", "blk_read_time", "float8"),
            ("pg_stat_database", "checksum_last_failure", "timestamptz"),
            ("pg_stat_database", "stats_reset", "timestamptz"),
            ("pg_stat_slru", "stats_reset", "timestamptz"),
            ("pg_stat_of_tomorrow", "x", "int8"),
        ]));
        assert_eq!(found.len(), 1, "a view without numbers is no view");
        let series = found[0].series("");
        let names: Vec<_> = series.iter().map(|s| (s.name.as_str(), s.unit.as_str())).collect();
        assert_eq!(
            names,
            [
                ("database.numbackends", "sessions"),
                ("database.xact_commit", "transactions"),
                ("database.blk_read_time", "ms"),
                ("database.stats_reset", "s"),
            ]
        );
        assert_eq!(series[0].kind, SeriesKind::Gauge);
        assert_eq!(series[1].kind, SeriesKind::Counter);
        let sql = found[0].sql();
        assert!(sql.contains("extract(epoch FROM \"stats_reset\")"), "{sql}");
        assert!(sql.ends_with("WHERE datname = current_database()"), "{sql}");
    }

    #[test]
    fn versions_differ_only_in_what_is_found() {
        let old = rows(&[("pg_stat_io", "reads", "int8"), ("pg_stat_io", "op_bytes", "int8")]);
        let new = rows(&[("pg_stat_io", "reads", "int8"), ("pg_stat_io", "read_bytes", "numeric")]);
        let part = part_of("client backend", "temp relation");
        let names = |found: &[Discovered]| {
            found[0].series(&part).into_iter().map(|s| (s.name, s.unit, s.kind)).collect::<Vec<_>>()
        };
        let name = |column: &str| format!("io.client_backend.temp_relation.{column}");
        assert_eq!(
            names(&discover(&old)),
            [
                (name("reads"), "ios".to_string(), SeriesKind::Counter),
                (name("op_bytes"), "bytes".to_string(), SeriesKind::Gauge),
            ]
        );
        assert_eq!(
            names(&discover(&new))[1],
            (name("read_bytes"), "bytes".to_string(), SeriesKind::Counter)
        );
    }

    #[test]
    fn units_follow_the_names() {
        let unit = |view, column| super::unit_of(view, column);
        assert_eq!(unit("pg_stat_wal", "wal_bytes"), "bytes");
        assert_eq!(unit("pg_stat_wal", "wal_records"), "records");
        assert_eq!(unit("pg_stat_bgwriter", "checkpoint_sync_time"), "ms");
        assert_eq!(unit("pg_stat_bgwriter", "buffers_backend_fsync"), "blocks");
        assert_eq!(unit("pg_stat_user_tables", "n_dead_tup"), "rows");
        assert_eq!(unit("pg_stat_user_tables", "seq_tup_read"), "rows");
        assert_eq!(unit("pg_stat_slru", "blks_hit"), "blocks");
        assert_eq!(unit("pg_stat_database", "deadlocks"), "events");
        assert_eq!(unit("pg_stat_io", "fsyncs"), "ios");
    }

    #[test]
    fn places_are_kept_and_new_series_come_at_the_end() {
        let spec = |name: &str| SeriesSpec::counter(name, "events");
        let (mut places, mut all) = (Places::default(), Vec::new());
        let found = ["a", "b", "b", "c", "a"].map(|name| places.of(&spec(name), &mut all));
        assert_eq!(found, [0, 1, 1, 2, 0]);
        assert_eq!(all.len(), 3);
    }

    proptest! {
        /// Whatever a column is called, it stays one quoted identifier.
        #[test]
        fn columns_are_quoted(column in "[a-z\"; ]{1,20}") {
            let view = View { name: "pg_stat_wal", shape: Shape::Row("") };
            let sql = Discovered { view, columns: vec![(column.clone(), "int8".into())] }.sql();
            let expected = format!(
                "SELECT ARRAY[\"{}\"::float8] FROM pg_catalog.pg_stat_wal ",
                column.replace('"', "\"\"")
            );
            prop_assert_eq!(sql, expected);
        }
    }
}
