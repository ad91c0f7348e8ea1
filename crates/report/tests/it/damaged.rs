//! Damaged records: whatever is missing from a record or wrong in it, reading it ends with a result or with an error that
//! names the record, never with a panic.
//!
//! The damage derives from a seed and the number of the case alone. `UNDERLAY_DAMAGE_CASES` sets how many cases there are.

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::tempdir;
use underlay_record::{OpenError, Record};
use underlay_report::{
    Colour, CompareOptions, IdentityPolicy, analyse, compare, comparison_summary, export_csv,
    export_json_lines, html, terminal_summary,
};

use crate::synthetic::{ROWS, nvme, record, sata, scenario};

/// Cases per run of the tests: each reads whole records.
const CASES_DEFAULT: u64 = 48;

fn cases() -> u64 {
    let wanted = std::env::var("UNDERLAY_DAMAGE_CASES").ok();
    wanted.map_or(CASES_DEFAULT, |cases| cases.parse().expect("a number of cases"))
}

struct Damage {
    random: Pcg64,
    /// What was done, to say so.
    done: Vec<String>,
}

impl Damage {
    fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn inflict(&mut self, path: &Path) {
        for _ in 0..1 + self.below(3) {
            match self.below(12) {
                0 => self.bytes(path),
                1 | 2 => self.with(path, Damage::delete),
                3 => self.with(path, Damage::drop),
                4..=6 => self.with(path, Damage::json),
                _ => self.with(path, Damage::set),
            }
        }
    }

    /// Bytes are overwritten, or the end is cut off.
    fn bytes(&mut self, path: &Path) {
        let mut bytes = fs::read(path).unwrap();
        if self.below(4) == 0 {
            bytes.truncate(self.below(bytes.len()));
            self.done.push(format!("cut to {} bytes", bytes.len()));
        } else {
            for _ in 0..1 + self.below(40) {
                let at = self.below(bytes.len());
                bytes[at] = self.random.random();
                self.done.push(format!("byte {at} = {}", bytes[at]));
            }
        }
        fs::write(path, bytes).unwrap();
    }

    /// What SQLite refuses leaves the record as it was.
    fn with(&mut self, path: &Path, act: fn(&mut Damage, &Connection) -> Option<String>) {
        let Ok(connection) = Connection::open(path) else { return };
        let _ = connection.execute_batch(
            "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF;",
        );
        if let Some(done) = act(self, &connection) {
            self.done.push(done);
        }
    }

    fn table(&mut self, connection: &Connection) -> Option<(String, Vec<String>)> {
        let list = |sql: &str, of: &str| -> Option<Vec<String>> {
            let mut statement = connection.prepare(sql).ok()?;
            let rows = statement.query_map(params![of], |row| row.get(0)).ok()?;
            rows.collect::<Result<_, _>>().ok()
        };
        let tables = list("SELECT name FROM sqlite_schema WHERE type = ?1 ORDER BY name", "table")?;
        let table = tables.get(self.below(tables.len().max(1)))?.clone();
        let columns = list("SELECT name FROM pragma_table_info(?1)", &table)?;
        (!columns.is_empty()).then_some((table, columns))
    }

    /// Which rows: all, or those that are like one of them.
    fn filter(
        &mut self,
        connection: &Connection,
        (table, columns): &(String, Vec<String>),
    ) -> String {
        let count = format!("SELECT count(*) FROM {table}");
        let rows: i64 = connection.query_row(&count, [], |row| row.get(0)).unwrap_or(0);
        let column = self.one_of(columns);
        match self.below(3) {
            0 => String::new(),
            _ => format!(
                " WHERE {column} IS (SELECT {column} FROM {table} LIMIT 1 OFFSET {})",
                self.below(rows.max(1) as usize)
            ),
        }
    }

    fn delete(&mut self, connection: &Connection) -> Option<String> {
        let table = self.table(connection)?;
        let sql = format!("DELETE FROM {}{}", table.0, self.filter(connection, &table));
        connection.execute(&sql, []).ok().map(|_| sql)
    }

    fn drop(&mut self, connection: &Connection) -> Option<String> {
        let (table, columns) = self.table(connection)?;
        let column = self.one_of(&columns);
        let sql = match self.below(4) {
            0 => format!("DROP TABLE {table}"),
            1 => format!("ALTER TABLE {table} RENAME COLUMN {column} TO other"),
            2 => format!("PRAGMA user_version = {}", self.below(3)),
            _ => format!("ALTER TABLE {table} DROP COLUMN {column}"),
        };
        connection.execute_batch(&sql).ok().map(|()| sql)
    }

    fn set(&mut self, connection: &Connection) -> Option<String> {
        let table = self.table(connection)?;
        let column = self.one_of(&table.1);
        let (integer, text) =
            (|value: i64| Sql::Integer(value), |text: &str| Sql::Text(text.into()));
        let value = self.one_of(&[
            integer(0),
            integer(1),
            integer(2),
            integer(-1),
            integer(4_000_000_000),
            integer(5_000_000_000),
            integer(i64::MAX),
            integer(i64::MIN),
            Sql::Null,
            text(""),
            text("x"),
            text("run"),
            text("finished"),
            text("measure"),
            text("null"),
            text("[]"),
            text("{}"),
            text("{\"a\": 1e308}"),
            text(&"[".repeat(500)),
            Sql::Blob(Vec::new()),
            Sql::Blob(vec![0xff; 8]),
            Sql::Blob(vec![0; 80]),
            Sql::Blob(f64::INFINITY.to_le_bytes().repeat(9)),
            Sql::Blob((-1e300f64).to_le_bytes().repeat(30)),
        ]);
        let sql = format!(
            "UPDATE OR REPLACE {} SET {column} = ?1{}",
            table.0,
            self.filter(connection, &table)
        );
        connection.execute(&sql, params![value]).ok().map(|_| format!("{sql}: {value:?}"))
    }

    /// One value inside a document becomes another or goes.
    fn json(&mut self, connection: &Connection) -> Option<String> {
        const DOCUMENTS: [(&str, &str); 7] = [
            ("execution", "plan"),
            ("execution", "plan"),
            ("execution", "host"),
            ("design", "detail"),
            ("document", "content"),
            ("event", "data"),
            ("finding", "data"),
        ];
        let (table, column) = self.one_of(&DOCUMENTS);
        let sql = format!("SELECT rowid, {column} FROM {table}");
        let mut statement = connection.prepare(&sql).ok()?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
        let rows: Vec<(i64, String)> = rows.flatten().collect();
        if rows.is_empty() {
            return None;
        }
        let (id, text) = self.one_of(&rows);
        let mut value: Value = serde_json::from_str(&text).ok()?;
        let done = self.change(&mut value);
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2");
        connection.execute(&sql, params![value.to_string(), id]).ok()?;
        Some(format!("{table}.{column} of row {id}: {done}"))
    }

    fn change(&mut self, value: &mut Value) -> String {
        if self.below(4) > 0 {
            match value {
                Value::Object(map) if !map.is_empty() => {
                    let names: Vec<String> = map.keys().cloned().collect();
                    let name = self.one_of(&names);
                    if self.below(5) == 0 {
                        map.remove(&name);
                        return format!(".{name} goes");
                    }
                    let child = map.get_mut(&name).expect("it is one of them");
                    return format!(".{name}{}", self.change(child));
                }
                Value::Array(list) if !list.is_empty() => {
                    let at = self.below(list.len());
                    return format!("[{at}]{}", self.change(&mut list[at]));
                }
                _ => {}
            }
        }
        *value = self.one_of(&[
            Value::Null,
            json!(0),
            json!(-1),
            json!(1e308),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(""),
            json!("x"),
            json!([]),
            json!([1, [2], {}]),
            json!({}),
            json!(true),
        ]);
        format!(" = {value}")
    }
}

thread_local! {
    /// Which step is under way.
    static STEP: Cell<&'static str> = const { Cell::new("") };
}

/// Everything that reads a record.
fn read_all(path: &Path, folder: &Path, whole: &Record) {
    STEP.set("open");
    let record = match Record::open_read_only(path) {
        Ok(record) => record,
        Err(error) => {
            assert!(error.to_string().contains("damaged.sqlite"), "which record? {error}");
            return;
        }
    };
    STEP.set("analyse");
    if let Ok(analysis) = analyse(&record) {
        STEP.set("summary");
        let summary = terminal_summary(&analysis, 80, Colour::Always);
        assert!(summary.len() < 10 << 20);
        STEP.set("page");
        html(&analysis).unwrap();
    }
    let options = CompareOptions { identity: IdentityPolicy::AllowDifferent, designs: None };
    STEP.set("compare");
    if let Ok(comparison) = compare(whole, &record, &options) {
        STEP.set("comparison's summary");
        comparison_summary(&comparison, 80, Colour::Never);
    }
    STEP.set("export");
    let _ = export_csv(&record, &folder.join("csv"));
    let _ = export_json_lines(&record, &mut Vec::new());
}

#[test]
fn no_damage_makes_a_reader_panic() {
    let dir = tempdir().unwrap();
    let mut small = scenario(vec![sata(), nvme()]);
    (small.measure_s, small.users, small.repeats) = (3, vec![1, 2], 2);
    let whole = record(&small, &dir.path().join("whole.sqlite"));
    let mut job = small.clone();
    job.job = Some(ROWS);
    drop(record(&job, &dir.path().join("job.sqlite")));
    let mut failures = Vec::new();
    for case in 0..cases() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("damaged.sqlite");
        let origin = if case % 5 == 4 { "job.sqlite" } else { "whole.sqlite" };
        fs::copy(dir.path().join(origin), &path).unwrap();
        let mut damage = Damage { random: Pcg64::seed_from_u64(case), done: Vec::new() };
        damage.inflict(&path);
        let read = catch_unwind(AssertUnwindSafe(|| read_all(&path, folder.path(), &whole)));
        if read.is_err() {
            failures.push(format!("case {case}, {}: {}", STEP.get(), damage.done.join("; ")));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases(), failures.join("\n"));
}

/// The acts that were seen to cause a panic, each by name.
#[test]
fn a_record_without_its_designs_is_refused() {
    let dir = tempdir().unwrap();
    let mut small = scenario(vec![sata(), nvme()]);
    (small.measure_s, small.users, small.repeats) = (6, vec![1], 1);
    for (name, sql, problem) in [
        ("none", "DELETE FROM design", "row of `run`"),
        ("one", "DELETE FROM design WHERE design = 1", "row of `run`"),
        ("renumbered", "UPDATE design SET design = 7 WHERE design = 1", "row of `run`"),
        (
            "gap",
            "UPDATE design SET design = 7 WHERE design = 1; UPDATE run SET design = 7 WHERE design = 1",
            "designs are not numbered",
        ),
        ("no execution", "DELETE FROM execution", "manifest"),
        ("no runs", "DELETE FROM run", "row of `"),
    ] {
        let path = dir.path().join(format!("{name}.sqlite"));
        drop(record(&small, &path));
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
        drop(connection);
        let error = Record::open_read_only(&path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(problem), "{name}: {text}");
        let is_damage = matches!(error, OpenError::Damaged { .. } | OpenError::Manifest { .. });
        assert!(is_damage, "{name}: {error:?}");
    }
}
