//! The load that a family of designs must sustain: a database and its users, from a record, from a
//! study, or described by a few options.
//!
//! Options become a study, so that all rules of studies hold; its volumes follow from the size of the
//! database.

use super::arguments::Arguments;
use crate::cli::complaints::Complaints;
use crate::cli::designs::print_problems;
use crate::cli::own_row::{ModelErrors, OwnRow};
use crate::cli::recorded_workload::{RecordedWorkload, Taken, demands_of};
use crate::cli::studies::{self, Form};
use crate::lab::simulated::require;
use crate::stop::Stop;
use underlay_core::Bytes;
use underlay_simulation::databases::{Assumptions, Effort};
use underlay_study::{EngineKind, HostView, Plan, PlanOptions, Source, check};

/// Sessions of a workload that is described by options.
const SESSIONS: u32 = 64;
/// A data volume is this much larger than the loaded database: for growth and the file system.
const GROWTH: f64 = 1.25;
const GIB: u64 = 1 << 30;
/// What a server of that memory is usually given, as a share of it: shared buffers of PostgreSQL (its
/// manual's advice), the buffer pool of InnoDB; and the log between checkpoints of either.
const SHARED_BUFFERS: f64 = 0.25;
const BUFFER_POOL: f64 = 0.75;
const LOG: f64 = 0.25;
/// No less log, whatever the memory.
const LOG_LEAST: Bytes = Bytes::from_gib(1);

/// A workload on its way to any storage.
pub struct Basis {
    /// The study.
    pub plan: Plan,
    /// The design of it that the base design takes its volumes and its server from.
    pub design: usize,
    /// What it leaves open.
    pub assumed: Assumptions,
    /// Where the demands come from, for people.
    pub demands: String,
    /// The model's errors on the recorded design, of a record whose demands are used.
    pub errors: Option<ModelErrors>,
    /// Sessions, unless others are asked for.
    pub sessions: u32,
}

impl Basis {
    /// Reads or makes it.
    ///
    /// # Errors
    /// What cannot be read, or simulated.
    pub fn of(arguments: &Arguments, cores: u32) -> Result<Basis, Stop> {
        let mut basis = match (&arguments.record, &arguments.study) {
            (Some(record), _) => {
                let taken = Taken {
                    design: arguments.measured.as_deref(),
                    storage: arguments.measured_as.as_deref(),
                    cores: arguments.cores,
                };
                let workload = RecordedWorkload::read(record, taken)?;
                let rungs = workload.rungs();
                let mut assumed = Assumptions::defaults(workload.cores);
                let errors = match arguments.demands {
                    Some(_) => None,
                    None => {
                        let profiled = workload.profile(&rungs, Effort::PRECISE)?;
                        assumed.demands = Some(profiled.demands);
                        let own = workload.own_simulated(&rungs, &assumed, Effort::PRECISE)?;
                        Some(ModelErrors::of(&OwnRow::all(own, &workload.measured)))
                    }
                };
                Basis {
                    sessions: rungs.last().copied().unwrap_or(1),
                    design: workload.design,
                    assumed,
                    plan: workload.plan,
                    demands: "the record".to_string(),
                    errors,
                }
            }
            (None, Some(study)) => {
                let source = studies::find(study)?;
                let options = PlanOptions::default();
                let (_, plan) = studies::plan_for_any_host(&source, &options, Form::Text)?;
                Basis { sessions: plan.procedure.most_users(), ..Basis::with_defaults(plan, cores) }
            }
            (None, None) => {
                Basis { sessions: SESSIONS, ..Basis::with_defaults(described(arguments)?, cores) }
            }
        };
        if let Some(path) = &arguments.demands {
            basis.assumed.demands = Some(demands_of(path, &basis.plan)?);
            basis.demands = path.display().to_string();
        }
        Ok(basis)
    }

    fn with_defaults(plan: Plan, cores: u32) -> Basis {
        Basis {
            plan,
            design: 0,
            assumed: Assumptions::defaults(cores),
            demands: "the defaults of engine and workload".to_string(),
            errors: None,
            sessions: SESSIONS,
        }
    }

    /// Refuses what cannot be simulated on any storage.
    ///
    /// # Errors
    /// All reasons.
    pub fn require(&self) -> Result<(), Stop> {
        // Real storage of the study is not simulated here, only what takes its place.
        let mut plan = self.plan.clone();
        plan.designs = vec![self.plan.designs[self.design].clone()];
        require(&plan, &self.assumed)
    }
}

/// Notes what is missing or too much to know the workload.
pub fn check_choice(arguments: &Arguments, complaints: &mut Complaints) {
    let sources =
        [arguments.record.is_some(), arguments.study.is_some(), arguments.workload.is_some()];
    match sources.iter().filter(|given| **given).count() {
        1 => {}
        0 => complaints.add_with_hint(
            "the workload is missing",
            "give --workload tpcc with --warehouses and --memory, or --study FILE, or --record FILE",
        ),
        _ => complaints.add("--workload, --study and --record exclude each other"),
    }
    let described = [
        ("--warehouses", arguments.warehouses.is_some()),
        ("--memory", arguments.memory.is_some()),
        ("--engine", arguments.engine.is_some()),
    ];
    if arguments.workload.is_some() {
        for (option, given) in &described[..2] {
            if !given {
                complaints.add(format!("--workload needs {option}"));
            }
        }
        if arguments.design.is_none() {
            complaints.add_with_hint(
                "--workload needs --design, the design that is varied",
                "for example --design six-hosts; `underlay list designs` lists them",
            );
        }
    } else {
        for (option, given) in described {
            if given {
                complaints
                    .add(format!("{option} belongs to --workload; a study or record has its own"));
            }
        }
    }
    if arguments.warehouses.is_some_and(|number| !(1..=1_000_000).contains(&number)) {
        complaints.add("--warehouses must lie in 1 to 1000000");
    }
    if arguments.memory.is_some_and(|memory| memory < Bytes::from_mib(64)) {
        complaints.add("--memory must be at least 64 MiB");
    }
    if arguments.engine == Some(EngineKind::Mysql) {
        complaints.add("MySQL is not simulated, PostgreSQL and MariaDB are");
    }
}

/// The study of a TPC-C database with as many warehouses on a server with that memory.
fn described(arguments: &Arguments) -> Result<Plan, Stop> {
    let warehouses = arguments.warehouses.unwrap_or(1);
    let memory = arguments.memory.unwrap_or(Bytes::from_gib(1));
    let engine = arguments.engine.unwrap_or_default();
    let of_memory = |share: f64| Bytes((memory.0 as f64 * share) as u64);
    let log = of_memory(LOG).max(LOG_LEAST);
    let mib = |size: Bytes| size.0 >> 20;
    let settings = match engine {
        EngineKind::Postgresql => format!(
            "shared_buffers = \"{}MB\"\nmax_wal_size = \"{}MB\"\n",
            mib(of_memory(SHARED_BUFFERS)),
            mib(log)
        ),
        EngineKind::Mariadb | EngineKind::Mysql => format!(
            "innodb_buffer_pool_size = \"{}M\"\ninnodb_log_file_size = \"{}M\"\n",
            mib(of_memory(BUFFER_POOL)),
            mib(log)
        ),
    };
    let (users, name) = (SESSIONS, engine.as_str());
    let text = format!(
        "name = \"size\"\nquestion = \"Which design is enough?\"\n\
         [engine]\nkind = \"{name}\"\nmemory-limit = \"{}MiB\"\n[engine.settings]\n{settings}\
         [volumes]\ndata = {{ capacity = \"200TiB\" }}\nwal = {{ capacity = \"{}MiB\" }}\n\
         backup = {{ capacity = \"1GiB\" }}\n\
         [[design]]\nuse = \"null\"\n\
         [workload.tpcc]\nwarehouses = {warehouses}\nhome-warehouse = \"drawn\"\n\
         [procedure]\nusers = [{users}]\n",
        mib(memory),
        mib(log) * 2
    );
    let source = Source { name: "the options of `size`".to_string(), text };
    let checked = check(&source, &PlanOptions::default(), &HostView::unlimited());
    let (_, mut plan) = checked.map_err(|problems| print_problems(&problems))?;
    let database = plan.estimates.database.0 as f64 * GROWTH;
    let data = Bytes((database / GIB as f64).ceil() as u64 * GIB);
    for volume in plan.designs.iter_mut().flat_map(|design| &mut design.volumes) {
        if volume.name == "data" {
            volume.capacity = data;
        }
    }
    Ok(plan)
}
