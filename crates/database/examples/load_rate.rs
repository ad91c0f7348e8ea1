//! How fast the population is loaded, against COPY of files that were written before.
//!
//! On a server of its own, for each number of warehouses: (A) the load, which generates the rows, (B) `COPY ... FROM
//! STDIN` of files with the same rows as text, (C) the same as binary files, for information. In the order A B C C B A,
//! so that slow drifts of the host hit all alike; with the same number of connections, into the same empty
//! tables, in the same transactions (truncated, frozen). Keys, vacuum and checks come after and are not part of
//! the rate.
//!
//! ```text
//! cargo run --release -p underlay-database --example load_rate -- --warehouses 2,8 --parallel 2 --json rates.json
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use underlay_core::RootSeed;
use underlay_database::postgres::{Listen, Server, ServerSpec, find_installs};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, LoadOptions, TableNames, check, drop_schema, load, schema_sql,
};
use underlay_database::{Engine, Target};
use underlay_host::{StateDir, Teardown, unprivileged_user};
use underlay_workload::tpcc::{Entropy, Parameters};

type Failure = Box<dyn Error + Send + Sync>;

/// Size of a message to the server; that of the load.
const CHUNK_BYTES: usize = 128 << 10;

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

struct Options {
    warehouses: Vec<u32>,
    parallel: usize,
    rounds: usize,
    directory: PathBuf,
    json: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Generated,
    TextFiles,
    BinaryFiles,
}

impl Way {
    const ALL: [Way; 3] = [Way::Generated, Way::TextFiles, Way::BinaryFiles];

    fn as_str(self) -> &'static str {
        match self {
            Way::Generated => "load",
            Way::TextFiles => "copy of text files",
            Way::BinaryFiles => "copy of binary files",
        }
    }

    fn format(self) -> &'static str {
        if self == Way::TextFiles { "text" } else { "binary" }
    }
}

/// One measurement.
struct Run {
    way: Way,
    rows: u64,
    bytes: u64,
    duration: Duration,
    peak_memory_bytes: u64,
}

/// A server with a database, and files with the rows.
struct Bench {
    target: Target,
    files: PathBuf,
    parallel: usize,
    runtime: Runtime,
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let directory =
        tempfile::Builder::new().prefix("underlay-load-rate").tempdir_in(&options.directory)?;
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let path = directory.path().canonicalize()?;
    let teardown = Teardown::create(&StateDir::at(path.join("state"))?, "load rate")?;
    let result = measure_all(&options, &path, &teardown);
    for left in teardown.unwind() {
        eprintln!("left behind: {left:?}");
    }
    let report = result?;
    println!("{report:#}");
    if let Some(file) = &options.json {
        fs::write(file, format!("{report:#}\n"))?;
    }
    Ok(())
}

fn measure_all(options: &Options, path: &Path, teardown: &Teardown) -> Result<Value, Failure> {
    let mut server = start_server(path, teardown)?;
    let bench = Bench {
        target: server.target(),
        files: path.join("files"),
        parallel: options.parallel,
        runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    let sizes = options
        .warehouses
        .iter()
        .map(|warehouses| measure(&bench, *warehouses, options.rounds))
        .collect::<Result<Vec<Value>, Failure>>()?;
    server.kill()?;
    Ok(json!({ "parallel": options.parallel, "target_ratio": 0.9, "sizes": sizes }))
}

/// A server that does not wait for the disk: what is measured is the making, sending and taking of rows.
fn start_server(path: &Path, teardown: &Teardown) -> Result<Server, Failure> {
    let install = find_installs(None).into_iter().next().ok_or("no PostgreSQL 13 to 18 found")?;
    let settings = [
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "8GB"),
        ("checkpoint_timeout", "1h"),
        ("shared_buffers", "512MB"),
        ("autovacuum", "off"),
    ];
    let spec = ServerSpec {
        name: "load-rate".to_string(),
        install,
        data: path.join("data"),
        wal: path.join("wal"),
        backup: path.join("backup"),
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        run_as: unprivileged_user()?,
        cgroup: None,
        runtime_dir: path.join("runtime"),
        listen: Listen::UnixSocket,
    };
    let mut server = Server::create(teardown, spec)?;
    server.start()?;
    Ok(server)
}

fn measure(bench: &Bench, warehouses: u32, rounds: usize) -> Result<Value, Failure> {
    let parameters = Parameters::new(warehouses, RootSeed(42), Entropy::FULL)?;
    // The first load warms up, is checked, and gives the files.
    let first = bench.load(&parameters)?;
    let check_duration = bench.check(warehouses)?;
    fs::create_dir_all(&bench.files)?;
    for way in [Way::TextFiles, Way::BinaryFiles] {
        bench.write_files(way)?;
    }
    bench.drop_tables()?;
    let order = Way::ALL.into_iter().chain(Way::ALL.into_iter().rev());
    let mut runs = Vec::new();
    for way in std::iter::repeat_n(order, rounds).flatten() {
        let run = match way {
            Way::Generated => bench.load(&parameters)?,
            _ => bench.copy_files(way, first.rows)?,
        };
        bench.drop_tables()?;
        eprintln!(
            "{warehouses} warehouses, {}: {:.0} rows/s, {:.1} MB/s, peak memory {:.1} MiB",
            way.as_str(),
            run.rows_per_second(),
            run.bytes as f64 / 1e6 / run.duration.as_secs_f64(),
            run.peak_memory_bytes as f64 / f64::from(1 << 20),
        );
        runs.push(run);
    }
    fs::remove_dir_all(&bench.files)?;
    let rate = |way| pooled(&runs, way);
    Ok(json!({
        "warehouses": warehouses,
        "rows": first.rows,
        "check_seconds": check_duration.as_secs_f64(),
        "runs": runs.iter().map(Run::json).collect::<Vec<_>>(),
        "load_rows_per_second": rate(Way::Generated),
        "copy_text_rows_per_second": rate(Way::TextFiles),
        "copy_binary_rows_per_second": rate(Way::BinaryFiles),
        "ratio_to_text": rate(Way::Generated) / rate(Way::TextFiles),
        "ratio_to_binary": rate(Way::Generated) / rate(Way::BinaryFiles),
    }))
}

/// Rows per second over all runs of a way.
fn pooled(runs: &[Run], way: Way) -> f64 {
    let of = || runs.iter().filter(|run| run.way == way);
    let rows: u64 = of().map(|run| run.rows).sum();
    let seconds: f64 = of().map(|run| run.duration.as_secs_f64()).sum();
    rows as f64 / seconds
}

impl Run {
    fn rows_per_second(&self) -> f64 {
        self.rows as f64 / self.duration.as_secs_f64()
    }

    fn json(&self) -> Value {
        json!({
            "way": self.way.as_str(),
            "seconds": self.duration.as_secs_f64(),
            "rows_per_second": self.rows_per_second(),
            "bytes": self.bytes,
            "megabytes_per_second": self.bytes as f64 / 1e6 / self.duration.as_secs_f64(),
            "peak_memory_mib": self.peak_memory_bytes as f64 / f64::from(1 << 20),
        })
    }
}

impl Bench {
    fn load(&self, parameters: &Parameters) -> Result<Run, Failure> {
        forget_peak_memory()?;
        let options = LoadOptions { parallel: self.parallel, progress: &|_| {} };
        let report = load(&self.target, parameters, &options)?;
        Ok(Run {
            way: Way::Generated,
            rows: report.rows,
            bytes: report.bytes,
            duration: report.rows_duration,
            peak_memory_bytes: peak_memory()?,
        })
    }

    fn check(&self, warehouses: u32) -> Result<Duration, Failure> {
        let options = CheckOptions {
            warehouses,
            parallel: self.parallel,
            moment: CheckMoment::AfterLoad,
            ledger: None,
            tables: &TableNames::underlay(),
        };
        let report = self.runtime.block_on(check(&self.target, options))?;
        if !report.is_clean() {
            return Err(format!("{:?}", report.failures().collect::<Vec<_>>()).into());
        }
        Ok(report.duration)
    }

    fn drop_tables(&self) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let client = self.target.connect().await?;
            // What was copied carries no mark of ours, so the guarded removal would refuse it.
            if drop_schema(&self.target).await.is_err() {
                client.batch_execute("DROP SCHEMA tpcc CASCADE").await?;
            }
            client.batch_execute("CHECKPOINT").await?;
            Ok(())
        })
    }

    fn file(&self, way: Way, table: &str) -> PathBuf {
        self.files.join(format!("{table}.{}", way.format()))
    }

    fn write_files(&self, way: Way) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let client = self.target.connect().await?;
            for table in TABLES {
                let sql = format!("COPY tpcc.{table} TO STDOUT (FORMAT {})", way.format());
                let mut rows = pin!(client.copy_out(&sql).await?);
                let mut file = std::io::BufWriter::new(File::create(self.file(way, table))?);
                while let Some(bytes) = rows.next().await {
                    std::io::Write::write_all(&mut file, &bytes?)?;
                }
                std::io::Write::flush(&mut file)?;
            }
            Ok(())
        })
    }

    fn copy_files(&self, way: Way, rows: u64) -> Result<Run, Failure> {
        self.runtime.block_on(async {
            self.target.connect().await?.batch_execute(schema_sql(Engine::Postgresql)).await?;
            Ok::<(), Failure>(())
        })?;
        forget_peak_memory()?;
        let began = Instant::now();
        let tables = Mutex::new(TABLES.to_vec());
        let copied = std::thread::scope(|scope| {
            let copiers: Vec<_> =
                (0..self.parallel).map(|_| scope.spawn(|| self.copier(way, &tables))).collect();
            let mut bytes = 0;
            for copier in copiers {
                bytes += copier.join().map_err(|_| "a copier panicked")??;
            }
            Ok::<u64, Failure>(bytes)
        })?;
        let duration = began.elapsed();
        let peak_memory_bytes = peak_memory()?;
        Ok(Run { way, rows, bytes: copied, duration, peak_memory_bytes })
    }

    /// Copies tables on a connection of its own until none is left.
    fn copier(&self, way: Way, tables: &Mutex<Vec<&'static str>>) -> Result<u64, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let client = self.target.connect().await?;
            let mut copied = 0;
            loop {
                let Some(table) = tables.lock().map_err(|_| "poisoned")?.pop() else {
                    return Ok(copied);
                };
                client.batch_execute(&format!("BEGIN; TRUNCATE tpcc.{table}")).await?;
                let sql = format!("COPY tpcc.{table} FROM STDIN (FORMAT {}, FREEZE)", way.format());
                let mut sink = pin!(client.copy_in::<_, Bytes>(&sql).await?);
                let mut file = File::open(self.file(way, table))?;
                loop {
                    let mut chunk = BytesMut::zeroed(CHUNK_BYTES);
                    let length = file.read(&mut chunk)?;
                    if length == 0 {
                        break;
                    }
                    chunk.truncate(length);
                    copied += length as u64;
                    sink.send(chunk.freeze()).await?;
                }
                sink.finish().await?;
                client.batch_execute("COMMIT").await?;
            }
        })
    }
}

/// Starts a new account of the peak memory of this process (proc(5), `clear_refs`).
fn forget_peak_memory() -> Result<(), Failure> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

fn peak_memory() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib << 10)
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options {
        warehouses: vec![2, 8],
        parallel: std::thread::available_parallelism()?.get(),
        rounds: 1,
        directory: std::env::temp_dir(),
        json: None,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--warehouses" => {
                options.warehouses = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--parallel" => options.parallel = value.parse()?,
            "--rounds" => options.rounds = value.parse()?,
            "--directory" => options.directory = value.into(),
            "--json" => options.json = Some(value.into()),
            _ => return Err(format!("{name} is not an option").into()),
        }
    }
    // From five on the load divides the tables, which a copy of one file per table cannot.
    if !(1..5).contains(&options.parallel) {
        return Err("--parallel must be 1 to 4".into());
    }
    Ok(options)
}
