//! The loaded database that every run starts from: made once per population and server version, kept
//! between executions.
//!
//! It is loaded on the host's own storage, outside any design: all runs of all designs start from the
//! same bytes, and a slow design need not be loaded through. While loading, the server neither flushes nor
//! logs (a crash then means loading again); what is kept is made durable when it is captured, and every
//! consistency condition is checked before.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use underlay_database::load_report::LoadReport;
use underlay_database::managed::{Install, Listen, Server, ServerSpec, StopMode, Template};
use underlay_database::{Engine, Target};
use underlay_host::{ExclusiveLock, HostError, StateDir, Teardown, User};
use underlay_record::CheckMoment;
use underlay_record::conventions::document;

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::interrupt;
use crate::lab::shared_recorder::SharedRecorder;
use crate::lab::verification::{Verified, crash_behind, made};
use crate::lab::workload::{Access, AnySubject, Progress, load_document};

/// Version of the way templates are made. A change makes older ones unused.
const TEMPLATE_FORMAT: u32 = 1;

/// What a template is made from.
pub struct TemplateSpec<'a> {
    /// Underlay's own folder.
    pub state: &'a StateDir,
    /// The server programs; their major version and build belong to the template's key.
    pub install: &'a Install,
    /// The workload, whose population is loaded.
    pub subject: &'a dyn AnySubject,
    /// Who the server runs as.
    pub user: Option<&'a User>,
    /// For the checks.
    pub runtime: &'a Runtime,
}

impl TemplateSpec<'_> {
    fn key(&self) -> String {
        let engine = self.install.engine();
        let population = self.subject.population_identity(engine);
        let short = &population[..population.len().min(16)];
        format!(
            "{}-{}{}-{short}-{TEMPLATE_FORMAT}",
            self.subject.population(),
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

    /// Waits while another execution loads the same template.
    fn lock(&self) -> Result<ExclusiveLock, HostError> {
        self.state.lock_template(&self.key())
    }
}

/// The templates of all databases at all points of a study, in their order. Those with the same population share one.
pub fn ensure_all(
    specs: &[TemplateSpec<'_>],
    recorder: &SharedRecorder,
    observer: &mut dyn Observer,
) -> Result<Vec<Template>, Abort> {
    let mut known: Vec<(String, Template)> = Vec::new();
    let mut templates = Vec::new();
    for spec in specs {
        let key = spec.key();
        let template = match known.iter().find(|(of, _)| *of == key) {
            Some((_, template)) => template.clone(),
            None => {
                // The first load is the record's; those of further populations are known by what was loaded.
                let name = match known.is_empty() {
                    true => document::LOAD.to_string(),
                    false => format!("{}-{key}", document::LOAD),
                };
                let template = ensure(spec, &name, recorder, observer)?;
                known.push((key, template.clone()));
                template
            }
        };
        templates.push(template);
    }
    Ok(templates)
}

/// The template, from an earlier execution or loaded now.
fn ensure(
    spec: &TemplateSpec<'_>,
    name: &str,
    recorder: &SharedRecorder,
    observer: &mut dyn Observer,
) -> Result<Template, Abort> {
    // Two executions at once would load the same template twice: the second waits for the first.
    let _lock = spec.lock().during("wait for another load to finish")?;
    let began = Instant::now();
    // A template that cannot be opened is torn or absent: load it again.
    if let Ok(template) = Template::open(spec.install.engine(), &spec.directory()) {
        let size = template.manifest().bytes;
        observer.notice(&Event::TemplateReady {
            reused: true,
            size,
            elapsed: began.elapsed().into(),
        });
        return Ok(template);
    }
    let (template, loaded) = make(spec, observer)?;
    let size = template.manifest().bytes;
    observer.notice(&Event::TemplateReady { reused: false, size, elapsed: began.elapsed().into() });
    recorder
        .lock()
        .write_document(None, name, &load_document(&loaded, began.elapsed()))
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
    let database = spec.subject.database();
    // On MariaDB a database is a schema, which the load makes.
    if engine == Engine::Postgresql {
        spec.runtime.block_on(async {
            let client = target.connect().await.during("connect")?;
            client
                .batch_execute(&format!("CREATE DATABASE {database}"))
                .await
                .during("create the database")
        })?;
    }
    let target = target.with_database(database);
    let loaded = load_watched(access(spec.runtime, &target), spec.subject, observer)?;
    check_loaded(spec, &mut server, &target)?;
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
    Ok((template, loaded))
}

/// A server that Underlay manages, reached with all processors.
pub fn access<'a>(runtime: &'a Runtime, target: &'a Target) -> Access<'a> {
    let parallel = std::thread::available_parallelism().map_or(1, usize::from);
    Access { runtime, target, parallel }
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
    access: Access<'_>,
    subject: &dyn AnySubject,
    observer: &mut dyn Observer,
) -> Result<LoadReport, Abort> {
    let reached = Mutex::new(Progress { share: 0.0, rows: 0 });
    std::thread::scope(|scope| {
        let loader = scope.spawn(|| {
            subject.load(access, &|progress| {
                *reached.lock().unwrap_or_else(PoisonError::into_inner) = progress;
            })
        });
        while !loader.is_finished() {
            let Progress { share, rows } = *reached.lock().unwrap_or_else(PoisonError::into_inner);
            observer.notice(&Event::TemplateLoading { share, rows });
            if interrupt::requested() {
                // The load cannot be cut off half-way, but its server can: see the teardown stack.
                return Err(Abort::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let loaded = loader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(loaded?.report)
    })
}

fn check_loaded(
    spec: &TemplateSpec<'_>,
    server: &mut Server,
    target: &Target,
) -> Result<(), Abort> {
    let session = spec.subject.session();
    let results = session.check(access(spec.runtime, target), CheckMoment::Before);
    let crash = crash_behind(&results, server)?;
    match Verified::of(&made(results, crash.as_deref())?, crash.as_deref())? {
        Verified::Clean => Ok(()),
        Verified::Broken(broken) => {
            Err(Abort::Failed(format!("the loaded population is not consistent: {broken}")))
        }
    }
}
