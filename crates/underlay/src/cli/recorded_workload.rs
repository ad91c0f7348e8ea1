//! The workload of a record, to be simulated again: shared by `profile`, `predict` and `size`.

use crate::cli::answer;
use crate::cli::cores::cores_of;
use crate::cli::designs::{Named, design_named, is_called, print_problems};
use crate::lab::simulated::observed::observations;
use crate::lab::simulated::{require, seed_of};
use crate::stop::{Stop, chain};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use underlay_core::{Bytes, Evidence};
use underlay_engine::DemandProfile;
use underlay_record::Record;
use underlay_simulation::databases::{
    Assumptions, DemandFile, Effort, Observation, Observed, Range, SinglePlan, cpu_scales,
    default_demands, fitted,
};
use underlay_study::{DatastoreKind, DesignPlan, HostView, Plan, check, recorded_study};

/// Which runs of a record are taken, and what their storage is in the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken<'a> {
    /// Their design; by default the first of the study.
    pub design: Option<&'a str>,
    /// What takes the place of the design's storage; by default what the study says.
    pub storage: Option<&'a str>,
    /// Cores of its host without a CPU limit; by default those of the host that made the record.
    pub cores: Option<u64>,
}

/// A record with one design's windows.
pub struct RecordedWorkload {
    record: PathBuf,
    /// The plan, as it would be on any host. The storage of the measured design is that of the model.
    pub plan: Plan,
    /// Cores of the host without a CPU limit.
    pub cores: u32,
    /// The position of the design in the plan.
    pub design: usize,
    /// What its runs are.
    pub evidence: Evidence,
    /// Its measured windows.
    pub measured: Vec<Observation>,
}

/// What its transactions cost.
pub struct Profiled {
    /// In all windows.
    pub demands: DemandProfile,
    /// The same as a file.
    pub file: DemandFile,
    /// What processor times are multiplied by at each number of users.
    pub cpu_scales: BTreeMap<u32, f64>,
}

impl RecordedWorkload {
    /// Reads it.
    ///
    /// # Errors
    /// Records that cannot be read, or whose workload cannot be simulated.
    pub fn read(path: &Path, taken: Taken<'_>) -> Result<RecordedWorkload, Stop> {
        let record = answer::open(path)?;
        let mut plan = plan_of(&record, path)?;
        let position = match taken.design {
            None => 0,
            Some(name) => {
                plan.designs.iter().position(|it| is_called(it, name)).ok_or_else(|| {
                    let known: Vec<&str> = plan.designs.iter().map(|it| &*it.name).collect();
                    Stop::bad_input(format!("the record has no design `{name}`"))
                        .with_hint(format!("its designs: {}", known.join(", ")))
                })?
            }
        };
        let shown = path.display();
        SinglePlan::new(&plan)
            .map_err(|error| Stop::bad_input(format!("`{shown}` cannot be predicted: {error}")))?;
        if plan.workload.kind.job_sessions().is_some() {
            return Err(Stop::bad_input(format!(
                "`{shown}` cannot be predicted: it is of a job, which has no users"
            )));
        }
        let own = &plan.designs[position];
        if let Some(storage) = taken.storage {
            let Named { design, .. } = design_named(storage, own, &plan.designs)?;
            // Under its own name, by which the plan knows its server, and the record its runs.
            let (name, title) = (own.name.clone(), own.title.clone());
            plan.designs[position] = DesignPlan { name, title, ..design };
        } else if let DatastoreKind::Path { .. } = own.kind {
            return Err(Stop::bad_input(format!(
                "design `{}` of `{shown}` is real storage, which has no model",
                own.name
            ))
            .with_hint(
                "say what it is like: --measured-as with a device (`underlay list devices`), a design, or a \
                 profile that `underlay calibrate` wrote",
            ));
        }
        let cores = cores_of(taken.cores.or(record.manifest().host["cpu_count"].as_u64()))?;
        // The others are not simulated for what they were: one of them may be real storage.
        let alone = Plan { designs: vec![plan.designs[position].clone()], ..plan.clone() };
        require(&alone, &Assumptions::defaults(cores))?;
        let (kind, shape) = (plan.engine.kind, plan.workload.kind.shape());
        let number = u32::try_from(position).unwrap_or(u32::MAX);
        let measured = observations(&record, number, kind, shape)
            .map_err(|error| answer::unreadable(&error, path))?;
        if measured.is_empty() {
            let name = &plan.designs[position].name;
            return Err(Stop::bad_input(format!(
                "`{shown}` has no finished run of the design `{name}` with a measured window"
            )));
        }
        let designs = record.designs().map_err(|error| answer::unreadable(&error, path))?;
        let evidence = designs.get(position).map_or(plan.evidence, |design| design.evidence);
        Ok(RecordedWorkload {
            record: path.to_path_buf(),
            plan,
            cores,
            design: position,
            evidence,
            measured,
        })
    }

    /// Numbers of users that were measured, ascending.
    pub fn rungs(&self) -> Vec<u32> {
        let mut users: Vec<u32> = self.measured.iter().map(|window| window.users).collect();
        users.sort_unstable();
        users.dedup();
        users
    }

    /// The design in itself, simulated; what is seen at each of `rungs`.
    ///
    /// # Errors
    /// What cannot be simulated.
    pub fn own_simulated(
        &self,
        rungs: &[u32],
        assumed: &Assumptions,
        effort: Effort,
    ) -> Result<Vec<Observation>, Stop> {
        let single =
            SinglePlan::new(&self.plan).map_err(|error| Stop::bad_input(error.to_string()))?;
        let design = &self.plan.designs[self.design];
        errln!("simulating: {}", design.title);
        let seed = seed_of(&self.plan, 0);
        let simulated = single.simulate(design, assumed, effort, seed);
        Ok(at_rungs(simulated.map_err(Stop::bad_input)?, rungs))
    }

    /// The demands of its windows at these numbers of users.
    ///
    /// # Errors
    /// What cannot be simulated.
    pub fn profile(&self, rungs: &[u32], effort: Effort) -> Result<Profiled, Stop> {
        let (engine, workload) = (self.plan.engine.kind, &self.plan.workload.kind);
        let defaults = default_demands(engine, workload)
            .ok_or_else(|| Stop::bad_input("no demands are known for this engine and workload"))?;
        let assumed = Assumptions::defaults(self.cores);
        let simulated = self.own_simulated(rungs, &assumed, effort)?;
        let is_used = |window: &&Observation| rungs.contains(&window.users);
        let used: Vec<Observation> = self.measured.iter().filter(is_used).cloned().collect();
        let fit = fitted(&defaults, &used, &simulated);
        let design = &self.plan.designs[self.design];
        let windows = used.len();
        let source = format!(
            "{}: design {}, {}, {windows} windows at {} users",
            self.record.display(),
            design.name,
            self.evidence.as_str(),
            rungs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        );
        let factor = |name, range, of: &str| Observed {
            name,
            range,
            source: format!(
                "{of} per transaction in {windows} windows, over the same simulated with the \
                 default demands"
            ),
        };
        let seen = |name, of: &dyn Fn(&Observation) -> Option<f64>, source: &str| Observed {
            name,
            range: Range::of(used.iter().filter_map(of)),
            source: source.to_string(),
        };
        let rest = vec![
            seen(
                "cpu-us-per-transaction",
                &|it| Some(it.costs.cpu_ns? / 1e3),
                "CPU time of the server's processes",
            ),
            seen(
                "background-cpu-us-per-transaction",
                &|it| Some(it.costs.background_ns? / 1e3),
                "CPU time of the server's processes and threads less that of its sessions",
            ),
            seen(
                "client-cpu-us-per-transaction",
                &|it| Some(it.costs.client_ns? / 1e3),
                "CPU time of the load generator",
            ),
            seen(
                "io-cpu-us-per-request",
                &|it| Some(it.costs.io_ns? / 1e3),
                "CPU time of the kernel's threads and of the emulator",
            ),
            seen("log-bytes-per-transaction", &|it| it.costs.log_bytes, "the server's log"),
            seen(
                "full-page-share",
                &|it| Some((it.costs.image_bytes? / it.costs.log_bytes?).min(1.0)),
                "page images in the log at 8 KiB each; holes in them make it an upper bound",
            ),
            seen("pages-missed-per-transaction", &|it| it.costs.pages_missed, "the server's cache"),
            seen(
                "pages-written-per-transaction",
                &|it| it.costs.pages_written,
                "the server's writers",
            ),
        ];
        let (engine, workload) =
            (self.plan.engine.kind.as_str(), self.plan.workload.kind.shape().name);
        let factors = [
            factor("cpu-factor", fit.cpu, "CPU time of sessions"),
            factor("log-factor", fit.log, "log bytes without page images"),
        ];
        let file = DemandFile::new((engine, workload), source, &fit, factors, rest);
        let cpu_scales = cpu_scales(&used, &simulated);
        Ok(Profiled { demands: fit.demands, file, cpu_scales })
    }
}

fn plan_of(record: &Record, path: &Path) -> Result<Plan, Stop> {
    let (source, mut options) = recorded_study(&record.manifest().plan).map_err(|error| {
        Stop::bad_input(format!("`{}` cannot be planned again: {}", path.display(), chain(&error)))
            .with_hint(
                "this takes records of `underlay run`; those of `drive` and `io` have no study",
            )
    })?;
    options.out = None;
    let (_, mut plan) = check(&source, &options, &HostView::unlimited())
        .map_err(|problems| print_problems(&problems))?;
    // It has phases of its own, which are not looked at.
    plan.procedure.causal = None;
    // A server without a limit had the memory of its host.
    let memory = record.manifest().host["memory_bytes"].as_u64().map(Bytes);
    for part in plan.databases.iter_mut().flat_map(|database| &mut database.parts) {
        if part.host.is_none() {
            part.engine.memory_limit = part.engine.memory_limit.or(memory);
        }
    }
    Ok(plan)
}

/// Reads a demand profile.
///
/// # Errors
/// Files that are none, or for something else.
pub fn demands_of(path: &Path, plan: &Plan) -> Result<DemandProfile, Stop> {
    let shown = path.display();
    let text = underlay_host::read_small_text(path)
        .map_err(|error| Stop::bad_input(format!("could not read `{shown}`: {error}")))?;
    let (engine, workload) = (plan.engine.kind.as_str(), plan.workload.kind.shape().name);
    DemandFile::parse(&text).and_then(|file| file.demands(engine, workload)).map_err(|error| {
        Stop::bad_input(format!("`{shown}`: {error}"))
            .with_hint("`underlay profile RECORD` writes one")
    })
}
/// What a simulated run shows at numbers of users, in their order.
pub fn at_rungs(simulated: Vec<Observation>, rungs: &[u32]) -> Vec<Observation> {
    let at = |users: &u32| simulated.iter().find(|it| it.users == *users).cloned();
    rungs.iter().filter_map(at).collect()
}
