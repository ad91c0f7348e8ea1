//! The stages of a run in which the datastore copied data (resync): alone, while the load started, beside the measured load, and
//! after it. A datastore that adapts its copying to the load shows a rate of its own in each.
//!
//! The stages are cut by the phases of the run and by what the datastore counts of its copies; nothing is guessed from curves.

use underlay_core::Nanos;
use underlay_record::conventions::source;
use underlay_record::{Interval, Phase, PhaseKind};

use super::run::ObservedRun;
use super::window::MeasuredWindow;
use crate::analysis::{Stage, StageKind};
use crate::workload_view::WorkloadView;

/// A stage that is shorter than a sampling interval shows nothing.
const SHORTEST_S: f64 = 1.0;

/// The stages in their order; none of a run in which copies were made in one stage alone, or not at all.
pub(crate) fn stages(run: &ObservedRun, workload: &WorkloadView) -> Vec<Stage> {
    let Some((begin, end)) = copying(run) else { return Vec::new() };
    let Some(load) = Load::of(&run.phases) else { return Vec::new() };
    let cuts = [
        (StageKind::ResyncAlone, f64::NEG_INFINITY, load.begin),
        (StageKind::LoadStarts, load.begin, load.measured),
        (StageKind::LoadStable, load.measured, load.end),
        (StageKind::LoadStopped, load.end, load.watched_to),
    ];
    let stages = cuts.into_iter().filter_map(|(kind, from, to)| {
        let span = (from.max(begin), to.min(end));
        (span.1 - span.0 >= SHORTEST_S).then(|| stage(run, workload, kind, span))
    });
    let stages: Vec<Stage> = stages.collect();
    if stages.len() > 1 { stages } else { Vec::new() }
}

/// I/Os per second with which the datastore copies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResyncRates {
    /// While the window was measured.
    pub(crate) measured: Option<f64>,
    /// Before the load began; `None` where nothing was copied then.
    pub(crate) alone: Option<f64>,
}

/// The rates of a window's run; none of a run in which nothing was copied.
pub(super) fn resync_rates(window: &MeasuredWindow<'_>) -> ResyncRates {
    let run = window.run;
    let Some((begin, end)) = copying(run) else { return ResyncRates::default() };
    let rate = |span| queue_rate(run, "resync", "ios", span);
    let alone = Load::of(&run.phases).map(|load| (begin, load.begin.min(end)));
    ResyncRates {
        measured: rate(window.span()),
        alone: alone.filter(|(begin, end)| end - begin >= SHORTEST_S).and_then(rate),
    }
}

/// When users were at work, seconds on the run's clock.
struct Load {
    begin: f64,
    /// Begin of the first measured window.
    measured: f64,
    end: f64,
    /// End of what was recorded without users afterwards.
    watched_to: f64,
}

impl Load {
    fn of(phases: &[Phase]) -> Option<Load> {
        let of = |wanted: &'static [PhaseKind]| {
            let lasts = |it: &Interval| it.seconds() > 0.0;
            let of_kind = phases.iter().filter(|phase| wanted.contains(&phase.kind));
            of_kind.filter_map(Phase::interval).filter(lasts).collect::<Vec<Interval>>()
        };
        let measured = of(&[PhaseKind::Measure]);
        let loaded = of(&[PhaseKind::WarmUp, PhaseKind::RampUp, PhaseKind::Measure]);
        let end = measured.iter().map(|it| it.end.as_secs_f64()).max_by(f64::total_cmp)?;
        let after = of(&[PhaseKind::CoolDown]).into_iter().map(|it| it.end.as_secs_f64());
        let begin =
            |list: &[Interval]| list.iter().map(|it| it.begin.as_secs_f64()).min_by(f64::total_cmp);
        Some(Load {
            begin: begin(&loaded)?,
            measured: begin(&measured)?,
            end,
            watched_to: after.fold(end, f64::max),
        })
    }
}

/// From the first to the last second in which something was left to copy.
fn copying(run: &ObservedRun) -> Option<(f64, f64)> {
    let ticks = run.sources.get(source::DATASTORE)?;
    let of_cluster = |name: &str| name.starts_with("cluster.resync.") && name.ends_with(".left");
    let of_device = |name: &str| name.starts_with("device.") && name.ends_with(".resync.left");
    let names = ticks.names().filter(|name| of_cluster(name) || of_device(name));
    let left = names.filter_map(|name| ticks.series(name)).flat_map(|series| series.values());
    let times = left.filter(|(_, bytes)| *bytes > 0.0).map(|(time, _)| time);
    times.fold(None, |found: Option<(f64, f64)>, time| {
        let (first, last) = found.unwrap_or((time, time));
        Some((first.min(time), last.max(time)))
    })
}

fn stage(
    run: &ObservedRun,
    workload: &WorkloadView,
    kind: StageKind,
    (begin, end): (f64, f64),
) -> Stage {
    let of_queue = |queue: &str, what: &str| queue_rate(run, queue, what, (begin, end));
    Stage {
        kind,
        begin_s: begin - run.begin_s(),
        end_s: end - run.begin_s(),
        resync_per_second: of_queue("resync", "ios"),
        resync_bytes_per_second: of_queue("resync", "bytes"),
        volumes_per_second: of_queue("vm", "ios"),
        volumes_bytes_per_second: of_queue("vm", "bytes"),
        headline: headline(run, workload, (begin, end)),
    }
}

/// What the devices of a cluster did for one of their queues, per second.
fn queue_rate(run: &ObservedRun, queue: &str, what: &str, span: (f64, f64)) -> Option<f64> {
    let ticks = run.sources.get(source::DATASTORE)?;
    let suffix = format!(".queue.{queue}.{what}");
    let names =
        ticks.names().filter(|name| name.starts_with("cluster.group.") && name.ends_with(&suffix));
    let rates = names.filter_map(|name| ticks.series(name)?.rate(span));
    rates.reduce(|a, b| a + b)
}

/// What the headline counts, per its period; `None` of a job, whose result is not a count.
fn headline(run: &ObservedRun, workload: &WorkloadView, (begin, end): (f64, f64)) -> Option<f64> {
    let at = |seconds: f64| Nanos((seconds.max(0.0) * 1e9) as u64);
    let interval = Interval { begin: at(begin), end: at(end) };
    let ticks = MeasuredWindow { run, users: 1, interval }.ticks(workload);
    let (mut counted, mut seconds) = (0.0, 0.0);
    for tick in ticks.values() {
        counted += tick.counted as f64;
        seconds += tick.seconds;
    }
    (seconds > 0.0 && !workload.is_job()).then(|| counted * workload.period_s / seconds)
}
