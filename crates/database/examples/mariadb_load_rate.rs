//! How fast the population is loaded on MariaDB, against `LOAD DATA INFILE` of files that were written before.
//!
//! On a server of its own, for each number of warehouses: (A) the load, which generates the rows and
//! streams them, (B) the server reading the same rows from its own files. In the order A B B A, so that slow
//! drifts of the host hit both alike; with the same number of connections, into the same empty tables, with the
//! same settings. Secondary indexes, statistics and checks come after and are not part of the rate.
//!
//! ```text
//! cargo run --release -p underlay-database --example mariadb_load_rate -- --warehouses 2,8 --parallel 2 --json rates.json
//! ```

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use serde_json::json;
use tokio::runtime::Runtime;
use underlay_core::RootSeed;
use underlay_database::managed::{Listen, StopMode};
use underlay_database::mariadb::{Server, ServerSpec, connect, find_installs};
use underlay_database::tpcc::schema_sql;
use underlay_database::tpcc::{LoadOptions, drop_schema, load};
use underlay_database::{Engine, Target};
use underlay_host::{StateDir, Teardown, unprivileged_user};
use underlay_workload::tpcc::{Entropy, Parameters};

type Failure = Box<dyn Error + Send + Sync>;

/// The tables, the largest last: work is taken from the end.
const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "new_order",
    "orders",
    "history",
    "item",
    "order_line",
    "customer",
    "stock",
];

fn main() -> Result<(), Failure> {
    let (mut warehouses, mut parallel, mut output) = (vec![2, 8], 2, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--warehouses" => {
                warehouses = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--parallel" => parallel = value.parse()?,
            "--json" => output = Some(PathBuf::from(value)),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let Some(install) = find_installs(None, None).into_iter().next() else {
        println!("skip: no MariaDB on this host");
        return Ok(());
    };
    let place = tempfile::Builder::new().prefix("underlay-load").tempdir_in("/var/tmp")?;
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
    let state = StateDir::at(place.path().join("state"))?;
    let teardown = Teardown::create(&state, "load rate")?;
    let settings = [
        ("innodb_flush_log_at_trx_commit", "0"),
        ("innodb_doublewrite", "OFF"),
        ("innodb_log_file_size", "1G"),
        ("innodb_buffer_pool_size", "512M"),
    ];
    let run_as = unprivileged_user()?;
    let files = place.path().join("files");
    fs::create_dir(&files)?;
    run_as.iter().try_for_each(|user| user.own(&files))?;
    let spec = ServerSpec {
        name: "load-rate".to_string(),
        install,
        data: place.path().join("data"),
        wal: place.path().join("redo"),
        backup: place.path().join("backup"),
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        run_as,
        cgroup: None,
        runtime_dir: place.path().join("run"),
        listen: Listen::UnixSocket,
    };
    let mut server = Server::create(&teardown, spec)?;
    server.start()?;
    let mut results = Vec::new();
    for count in warehouses {
        let parameters = Parameters::new(count, RootSeed(1), Entropy::FULL)?;
        results.push(compare(&server.target(), &parameters, parallel, &files)?);
    }
    server.stop(StopMode::Fast)?;
    teardown.unwind();
    let text = format!("{:#}", json!({ "parallel": parallel, "results": results }));
    println!("{text}");
    if let Some(path) = output {
        fs::write(path, text)?;
    }
    Ok(())
}

/// A B B A of one size.
fn compare(
    server: &Target,
    parameters: &Parameters,
    parallel: usize,
    files: &Path,
) -> Result<serde_json::Value, Failure> {
    let runtime = Runtime::new()?;
    let target = server.with_database("tpcc");
    let options = LoadOptions { parallel, progress: &|_| {} };
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    ours.push(load(&target, parameters, &options)?.rows_duration);
    let report = runtime.block_on(write_files(&target, files))?;
    for _ in 0..2 {
        theirs.push(load_files(server, &runtime, parallel, files)?);
    }
    runtime.block_on(drop_schema(&target))?;
    ours.push(load(&target, parameters, &options)?.rows_duration);
    runtime.block_on(drop_schema(&target))?;
    for table in TABLES {
        fs::remove_file(files.join(table))?;
    }
    let mean =
        |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
    Ok(json!({
        "warehouses": parameters.warehouses,
        "file_bytes": report,
        "load_s": ours.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
        "load_data_infile_s": theirs.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
        "ratio": mean(&theirs) / mean(&ours),
    }))
}

/// Has the server write the loaded rows to files, in the order of their keys; returns their size.
async fn write_files(target: &Target, files: &Path) -> Result<u64, Failure> {
    let mut conn = connect(target).await?;
    let mut bytes = 0;
    for table in TABLES {
        let path = files.join(table);
        let sql =
            format!("SELECT * FROM {table} INTO OUTFILE '{}' CHARACTER SET latin1", path.display());
        conn.query_drop(sql).await?;
        bytes += fs::metadata(&path)?.len();
    }
    Ok(bytes)
}

/// Loads the files into new tables; how long that took.
fn load_files(
    server: &Target,
    runtime: &Runtime,
    parallel: usize,
    files: &Path,
) -> Result<Duration, Failure> {
    runtime.block_on(async {
        let mut conn = connect(server).await?;
        conn.query_drop("CREATE DATABASE files CHARACTER SET latin1 COLLATE latin1_bin").await?;
        conn.query_drop("USE files").await?;
        for sql in
            schema_sql(Engine::Mariadb).split(";\n").filter(|text| text.contains("CREATE TABLE"))
        {
            conn.query_drop(sql).await?;
        }
        Ok::<_, Failure>(())
    })?;
    let tables = Mutex::new(TABLES.to_vec());
    let target = server.with_database("files");
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..parallel).map(|_| scope.spawn(|| load_some(&target, &tables, files))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a loader panicked"))
    })?;
    let duration = began.elapsed();
    runtime.block_on(async {
        connect(server).await?.query_drop("DROP DATABASE files").await?;
        Ok::<_, Failure>(duration)
    })
}

fn load_some(target: &Target, tables: &Mutex<Vec<&str>>, files: &Path) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut conn = connect(target).await?;
        // With checks of uniqueness, which a table's first rows are inserted faster with.
        conn.query_drop("SET SESSION foreign_key_checks = 0").await?;
        loop {
            let Some(table) = tables.lock().expect("no loader panics here").pop() else {
                return Ok(());
            };
            let path = files.join(table);
            let sql = format!(
                "LOAD DATA INFILE '{}' INTO TABLE {table} CHARACTER SET latin1",
                path.display()
            );
            conn.query_drop(sql).await?;
        }
    })
}
