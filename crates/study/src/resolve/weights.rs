//! Changes of the mix: do the types exist, can anything be chosen, and does the moment lie within the run?

use std::ops::Range;

use underlay_core::Nanos;
use underlay_workload::transactional::{Shape, Weights as TypeWeights};

use super::moment::{self, MomentKeys};
use super::procedure_choice::ProcedureChoice;
use super::resolver::Resolver;
use crate::entry::{Entry, Section};
use crate::exact;
use crate::file::Weights;
use crate::plan::{DesignPlan, Origin, Setting, WorkloadKind};
use crate::problem::position;
use crate::suggest::{listed, nearest};
use crate::weights_plan::WeightsPlan;

/// All changes of the mix that are in order.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    designs: &[DesignPlan],
    procedure: &ProcedureChoice,
    workload: Option<&WorkloadKind>,
) -> Vec<WeightsPlan> {
    let file = resolver.file;
    let Entry::Given { value: sections, .. } = &file.weights else { return Vec::new() };
    // A job has no mix: that was refused, and what it would hold does not matter.
    if resolver.is_block_load()
        || workload.is_some_and(|workload| workload.job_sessions().is_some())
    {
        return Vec::new();
    }
    let mut plans = Vec::new();
    for section in sections.iter().filter(|section| !section.refused) {
        let keys = MomentKeys {
            what: "a change of the mix",
            at: &section.at,
            phase: &section.phase,
            users: &section.users,
        };
        let moment = moment::resolve(resolver, &keys, procedure);
        let concerned =
            moment::designs_named(resolver, "the change of the mix", &section.designs, designs);
        let set = workload.and_then(|kind| type_weights(resolver, section, kind.shape()));
        let (Some((phase, users)), Some((weights, text))) = (moment, set) else { continue };
        plans.push(WeightsPlan {
            weights,
            text,
            at: section.at.get().copied().unwrap_or(Nanos::ZERO),
            phase,
            users,
            lasts: section.lasts.get().copied(),
            designs: concerned,
            line: position(resolver.text, place(section).start).0,
        });
    }
    // Of designs that the command line left out there is no run.
    plans.retain(|plan| !plan.designs.is_empty());
    for (number, plan) in plans.iter().enumerate() {
        resolver.provenance.push(Setting {
            path: format!("weights[{number}]"),
            value: format!("{} at {}", plan.text, exact::time(plan.at)),
            origin: Origin::File { line: plan.line },
        });
    }
    plans
}

fn type_weights(
    resolver: &mut Resolver<'_>,
    section: &Section<Weights>,
    shape: &Shape,
) -> Option<(TypeWeights, String)> {
    if section.set.refused {
        return None;
    }
    let known = || shape.types.iter().copied();
    let mut weights = vec![0; shape.types.len()];
    let mut words = Vec::new();
    let mut is_sound = true;
    for (name, given) in &section.set.0 {
        let Some(index) = shape.index_of(&name.replace('-', "_")) else {
            is_sound = false;
            let label = match nearest(name, known()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("not a type of {}", shape.name),
            };
            resolver.report.at(
                &given.name_span,
                "unknown-name",
                format!("`{name}` is not a transaction of {}", shape.name),
                label,
                format!("use {}", listed(known())),
            );
            continue;
        };
        match given.weight {
            Some(weight) => {
                weights[index] = weight;
                words.push(format!("{}={weight}", shape.types[index]));
            }
            None => is_sound = false,
        }
    }
    if !is_sound {
        return None;
    }
    let Ok(weights) = TypeWeights::new(&weights) else {
        resolver.report.add(
            Some(section.set.span.clone().unwrap_or_else(|| place(section))),
            if section.set.is_present() { "empty" } else { "missing-key" },
            "the change of the mix leaves no transaction",
            "no type has a weight above 0",
            format!("write for example set = {{ {} = 1 }}", shape.types.first().unwrap_or(&"type")),
        );
        return None;
    };
    Some((weights, words.join(", ")))
}

fn place(section: &Section<Weights>) -> Range<usize> {
    section.span.clone().unwrap_or(0..0)
}
