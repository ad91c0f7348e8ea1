//! From file types to the plan: layers are merged, options and scale applied, everything is checked.
//!
//! Nothing stops at the first problem. A part that cannot be resolved is `None` and silences the checks
//! that would need it; a plan exists only when no problem was found.

mod background;
mod chosen;
pub(crate) mod cluster;
mod datastore;
mod design;
mod engine;
mod faults;
mod io_profiles;
mod job_procedure;
mod moment;
mod names;
mod procedure;
mod published;
mod search;
mod server;
mod time_dilation;
mod volumes;
mod weights;
mod workload;
mod worth;

use std::collections::HashSet;

use underlay_core::{Evidence, RootSeed};

use crate::builtin;
use crate::estimate;
use crate::file;
use crate::finding::{Finding, Severity};
use crate::host_view::HostView;
use crate::options::PlanOptions;
use crate::plan::{EngineKind, Order, Plan, RunPlan, Scale, Setting, Sizes};
use crate::problem::Source;
use crate::report::Report;

use chosen::{Chosen, Layer, Pick, pick};
use engine::EngineChoice;

/// What a resolution works with and collects.
pub(crate) struct Resolver<'a> {
    source: &'a Source,
    text: &'a str,
    file: &'a file::Study,
    defaults: &'static file::Study,
    options: &'a PlanOptions,
    host: &'a HostView<'a>,
    scale: Scale,
    /// The study's engine, once it is decided.
    kind: EngineKind,
    pub report: Report,
    findings: Vec<Finding>,
    provenance: Vec<Setting>,
}

impl<'a> Resolver<'a> {
    /// Prepares to resolve `file`, which was read from `source` with the problems in `report`.
    pub fn new(
        source: &'a Source,
        file: &'a file::Study,
        options: &'a PlanOptions,
        host: &'a HostView<'a>,
        report: Report,
    ) -> Resolver<'a> {
        Resolver {
            source,
            text: &source.text,
            file,
            defaults: builtin::defaults(),
            options,
            host,
            scale: options.scale.unwrap_or(Scale::FULL),
            kind: EngineKind::default(),
            report,
            findings: Vec::new(),
            provenance: Vec::new(),
        }
    }

    /// The plan, unless there is any problem.
    pub fn resolve(&mut self) -> Option<Plan> {
        let identity = self.identity();
        let seed = self.seed();
        let full_engine = self.study_engine();
        let engine = full_engine.scaled_whole(self.scale);
        engine.record(&mut self.provenance);
        let full_workload = self.workload();
        let workload = full_workload.as_ref().map(|full| self.scale_workload(full));
        let procedure = self.procedure(workload.as_ref());
        let designs = self.designs(&engine, workload.as_ref(), &procedure);
        let kind = workload.as_ref().map(|workload| workload.kind());
        let weights = self.weights(&designs, &procedure, kind.as_ref());
        let background = self.background(&designs, &procedure, kind.as_ref());
        let faults = self.faults(&designs, &procedure);
        self.refuse_background_with_power_cuts(&background, &faults);
        self.check_time_dilation(procedure.time_dilation.as_ref(), &designs, &background);
        self.doubt_designs(&designs, &background, &faults);
        let published = self.published();

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
        let mut plan = Plan {
            name,
            title,
            question,
            seed: RootSeed(seed?),
            evidence: designs.iter().map(|design| design.evidence).max()?,
            engine: engine.plan()?,
            schedule: schedule(designs.len(), procedure.repeats, procedure.order),
            workload: workload_plan,
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
        };
        plan.estimates = estimate::estimates(&plan, self.host);
        self.question_worth(&plan);
        if !self.report.is_empty() {
            return None;
        }
        plan.findings = std::mem::take(&mut self.findings);
        plan.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        plan.provenance = std::mem::take(&mut self.provenance);
        Some(plan)
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

    fn study_engine(&mut self) -> EngineChoice {
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

/// Every run in the order of execution.
fn schedule(designs: usize, repeats: u32, order: Order) -> Vec<RunPlan> {
    let mut runs = Vec::with_capacity(designs * repeats as usize);
    for repeat in 0..repeats {
        let reversed = order == Order::Abba && repeat % 2 == 1;
        for position in 0..designs {
            let design = if reversed { designs - 1 - position } else { position };
            runs.push(RunPlan { design, repeat });
        }
    }
    debug_assert_eq!(runs.iter().collect::<HashSet<_>>().len(), runs.len());
    runs
}

/// The weaker of two kinds counts for the whole study.
const _: () = assert!((Evidence::Measured as u8) < Evidence::Emulated as u8);

#[cfg(test)]
mod tests {
    use super::schedule;
    use crate::plan::Order;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn letters(designs: usize, repeats: u32, order: Order) -> String {
        schedule(designs, repeats, order)
            .iter()
            .map(|run| char::from(b'A' + run.design as u8))
            .collect()
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
        fn every_design_runs_once_per_repeat(designs in 1..6usize, repeats in 1..9u32) {
            let runs = schedule(designs, repeats, Order::Abba);
            prop_assert_eq!(runs.len(), designs * repeats as usize);
            // With an even number of repeats, all designs have the same mean place in time.
            if repeats % 2 == 0 {
                let place = |design| -> usize {
                    runs.iter().enumerate().filter(|(_, r)| r.design == design).map(|(i, _)| i).sum()
                };
                prop_assert!((1..designs).all(|design| place(design) == place(0)));
            }
        }
    }
}
