//! Tables of somebody else where a workload's tables go: refused, replaced when their place is named, and never more than
//! those that have the workload's names.

use serde_json::json;
use underlay_database::Engine;
use underlay_testbed::number;

use super::{Stranger, WORKLOADS, size};

/// The schema or database of a workload, and one of its tables.
fn place_of(engine: Engine, workload: &str) -> (&str, &str) {
    match (engine, workload) {
        (Engine::Postgresql, "sysbench") => ("public", "sbtest7"),
        (Engine::Mariadb, "sysbench") => ("sbtest", "sbtest7"),
        (_, "tpcc") => ("tpcc", "orders"),
        (_, "dvdstore") => ("dvdstore", "customers"),
        (_, "batch") => ("batch", "test"),
        (_, workload) => (workload, "lineitem"),
    }
}

/// What a user has to repeat.
fn name_of(engine: Engine, place: &str) -> String {
    match engine {
        Engine::Postgresql => format!("postgres.{place}"),
        Engine::Mariadb => place.to_string(),
    }
}

struct Place<'a> {
    stranger: &'a Stranger,
    place: &'a str,
    table: &'a str,
}

impl<'a> Place<'a> {
    fn new(stranger: &'a Stranger, workload: &'a str) -> Place<'a> {
        let engine = stranger.host.server.target().engine;
        let (place, table) = place_of(engine, workload);
        Place { stranger, place, table }
    }

    fn make(&self) {
        let kind = match self.stranger.host.server.target().engine {
            Engine::Postgresql => "SCHEMA",
            Engine::Mariadb => "DATABASE",
        };
        self.execute(&format!("CREATE {kind} IF NOT EXISTS {}", self.place));
        self.make_table(self.table, 3);
    }

    fn make_table(&self, table: &str, rows: u32) {
        let Place { place, .. } = self;
        self.execute(&format!("CREATE TABLE {place}.{table} (a INT PRIMARY KEY)"));
        for row in 0..rows {
            self.execute(&format!("INSERT INTO {place}.{table} VALUES ({row})"));
        }
    }

    fn execute(&self, sql: &str) {
        self.stranger.execute("", sql);
    }

    fn rows(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {}.{table}", self.place);
        number(&self.stranger.host.server.target(), &sql)
    }

    /// Tables and the like that are there.
    fn tables(&self) -> i64 {
        let sql = format!(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = '{}'",
            self.place
        );
        number(&self.stranger.host.server.target(), &sql)
    }
}

fn load_of(workload: &str) -> Vec<&str> {
    let what = if workload == "batch" { "--run" } else { "--load" };
    [&[what][..], size(workload)].concat()
}

pub fn tables_are_replaced_only_by_name(stranger: &Stranger) {
    for workload in WORKLOADS {
        let there = Place::new(stranger, workload);
        let name = name_of(stranger.host.server.target().engine, there.place);
        let load = load_of(workload);
        let drive = |arguments: &[&str]| stranger.drive(workload, arguments);
        let replace = ["--replace-foreign", name.as_str()];
        there.make();
        there.make_table("precious", 2);
        let untouched = || {
            assert_eq!((there.rows(there.table), there.rows("precious")), (3, 2), "{workload}");
        };

        // Without the option, with the wrong name, and where nothing is asked for that would replace anything.
        let ended = drive(&load);
        assert_eq!(ended.code, Some(2), "{workload}: {}", ended.stderr);
        assert!(ended.stderr.contains("--replace-foreign"), "{workload}: {}", ended.stderr);
        let ended = drive(&[&load[..], &["--replace-foreign", "another"]].concat());
        assert_eq!(ended.code, Some(2), "{workload}: {}", ended.stderr);
        assert!(ended.stderr.contains(&format!("`{name}`")), "{workload}: {}", ended.stderr);
        assert_eq!(drive(&[&["--check"][..], &replace].concat()).code, Some(2), "{workload}");
        untouched();

        // A trigger of another table, of a name that the load gives one of its own.
        if (stranger.host.server.target().engine, workload) == (Engine::Mariadb, "dvdstore") {
            let Place { place, .. } = there;
            there.execute(&format!(
                "CREATE TRIGGER {place}.restock BEFORE UPDATE ON {place}.precious FOR EACH ROW SET NEW.a = OLD.a"
            ));
            let ended = drive(&[&load[..], &replace].concat());
            let said = "`restock` in `dvdstore` is a trigger of `precious`";
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
            assert_ne!(ended.code, Some(0));
            untouched();
            there.execute(&format!("DROP TRIGGER {place}.restock"));
        }

        // With it: what goes is said first, what is not the workload's stays.
        let replaced = json!([{ "name": there.table, "rows": 3 }]);
        let ended = drive(&[&load[..], &replace, &["--json"]].concat());
        let said = format!("  table {}: 3 rows", there.table);
        assert!(ended.stderr.contains(&said), "{workload}: {}", ended.stderr);
        let value: serde_json::Value = serde_json::from_str(&ended.expect(0)).unwrap();
        assert_eq!(value["replaced"]["place"], name, "{value:#}");
        assert_eq!(value["replaced"]["tables"], replaced, "{value:#}");
        assert_eq!(value["replaced"]["others_kept"], 1, "{value:#}");
        assert_eq!(there.rows("precious"), 2, "{workload}");
        stranger.succeed(workload, &["--check"]);

        // Nothing foreign is left, so that nothing may be replaced; ours goes like always, its neighbour stays.
        let again = drive(&[&load[..], &replace].concat());
        assert_eq!(again.code, Some(2), "{workload}: {}", again.stderr);
        assert!(again.stderr.contains("omit the option"), "{workload}: {}", again.stderr);
        if workload == "batch" {
            // Created again next to its neighbour, without naming the place again.
            stranger.succeed(workload, &load);
        }
        stranger.succeed(workload, &["--drop"]);
        assert_eq!((there.tables(), there.rows("precious")), (1, 2), "{workload}");

        // Dropping alone.
        there.make();
        assert_eq!(drive(&["--drop"]).code, Some(2), "{workload}");
        untouched();
        let value = stranger.succeed(workload, &[&["--drop"][..], &replace].concat());
        assert_eq!(value["replaced"]["tables"], replaced, "{value:#}");
        assert_eq!((there.tables(), there.rows("precious")), (1, 2), "{workload}");
        there.execute(&format!("DROP TABLE {}.precious", there.place));
    }
}

/// A view of the workload's name, and a table that refers to one that would go.
pub fn what_is_in_use_is_not_replaced(stranger: &Stranger) {
    let there = Place::new(stranger, "tpcc");
    let place = there.place;
    let name = name_of(stranger.host.server.target().engine, place);
    let refused = |why: &str| {
        let load = load_of("tpcc");
        let ended = stranger.drive("tpcc", &[&load[..], &["--replace-foreign", &name]].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(there.rows("orders"), 3);
    };
    there.make();
    there.execute(&format!("CREATE VIEW {place}.stock AS SELECT 1 AS one"));
    refused("`stock`");
    there.execute(&format!("DROP VIEW {place}.stock"));
    there.execute(&format!(
        "CREATE TABLE {place}.child (a INT, FOREIGN KEY (a) REFERENCES {place}.orders (a))"
    ));
    refused("child");
    there.execute(&format!("DROP TABLE {place}.child"));
    there.execute(&format!("CREATE TABLE {place}.underlay_warehouse (a INT)"));
    refused("underlay_warehouse");
    there.execute(&format!("DROP TABLE {place}.underlay_warehouse"));
    there.execute(&format!("DROP TABLE {place}.orders"));
}

pub fn the_servers_own_databases_are_refused(stranger: &Stranger) {
    let (from, databases): (&str, &[&str]) = match stranger.host.server.target().engine {
        Engine::Postgresql => ("/postgres?", &["template1"]),
        Engine::Mariadb => ("?", &["mysql", "information_schema", "SYS"]),
    };
    for database in databases {
        let url = stranger.url().replace(from, &format!("/{database}?"));
        for workload in WORKLOADS {
            let arguments = [&load_of(workload)[..], &["--replace-foreign", database]].concat();
            let ended = stranger.drive_at(&url, workload, &arguments);
            assert_eq!(ended.code, Some(2), "{database} {workload}: {}", ended.stderr);
            assert!(ended.stderr.contains("server itself"), "{database}: {}", ended.stderr);
        }
    }
}

/// Underlay's own tables without their mark are as good as those of another program with the same columns.
pub fn tpcc_of_others_is_checked_as_it_is(stranger: &Stranger) {
    let there = Place::new(stranger, "tpcc");
    let place = there.place;
    let drive = |arguments: &[&str]| stranger.drive("tpcc", arguments);
    if stranger.host.server.target().engine == Engine::Postgresql {
        // The other scenes left it: an empty schema of somebody else.
        there.execute(&format!("DROP SCHEMA {place}"));
    }
    let none = drive(&["--check", "--foreign-tables"]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    stranger.succeed("tpcc", &load_of("tpcc"));
    there.execute(&format!("DROP TABLE {place}.underlay_population"));
    assert_eq!(drive(&["--check"]).code, Some(2));
    let value = stranger.succeed("tpcc", &["--check", "--foreign-tables"]);
    assert!(value["check"]["results"].as_array().is_some_and(|all| all.len() > 10), "{value:#}");
    assert_eq!(drive(&["--run", "--foreign-tables"]).code, Some(2));
    for workload in ["dvdstore", "batch", "warehouse"] {
        let ended = stranger.drive(workload, &["--check", "--foreign-tables"]);
        assert_eq!(ended.code, Some(2), "{workload}: {}", ended.stderr);
    }
    there.execute(&format!("UPDATE {place}.district SET d_next_o_id = d_next_o_id + 1"));
    assert_eq!(drive(&["--check", "--foreign-tables"]).code, Some(5));
    // Its routines go with its tables.
    let name = name_of(stranger.host.server.target().engine, place);
    let value = stranger.succeed("tpcc", &["--drop", "--replace-foreign", &name]);
    assert_eq!(value["replaced"]["tables"].as_array().map(Vec::len), Some(9), "{value:#}");
    assert_eq!(value["replaced"]["routines"].as_array().map(Vec::len), Some(5), "{value:#}");
    let table = |index: usize| &value["replaced"]["tables"][index];
    assert_eq!((&table(8)["name"], &table(8)["rows"]), (&json!("warehouse"), &json!(1)));
    assert_eq!(there.tables(), 0);
}

/// Nothing is asked for that is not there, and what is there is taken whole unless less is wanted.
pub fn sysbench_of_others_is_driven_as_far_as_it_goes(stranger: &Stranger) {
    let there = Place::new(stranger, "sysbench");
    let run = |more: &[&str]| {
        const BRIEFLY: [&str; 6] =
            ["--run", "--foreign-tables", "--warm-up", "0s", "--duration", "1s"];
        stranger.drive("sysbench", &[&BRIEFLY[..], &["--users", "1", "--json"], more].concat())
    };
    let none = run(&[]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("no table `sbtest1`"), "{}", none.stderr);

    stranger.succeed("sysbench", &load_of("sysbench"));
    there.execute(&format!("DROP TABLE {}.underlay_sysbench", there.place));
    let too_much = run(&["--tables", "3", "--table-size", "1001"]);
    assert_eq!(too_much.code, Some(2), "{}", too_much.stderr);
    for said in ["no table `sbtest3`", "`sbtest1` end at 1000"] {
        assert!(too_much.stderr.contains(said), "{}", too_much.stderr);
    }
    for (more, tables, size) in
        [(&[][..], 2, 1000), (&["--tables", "1", "--table-size", "10"][..], 1, 10)]
    {
        let value: serde_json::Value = serde_json::from_str(&run(more).expect(0)).unwrap();
        assert_eq!(value["run"]["tables"], tables, "{value:#}");
        assert_eq!(value["run"]["table_size"], size, "{value:#}");
    }
    // What a run on them made goes again, and they stay.
    let value: serde_json::Value =
        serde_json::from_str(&run(&["--script", "bulk_insert"]).expect(0)).unwrap();
    assert!(value["run"]["rows"]["bulk"].as_u64() > Some(0), "{value:#}");
    assert_eq!(there.tables(), 3);
    let dropped = stranger.drive("sysbench", &["--drop"]).expect(0);
    assert!(dropped.contains("dropped 1 tables for bulk inserts"), "{dropped}");
    assert_eq!(there.tables(), 2);
    assert_eq!(stranger.drive("sysbench", &["--drop"]).code, Some(2));
    let name = name_of(stranger.host.server.target().engine, there.place);
    stranger.succeed("sysbench", &["--drop", "--replace-foreign", &name]);
}
