//! The loaded database that every run starts from: made once per population and server version, kept
//! between executions.
//!
//! It is loaded on the host's own storage, outside any design: all runs of all designs start from the
//! same bytes, and a slow design need not be loaded through. While loading, the server neither flushes nor
//! logs (a crash then means loading again); what is kept is made durable when it is captured, and every
//! consistency condition is checked before.

use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use underlay_core::Nanos;
use underlay_database::Engine;
use underlay_database::managed::{Install, Listen, Server, ServerSpec, StopMode, Template};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, LoadOptions, LoadReport, LoadStage, Mode, TableNames, check,
    identity, load,
};
use underlay_host::{StateDir, Teardown, User};
use underlay_record::conventions::document;
use underlay_workload::tpcc::Parameters;

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::interrupt;
use crate::lab::recording::SharedRecorder;
use crate::lab::verification::describe;

/// The database that holds the workload's tables in every managed server.
pub const DATABASE: &str = "tpcc";

/// Version of the way templates are made. A change makes older ones unused.
const TEMPLATE_FORMAT: u32 = 1;

/// What a template is made from.
pub struct TemplateSpec<'a> {
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// The server programs; their major version and build belong to the template's key.
    pub install: &'a Install,
    /// The population.
    pub parameters: &'a Parameters,
    /// Who the server runs as.
    pub user: Option<&'a User>,
    /// For the checks.
    pub runtime: &'a Runtime,
}

impl TemplateSpec<'_> {
    fn key(&self) -> String {
        let engine = self.install.engine();
        let population = identity(engine, self.parameters, Mode::Procedures).to_string();
        let short = &population[..population.len().min(16)];
        format!(
            "tpcc-{}w-{}{}-{short}-{TEMPLATE_FORMAT}",
            self.parameters.warehouses,
            match engine {
                Engine::Postgresql => "pg",
                Engine::Mariadb => self.install.product(),
            },
            self.install.version()
        )
    }

    fn directory(&self) -> PathBuf {
        self.state.templates_dir().join(self.key())
    }
}

/// The template, from an earlier execution or loaded now.
pub fn ensure(
    spec: &TemplateSpec<'_>,
    recorder: &SharedRecorder,
    observer: &mut dyn Observer,
) -> Result<Template, Abort> {
    // Two executions at once would load the same template twice: the second waits for the first.
    let _lock = spec.state.lock("templates").during("wait for another load to finish")?;
    let began = Instant::now();
    // What cannot be opened is torn or absent: load it anew.
    if let Ok(template) = Template::open(spec.install.engine(), &spec.directory()) {
        let size = template.manifest().bytes;
        observer.notice(&Event::TemplateReady {
            reused: true,
            size,
            elapsed: began.elapsed().into(),
        });
        return Ok(template);
    }
    let (template, report) = make(spec, observer)?;
    let size = template.manifest().bytes;
    observer.notice(&Event::TemplateReady { reused: false, size, elapsed: began.elapsed().into() });
    recorder
        .lock()
        .write_document(
            None,
            document::LOAD,
            &json!({
                "rows": report.rows,
                "bytes": report.bytes,
                "rows_ns": Nanos::from(report.rows_duration).0,
                "keys_ns": Nanos::from(report.keys_duration).0,
                "settle_ns": Nanos::from(report.settle_duration).0,
                "total_ns": Nanos::from(began.elapsed()).0,
            }),
        )
        .during("write the record")?;
    Ok(template)
}

fn make(
    spec: &TemplateSpec<'_>,
    observer: &mut dyn Observer,
) -> Result<(Template, LoadReport), Abort> {
    let teardown =
        Teardown::create(spec.state, "template").during("keep a list of what is created")?;
    let result = load_and_capture(spec, &teardown, observer);
    teardown.unwind();
    result
}

fn load_and_capture(
    spec: &TemplateSpec<'_>,
    teardown: &Teardown,
    observer: &mut dyn Observer,
) -> Result<(Template, LoadReport), Abort> {
    let scratch = spec.state.scratch_dir(&format!("{}-load", std::process::id()));
    teardown.create_directory(&scratch).during("create a folder for the load")?;
    let engine = spec.install.engine();
    let server_spec = ServerSpec {
        name: "template".to_string(),
        install: spec.install.clone(),
        data: scratch.join("data"),
        wal: scratch.join("wal"),
        backup: scratch.join("backup"),
        settings: load_settings(engine),
        run_as: spec.user.cloned(),
        cgroup: None,
        runtime_dir: scratch.join("pg"),
        listen: Listen::UnixSocket,
    };
    let mut server = Server::create(teardown, server_spec).during("create the database cluster")?;
    server.start().during("start the database server")?;
    let target = server.target();
    // On MariaDB a database is a schema, which the load makes.
    if engine == Engine::Postgresql {
        spec.runtime.block_on(async {
            let client = target.connect().await.during("connect")?;
            client
                .batch_execute(&format!("CREATE DATABASE {DATABASE}"))
                .await
                .during("create the database")
        })?;
    }
    let target = target.with_database(DATABASE);
    let report = load_watched(&target, spec.parameters, observer)?;
    check_loaded(spec, &target)?;
    server.stop(StopMode::Fast).during("stop the database server")?;
    if engine == Engine::Mariadb {
        // The log that a template carries is as large as that of its last start, and everything that the
        // load left to do later is done before a stop that is not fast.
        server.set_settings(settings(&[
            ("innodb_log_file_size", "8M"),
            ("innodb_fast_shutdown", "0"),
        ]));
        server.start().during("start the database server again")?;
        server.stop(StopMode::Fast).during("stop the database server")?;
    }
    let labels = BTreeMap::from([("key".to_string(), spec.key())]);
    let (template, _) = Template::capture(&mut server, &spec.directory(), labels)
        .during("keep the loaded database")?;
    Ok((template, report))
}

/// Settings for a load whose result is made durable afterwards.
fn load_settings(engine: Engine) -> BTreeMap<String, String> {
    match engine {
        Engine::Postgresql => settings(&[
            ("fsync", "off"),
            ("full_page_writes", "off"),
            ("synchronous_commit", "off"),
            ("wal_level", "minimal"),
            ("max_wal_senders", "0"),
            ("max_wal_size", "8GB"),
            ("checkpoint_timeout", "1h"),
            ("shared_buffers", "512MB"),
            ("autovacuum", "off"),
        ]),
        Engine::Mariadb => settings(&[
            ("innodb_flush_log_at_trx_commit", "0"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_log_file_size", "1G"),
            ("innodb_buffer_pool_size", "512M"),
            ("innodb_io_capacity", "2000"),
        ]),
    }
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Loads on threads of their own, telling the observer meanwhile.
fn load_watched(
    target: &underlay_database::Target,
    parameters: &Parameters,
    observer: &mut dyn Observer,
) -> Result<LoadReport, Abort> {
    let (rows, expected) = (AtomicU64::new(0), AtomicU64::new(1));
    let stage = Mutex::new(LoadStage::Rows);
    let parallel = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let loader = scope.spawn(|| {
            load(
                target,
                parameters,
                &LoadOptions {
                    parallel,
                    progress: &|progress| {
                        rows.store(progress.rows, Ordering::Relaxed);
                        expected.store(progress.rows_expected.max(1), Ordering::Relaxed);
                        if let Ok(mut stage) = stage.lock() {
                            *stage = progress.stage;
                        }
                    },
                },
            )
        });
        while !loader.is_finished() {
            let (rows, expected) = (rows.load(Ordering::Relaxed), expected.load(Ordering::Relaxed));
            let copied = (rows as f64 / expected as f64).min(1.0);
            let share = match stage.lock().map_or(LoadStage::Rows, |stage| *stage) {
                LoadStage::Rows => 0.6 * copied,
                LoadStage::Keys => 0.6,
                LoadStage::Settle => 0.8,
            };
            observer.notice(&Event::TemplateLoading { share, rows });
            if interrupt::requested() {
                // The load cannot be cut off half-way, but its server can: see the teardown stack.
                return Err(Abort::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        loader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .during("load the population")
    })
}

fn check_loaded(spec: &TemplateSpec<'_>, target: &underlay_database::Target) -> Result<(), Abort> {
    let tables = TableNames::of(target.engine);
    let options = CheckOptions {
        warehouses: spec.parameters.warehouses,
        parallel: std::thread::available_parallelism().map_or(1, usize::from),
        moment: CheckMoment::AfterLoad,
        ledger: None,
        tables: &tables,
    };
    let report =
        spec.runtime.block_on(check(target, options)).during("check the loaded database")?;
    match report.failures().next() {
        None => Ok(()),
        Some(result) => Err(Abort::Failed(format!(
            "the loaded population is not consistent: {}",
            describe(result.id, result.title, &result.outcome)
        ))),
    }
}
