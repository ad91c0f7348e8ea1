//! The procedure of a block load: its rungs are numbers of threads, and there is no database that anything could be asked of.

use std::ops::Range;

use super::procedure_choice::{Ladder, Phases, ProcedureChoice, plan};
use super::procedure_keys::{self, Load};
use super::repeats::{self, RepeatsChoice};
use super::resolver::Resolver;
use super::workload::WorkloadChoice;
use crate::entry::{Entry, Section};
use crate::limits::MEASURE;

/// Why a key for users is refused, and what takes its place.
const THREADS: (&str, &str) =
    ("a block load has no users", "remove it; `threads` of [workload.block] is the ladder");
/// The same of what needs a database server.
const NO_SERVER: (&str, &str) =
    ("a block load starts no database server", "remove it, or choose another workload");
/// The same of a search.
const CURVE: (&str, &str) =
    ("a block load finds its rates by a curve", "remove it; write `curve` in [workload.block]");
/// The same of a phase without users.
const NO_USERS: (&str, &str) =
    ("a block load ends with its last measurement", "remove it, or choose another workload");
/// The same of what changes the storage, or works beside the load.
const ALONE: (&str, &str) = ("a block load runs alone", "remove it, or choose another workload");

/// Decides about the procedure of a block load.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    workload: Option<&WorkloadChoice>,
) -> ProcedureChoice {
    refuse_what_databases_have(resolver);
    let keys = procedure_keys::plain_keys(resolver, Load::Block);
    // Requests come so often that a window needs to be long on this host only.
    let dilation = keys.time_dilation.as_ref().and_then(|chosen| chosen.value.factor());
    let shortest = dilation.unwrap_or_default().design(*MEASURE.start());
    procedure_keys::check_times(resolver, &keys, &(shortest..=*MEASURE.end()));
    let repeats = repeats::resolve(resolver);
    resolver.provenance.extend(repeats.iter().flat_map(RepeatsChoice::settings));
    resolver.provenance.extend(keys.settings());
    let ladder = workload.and_then(WorkloadChoice::block_ladder);
    let full = full_threads(resolver);
    let ladder = ladder.map(|(users, top)| Ladder {
        full: full.unwrap_or_else(|| users.clone()),
        users,
        top,
    });
    let parts = (Some(None), Some(None), Some(None));
    let plan = plan(keys.plan(), ladder.as_ref(), parts, repeats.as_ref());
    let phases = Phases::of(&keys);
    let time_dilation = keys.time_dilation;
    ProcedureChoice { plan, phases, ladder, repeats, time_dilation, warm_up_users: None }
}

/// The ladder as it is written.
fn full_threads(resolver: &Resolver<'_>) -> Option<Vec<u32>> {
    resolver.file.workload.block.threads.get().cloned()
}

/// All keys and options that mean something to databases only.
fn refuse_what_databases_have(resolver: &mut Resolver<'_>) {
    let file = &resolver.file.procedure;
    let written = [
        ("`procedure.users`", file.users.span(), THREADS),
        ("`procedure.warm-up-users`", file.warm_up_users.span(), THREADS),
        ("`procedure.search`", file.search.span.clone(), CURVE),
        ("`procedure.causal-check`", file.causal_check.span(), NO_SERVER),
        ("`procedure.what-if`", file.what_if.span(), NO_SERVER),
        ("`procedure.cool-down`", file.cool_down.span(), NO_USERS),
        ("`weights`", first(&resolver.file.weights), NO_SERVER),
        ("`background`", first(&resolver.file.background), ALONE),
        ("`fault`", first(&resolver.file.fault), ALONE),
    ];
    for (key, span, why) in written {
        if span.is_some() {
            refuse_for_block(resolver, key, span, why);
        }
    }
    for (key, span) in procedure_keys::meaningless_keys(resolver, Load::Block) {
        refuse_for_block(resolver, &format!("`{key}`"), Some(span), NO_SERVER);
    }
    if resolver.options.users.is_some() {
        refuse_for_block(resolver, "`--users`", None, THREADS);
    }
}

/// Everything that describes a server.
pub(super) fn refuse_engines(resolver: &mut Resolver<'_>) {
    let why =
        ("a block load starts no database server", "remove it; only [volumes] and designs count");
    let designs = resolver.file.design.get().map_or(&[][..], Vec::as_slice);
    let engines = designs.iter().map(|design| &design.engine).chain([&resolver.file.engine]);
    let spans: Vec<Range<usize>> = engines.filter_map(|engine| engine.span.clone()).collect();
    for span in spans {
        refuse_for_block(resolver, "`engine`", Some(span), why);
    }
    let clients = designs.iter().map(|design| &design.client).chain([&resolver.file.client]);
    let spans: Vec<Range<usize>> = clients.filter_map(|client| client.span.clone()).collect();
    for span in spans {
        refuse_for_block(resolver, "`client`", Some(span), why);
    }
    if resolver.options.server_bin.is_some() {
        refuse_for_block(resolver, "`--server-bin`", None, why);
    }
}

fn refuse_for_block(
    resolver: &mut Resolver<'_>,
    what: &str,
    span: Option<Range<usize>>,
    (reason, remedy): (&str, &str),
) {
    let message = format!("{what} has no meaning for a block load");
    resolver.report.add(span, "conflict", message, reason, remedy);
}

/// The first of several tables.
fn first<T>(sections: &Entry<Vec<Section<T>>>) -> Option<Range<usize>> {
    sections.get()?.first()?.span.clone()
}
