//! From file types to the plan: layers are merged, options and scale applied, everything is checked.
//!
//! Nothing stops at the first problem. A part that cannot be resolved is `None` and silences the checks
//! that would need it; a plan exists only when no problem was found.

mod background;
mod block_procedure;
mod chosen;
mod client;
pub(crate) mod cluster;
pub(crate) mod databases;
mod datastore;
mod design;
mod engine;
mod faults;
mod io_profiles;
mod job_procedure;
mod moment;
mod names;
mod plan_lints;
mod procedure;
mod procedure_keys;
mod published;
mod repeats;
mod search;
mod server;
mod time_dilation;
mod volumes;
mod weights;
mod workload;

use std::collections::HashSet;

use underlay_core::{Bytes, Evidence, RootSeed};

use crate::builtin;
use crate::estimate;
use crate::file;
use crate::finding::{Finding, Severity};
use crate::host_view::HostView;
use crate::options::PlanOptions;
use crate::plan::{
    AxisPlan, DatabasePart, DatabasePlan, DatastoreKind, DesignPlan, EngineKind, EnginePlan, Order,
    Plan, ProcedurePlan, RunPlan, Scale, Setting, Sizes, WorkloadPlan,
};
use crate::problem::Source;
use crate::report::Report;

use chosen::{Chosen, Layer, Pick, pick};
use databases::Role;
use engine::EngineChoice;
use io_profiles::OwnIoProfiles;
pub(crate) use names::{proposed, unsafe_because};
use volumes::VolumeChoice;
use workload::VolumeScale;

/// What a resolution works with and collects.
pub(crate) struct Resolver<'a> {
    source: &'a Source,
    text: &'a str,
    file: &'a file::Study,
    defaults: &'static file::Study,
    options: &'a PlanOptions,
    /// What the study varies besides designs and users; `file` is the study at one of their points.
    axes: &'a [AxisPlan],
    host: &'a HostView<'a>,
    scale: Scale,
    /// The study's engine, once it is decided.
    kind: EngineKind,
    /// The study's own block loads, once they were read.
    io_profiles: Option<OwnIoProfiles>,
    /// How volumes are scaled; of a block load once that is.
    volume_scale: VolumeScale,
    /// What of the study is resolved, where it has several databases.
    role: Role<'a>,
    /// The volumes that each design has of its own, by its name.
    own_volumes: Vec<(String, Vec<VolumeChoice>)>,
    pub report: Report,
    findings: Vec<Finding>,
    provenance: Vec<Setting>,
}

impl<'a> Resolver<'a> {
    /// Prepares to resolve `file`, which was read from `source` with the problems in `report`.
    pub fn new(
        source: &'a Source,
        file: &'a file::Study,
        (options, axes): (&'a PlanOptions, &'a [AxisPlan]),
        host: &'a HostView<'a>,
        report: Report,
    ) -> Resolver<'a> {
        Resolver {
            source,
            text: &source.text,
            file,
            defaults: builtin::defaults(),
            options,
            axes,
            host,
            scale: options.scale.unwrap_or(Scale::FULL),
            kind: EngineKind::default(),
            io_profiles: None,
            volume_scale: VolumeScale::of(options.scale.unwrap_or(Scale::FULL)),
            role: Role::Only,
            own_volumes: Vec::new(),
            report,
            findings: Vec::new(),
            provenance: Vec::new(),
        }
    }

    /// Whether an axis varies this key, of the study or of a design.
    fn varies(&self, key: &str) -> bool {
        let is_key = |path: &String| {
            path.strip_suffix(key).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        self.axes.iter().flat_map(|axis| &axis.keys).any(is_key)
    }

    /// The plan, unless there is any problem.
    pub fn resolve(&mut self) -> Option<Plan> {
        let identity = self.identity();
        let seed = self.seed();
        let full_engine = self.study_engine();
        let engine = full_engine.scaled_whole(self.scale);
        if !self.is_block_load() {
            engine.record(&mut self.provenance);
        }
        let client = self.study_client();
        let full_workload = self.workload();
        let workload = full_workload.as_ref().map(|full| self.scale_workload(full));
        let procedure = self.procedure(workload.as_ref());
        let designs = self.designs((&engine, &client), workload.as_ref(), &procedure);
        self.check_start(&designs);
        let kind = workload.as_ref().map(|workload| workload.kind());
        let weights = self.weights(&designs, &procedure, kind.as_ref());
        let background = self.background(&designs, &procedure, kind.as_ref());
        let faults = self.faults(&designs, &procedure);
        self.refuse_background_with_power_cuts(&background, &faults);
        self.check_time_dilation(procedure.time_dilation.as_ref(), &designs, &background);
        // One of several databases knows neither the faults nor the background work that designs may differ in.
        if !matches!(self.role, Role::Member) {
            self.doubt_designs(&designs, &background, &faults);
        }
        let published = self.published();
        if let Some(repeats) = &procedure.repeats {
            let points: usize = self.axes.iter().map(|axis| axis.points.len()).product();
            self.check_repeats_of(repeats, designs.len() * points);
        }

        let (name, title, question) = identity?;
        let (full_workload, workload) = (full_workload?, workload?);
        let (procedure, ladder) = (procedure.plan?, procedure.ladder?);
        if !self.report.is_empty() || designs.is_empty() {
            return None;
        }
        let workload_plan = workload.plan(seed?);
        let full_size = Sizes {
            cpus: full_engine.cpus(),
            memory_limit: full_engine.memory_limit(),
            population: full_workload.kind().population(),
            database: estimate::database(&full_workload.kind()),
            users: ladder.full,
        };
        let size = Sizes {
            cpus: engine.cpus(),
            memory_limit: engine.memory_limit(),
            population: workload_plan.kind.population(),
            database: estimate::database(&workload_plan.kind),
            users: procedure.users.clone(),
        };
        let engine = engine.plan()?;
        let databases = self.databases(&designs, (&engine, &workload_plan), (&full_size, &size));
        let (full_size, size) =
            (sum_of(&databases, full_size, true), sum_of(&databases, size, false));
        let mut plan = Plan {
            name,
            title,
            question,
            deviations: self.file.deviations.get().cloned().unwrap_or_default(),
            seed: RootSeed(seed?),
            evidence: designs.iter().map(|design| design.evidence).max()?,
            engine,
            schedule: schedule(designs.len(), &procedure, RootSeed(seed?)),
            workload: workload_plan,
            databases,
            procedure,
            weights,
            background,
            faults,
            scale: self.scale,
            full_size,
            size,
            estimates: estimate::Estimates::default(),
            published,
            findings: Vec::new(),
            out: self.options.out.clone(),
            provenance: Vec::new(),
            source: self.source.clone(),
            options: self.options.clone(),
            designs,
            axes: Vec::new(),
            points: Vec::new(),
        };
        plan.estimates = estimate::estimates(&plan, self.host);
        self.lint_plan(&plan);
        if !self.report.is_empty() {
            return None;
        }
        plan.findings = std::mem::take(&mut self.findings);
        plan.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        plan.provenance = std::mem::take(&mut self.provenance);
        Some(plan)
    }

    /// The databases of the plan: those that were resolved before, or the only one.
    fn databases(
        &self,
        designs: &[DesignPlan],
        (engine, workload): (&EnginePlan, &WorkloadPlan),
        (full_size, size): (&Sizes, &Sizes),
    ) -> Vec<DatabasePlan> {
        if let Role::Whole(members) = self.role {
            return members.iter().flat_map(|member| member.plan.clone()).collect();
        }
        let part = |design: &DesignPlan| DatabasePart {
            design: design.name.clone(),
            engine: design.engine.clone(),
            client: design.client,
            volumes: design.volumes.clone(),
            host: None,
        };
        vec![DatabasePlan {
            name: String::new(),
            engine: engine.clone(),
            workload: workload.clone(),
            full_size: full_size.clone(),
            size: size.clone(),
            parts: designs.iter().map(part).collect(),
        }]
    }

    fn identity(&mut self) -> Option<(String, String, String)> {
        let name = self.require("name", &self.file.name, "name = \"my-study\"");
        let question = self.require("question", &self.file.question, "question = \"Does ...?\"");
        let title = self.pick("title", &[(Layer::File, &self.file.title)]).found();
        if let Some(name) = &name {
            self.check_name(name);
        }
        if let Some(question) = &question
            && question.value.trim().is_empty()
        {
            question.problem(
                &mut self.report,
                "empty",
                "`question` is empty",
                "a study without a question has no answer",
                "ask what the comparison is to show",
            );
            return None;
        }
        let (name, question) = (name?, question?);
        for chosen in [Some(&name), title.as_ref(), Some(&question)].into_iter().flatten() {
            self.provenance.push(chosen.setting(chosen.value.clone()));
        }
        let title = title.map_or_else(|| name.value.clone(), |title| title.value);
        Some((name.value, title, question.value))
    }

    fn seed(&mut self) -> Option<u64> {
        let seed = match self.options.seed {
            Some(seed) => Chosen::command_line(seed, "seed", "--seed"),
            None => self
                .pick(
                    "seed",
                    &[(Layer::File, &self.file.seed), (Layer::Default, &self.defaults.seed)],
                )
                .found()?,
        };
        self.provenance.push(seed.setting(seed.value.to_string()));
        Some(seed.value)
    }

    /// What runs begin with, which only clusters know.
    fn check_start(&mut self, designs: &[DesignPlan]) {
        const PATH: &str = "start.fill-percent";
        let entry = &self.file.start.fill_percent;
        let Pick::Found(percent) = self.pick(PATH, &[(Layer::File, entry)]) else { return };
        self.provenance.push(percent.setting(percent.value.to_string()));
        let others =
            || designs.iter().filter(|design| !matches!(design.kind, DatastoreKind::Cluster(_)));
        if !designs.is_empty() && others().count() == designs.len() {
            percent.problem(
                &mut self.report,
                "conflict",
                "`start.fill-percent` has no meaning for these designs",
                "none of them is a cluster",
                "remove it; only the capacity devices of clusters can be filled",
            );
            return;
        }
        for design in others() {
            self.finding(
                Severity::Note,
                "not-filled",
                format!("design `{}` is no cluster and begins without other data", design.name),
                "compare it with care: the others begin filled",
                percent.line(self.text),
            );
        }
    }

    fn study_engine(&mut self) -> EngineChoice {
        if self.is_block_load() {
            self.refuse_engines();
            let default = [(Layer::Default, &self.defaults.engine.content)];
            return self.engine("engine", &default);
        }
        let layers = [
            (Layer::File, &self.file.engine.content),
            (Layer::Default, &self.defaults.engine.content),
        ];
        self.engine("engine", &layers)
    }

    fn pick<T: Clone>(
        &self,
        path: &str,
        candidates: &[(Layer<'_>, &crate::entry::Entry<T>)],
    ) -> Pick<T> {
        pick(self.text, path, candidates)
    }

    /// A key of the top of the file that has no default.
    fn require<T: Clone>(
        &mut self,
        path: &str,
        entry: &crate::entry::Entry<T>,
        example: &str,
    ) -> Option<Chosen<T>> {
        let picked = self.pick(path, &[(Layer::File, entry)]);
        if picked.is_absent() {
            self.report.add(
                Some(0..0),
                "missing-key",
                format!("the study has no `{path}`"),
                "missing in this file",
                format!("add {example} at the top"),
            );
        }
        picked.found()
    }

    fn finding(
        &mut self,
        severity: Severity,
        code: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
        line: Option<usize>,
    ) {
        let finding = Finding { severity, code, text: text.into(), remedy: remedy.into(), line };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// What all databases have together: `size` where there is one. Its users are those of each.
fn sum_of(databases: &[DatabasePlan], size: Sizes, is_full: bool) -> Sizes {
    let sizes: Vec<&Sizes> = databases
        .iter()
        .map(|database| if is_full { &database.full_size } else { &database.size })
        .collect();
    if sizes.len() < 2 {
        return size;
    }
    let limits = sizes.iter().map(|size| size.memory_limit);
    let mut population = size.population;
    let alike = sizes.iter().filter(|size| size.population.unit == population.unit);
    population.count = alike.map(|size| size.population.count).sum();
    Sizes {
        cpus: sizes.iter().map(|size| size.cpus).sum(),
        memory_limit: limits
            .map(|limit| limit.map(|limit| limit.0))
            .sum::<Option<u64>>()
            .map(Bytes),
        population,
        database: Bytes(sizes.iter().map(|size| size.database.0).sum()),
        users: size.users,
    }
}

/// Every run in the order of execution.
pub(crate) fn schedule(designs: usize, procedure: &ProcedurePlan, seed: RootSeed) -> Vec<RunPlan> {
    let runs: Vec<RunPlan> = (0..procedure.repeats)
        .flat_map(|repeat| {
            let order = order(designs, repeat, procedure.order, seed);
            order.into_iter().map(move |design| RunPlan { design, repeat })
        })
        .collect();
    debug_assert_eq!(
        runs.iter().collect::<HashSet<_>>().len(),
        designs * procedure.repeats as usize
    );
    runs
}

/// The designs in the order of one repeat.
fn order(designs: usize, repeat: u32, order: Order, seed: RootSeed) -> Vec<usize> {
    let forward: Vec<usize> = (0..designs).collect();
    let reversed = |order: &[usize]| order.iter().rev().copied().collect();
    match order {
        Order::Rotating => forward,
        Order::Abba if repeat % 2 == 1 => reversed(&forward),
        Order::Abba => forward,
        Order::Random => {
            // Four repeats at a time: two orders and their reverses, shuffled.
            let (block, place) = (u64::from(repeat / 4), (repeat % 4) as usize);
            let of = |name| shuffled(designs, seed.child(name, block));
            let (first, second) = (of("order.first"), of("order.second"));
            let drawn: [Vec<usize>; 4] = [reversed(&first), reversed(&second), first, second];
            drawn[shuffled(4, seed.child("order.block", block))[place]].clone()
        }
    }
}

/// The numbers below `n` in an order that the seed decides.
fn shuffled(n: usize, seed: RootSeed) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    numbers.sort_by_key(|number| seed.child("shuffle", *number as u64));
    numbers
}

/// The weaker of two kinds counts for the whole study.
const _: () = assert!((Evidence::Measured as u8) < Evidence::Emulated as u8);

#[cfg(test)]
mod tests {
    use super::order;
    use crate::plan::Order;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use underlay_core::RootSeed;

    fn letters(designs: usize, repeats: u32, by: Order) -> String {
        (0..repeats)
            .flat_map(|repeat| order(designs, repeat, by, RootSeed(1)))
            .map(|design| char::from(b'A' + design as u8))
            .collect()
    }

    #[test]
    fn drawn_orders_are_balanced_and_unpredictable() {
        // Whether A comes first, in 4,000 repeats.
        let first: Vec<bool> =
            (0..4000).map(|repeat| order(2, repeat, Order::Random, RootSeed(7))[0] == 0).collect();
        assert!(first.chunks(4).all(|block| block.iter().filter(|first| **first).count() == 2));
        // Two of four are A B: the next repeat has the same order as this one in 2 of 6 cases within a block
        // and half of them between blocks. Strict alternation has none.
        let same = first.windows(2).filter(|two| two[0] == two[1]).count();
        assert!((1350..=1650).contains(&same), "{same}");
        let other = (0..40).map(|repeat| order(2, repeat, Order::Random, RootSeed(8))[0] == 0);
        assert!(other.ne(first[..40].iter().copied()), "the seed decides");
    }

    #[test]
    fn every_second_repeat_is_reversed() {
        assert_eq!(letters(2, 3, Order::Abba), "ABBAAB");
        assert_eq!(letters(3, 3, Order::Abba), "ABCCBAABC");
        assert_eq!(letters(2, 3, Order::Rotating), "ABABAB");
        assert_eq!(letters(1, 2, Order::Abba), "AA");
    }

    proptest! {
        #[test]
        fn every_design_runs_once_per_repeat(designs in 1..6usize, blocks in 1..4u32, seed: u64) {
            for by in [Order::Abba, Order::Random] {
                let mut places = vec![0; designs];
                for repeat in 0..blocks * 4 {
                    let order = order(designs, repeat, by, RootSeed(seed));
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    prop_assert_eq!(sorted, (0..designs).collect::<Vec<_>>());
                    order.iter().enumerate().for_each(|(place, design)| places[*design] += place);
                }
                // All designs have the same mean place.
                prop_assert!(places.iter().all(|place| *place == places[0]), "{by}: {places:?}");
            }
        }
    }
}
