//! Whether an emulated design or this host was measured: per rung, from the excess of I/O times and the host's ceiling.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_core::{Evidence, IoClass};

use crate::analysis::{
    Ceiling, ClassExcess, Comparison, HostFactors, Peak, RungValidity, Scope, Validity,
};
use crate::axes::Axes;
use crate::comparisons::{is_equal, not_shown_equal};
use crate::digest::Digest;
use crate::ladder::Group;
use crate::metrics::LATENCY;
use crate::observed::{IoFacts, WindowFacts};
use crate::plan_view::{Pacing, PlanView};
use crate::statistics::host_share::{Excess, Factors, HostShare, Waiting};
use crate::statistics::mean;
use crate::wording::{factor_interval, percent, time_ns};

/// Up to this share of the sessions' time, the host's is of no consequence: devices of one model differ by as much.
const VALID_MAX: f64 = 0.05;
/// With more than this, most of what was measured may be the host.
const MOST: f64 = 0.5;
/// A design that reaches this share of the host's ceiling cannot be told from it.
pub(crate) const CEILING_REACHED: f64 = 0.8;

/// A server that its own CPU limit stops for this share of the time can do no more, whatever it is stored on.
const STOPPED: f64 = 0.5;

/// One row per rung of an emulated design.
pub(crate) fn all(digest: &Digest, groups: &[Group<'_>]) -> Vec<RungValidity> {
    // The command measures one run of targets whose model it does not know.
    if digest.workload.is_one_run() {
        return Vec::new();
    }
    let waits = match (digest.workload.is_block_load(), digest.workload.has_sessions()) {
        (true, _) => Waits::Requests,
        (false, true) => Waits::Sessions,
        (false, false) => Waits::Programs,
    };
    let plan = PlanView::new(&digest.manifest.plan);
    let ceilings = Ceilings::of(digest, groups);
    let is_emulated = |group: &&Group<'_>| {
        let design = digest.designs.get(group.design);
        design.is_some_and(|design| design.evidence == Evidence::Emulated)
    };
    let of = |group: &Group<'_>| {
        let is_stopped = plan.server_cpus(group.design).is_some()
            && pooled(group, |window| window.cpu.server_throttled).is_some_and(|it| it >= STOPPED);
        row(group, Load { pacing: plan.pacing(group.design), waits, is_stopped }, &ceilings)
    };
    groups.iter().filter(is_emulated).map(of).collect()
}

/// What puts the load on the storage.
#[derive(Clone, Copy)]
struct Load {
    pacing: Pacing,
    waits: Waits,
    /// Whether the CPU limit of the design stops its server most of the time. What it reaches without a device is then the
    /// design's own ceiling: the same server on the real device would be stopped as well.
    is_stopped: bool,
}

/// Whose time is spent on waiting for the storage.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    /// Sessions of a database.
    Sessions,
    /// The requests of a block load.
    Requests,
    /// Programs of the engine, which read and write files.
    Programs,
}

impl Waits {
    fn words(self) -> &'static str {
        match self {
            Waits::Sessions => "the sessions' time",
            Waits::Requests => "the requests' time",
            Waits::Programs => "the programs' time",
        }
    }
}

/// What is known of the most that this host can do.
struct Ceilings<'a> {
    /// Windows of null twins by design and users.
    twins: BTreeMap<(usize, u32), Vec<&'a WindowFacts>>,
    /// Designs without any device.
    no_device: Vec<usize>,
    /// Their windows by the points of all axes and users: at another point the host has something else to do.
    designs: BTreeMap<(Vec<usize>, u32), Vec<&'a WindowFacts>>,
    axes: Axes,
}

impl<'a> Ceilings<'a> {
    fn of(digest: &'a Digest, groups: &[Group<'a>]) -> Ceilings<'a> {
        let mut twins: BTreeMap<(usize, u32), Vec<&WindowFacts>> = BTreeMap::new();
        for window in &digest.twins {
            twins.entry((window.design, window.users)).or_default().push(window);
        }
        let designs = digest.designs.iter().enumerate();
        let no_device: Vec<usize> = designs
            .filter(|(_, design)| has_no_device(&design.detail))
            .map(|(position, _)| position)
            .collect();
        let axes = digest.axes();
        let mut designs: BTreeMap<(Vec<usize>, u32), Vec<&WindowFacts>> = BTreeMap::new();
        for group in groups.iter().filter(|group| no_device.contains(&group.design)) {
            let at = (axes.coordinates(group.design).to_vec(), group.users);
            designs.entry(at).or_default().extend(&group.windows);
        }
        Ceilings { twins, no_device, designs, axes }
    }

    /// The ceiling of a rung: its own twin's, which has the same volumes, or that of a design without a device.
    fn find(&self, group: &Group<'_>, pacing: Pacing) -> Option<Ceiling> {
        let twins = self.twins.get(&(group.design, group.users)).map(|found| ("null-twin", found));
        let at = (self.axes.coordinates(group.design).to_vec(), group.users);
        let designs = self.designs.get(&at).map(|found| ("design", found));
        let (source, found) = twins.or(designs)?;
        let of = |windows: &[&WindowFacts], number: &dyn Fn(&WindowFacts) -> Option<f64>| {
            mean(&windows.iter().filter_map(|window| number(window)).collect::<Vec<_>>())
        };
        let ratio =
            |over: Option<f64>, base: Option<f64>| Some(over? / base.filter(|base| *base > 0.0)?);
        let reached = match pacing {
            Pacing::Closed { key_think } if key_think > 0.0 => None,
            Pacing::Open => None,
            // Users who never think do as many transactions as storage and host let them.
            Pacing::Closed { .. } | Pacing::Unknown => {
                let counted = |window: &WindowFacts| window.load.counted_per_second;
                ratio(of(&group.windows, &counted), of(found, &counted))
            }
        };
        let response = |window: &WindowFacts| window.load.response_s;
        let reached =
            reached.or_else(|| ratio(of(found, &response), of(&group.windows, &response)));
        Some(Ceiling {
            source: source.to_string(),
            headline: of(found, &|window| window.load.headline),
            reached,
        })
    }
}

/// Whether a plan's design consists of devices that take no time.
fn has_no_device(detail: &Value) -> bool {
    let Some(devices) = detail["datastore"]["emulated"]["devices"].as_array() else { return false };
    let takes_none = |device: &Value| {
        let profile = &device["profile"];
        let parts = ["link", "write-buffer", "write_buffer"];
        profile["medium"].get("instant").is_some()
            && parts.iter().all(|part| profile[*part].is_null())
    };
    !devices.is_empty() && devices.iter().all(takes_none)
}

fn row(group: &Group<'_>, load: Load, ceilings: &Ceilings<'_>) -> RungValidity {
    let no_device = ceilings.no_device.contains(&group.design);
    let ceiling = if no_device { None } else { ceilings.find(group, load.pacing) };
    let share = match (no_device, load.waits) {
        (true, _) => None,
        (false, Waits::Sessions) => host_share(group, load.pacing),
        (false, Waits::Requests) => host_share_of_requests(group, load.pacing),
        (false, Waits::Programs) => host_share_of_programs(group),
    };
    let factors = |of: fn(&HostShare) -> Factors| {
        share.as_ref().map(of).map(|Factors { low, high }| HostFactors { low, high })
    };
    let reached = ceiling.as_ref().and_then(|ceiling| ceiling.reached);
    let outcome = outcome(no_device, share.as_ref(), reached.filter(|_| !load.is_stopped));
    let mut row = RungValidity {
        design: group.design,
        users: group.users,
        outcome,
        text: String::new(),
        no_device,
        excess: excess_rows(group, load),
        late_share: share.as_ref().map(|share| share.late),
        early_share: share.as_ref().map(|share| share.early),
        throughput: factors(HostShare::throughput),
        response: factors(HostShare::response),
        ceiling,
    };
    row.text = text(&row, load);
    row
}

fn outcome(no_device: bool, share: Option<&HostShare>, reached: Option<f64>) -> Validity {
    if no_device || reached.is_some_and(|reached| reached >= CEILING_REACHED) {
        return Validity::HostLimited;
    }
    share.map_or(Validity::Unknown, |share| of_shares(share.late, share.early))
}

fn of_shares(late: f64, early: f64) -> Validity {
    if late > MOST {
        return Validity::HostLimited;
    }
    let is_small = late <= VALID_MAX && early <= VALID_MAX;
    if is_small { Validity::Valid } else { Validity::Bounded }
}

/// What may be read from a rung whose ceiling is no obstacle: where something else than storage is varied, that storage limits
/// no more is what varying it does.
pub(crate) fn ignoring_ceiling(row: &RungValidity) -> Validity {
    if row.no_device {
        return Validity::HostLimited;
    }
    let shares = row.late_share.zip(row.early_share);
    shares.map_or(Validity::Unknown, |(late, early)| of_shares(late, early))
}

/// The mean of a number over the windows that have it.
fn pooled(group: &Group<'_>, of: impl Fn(&WindowFacts) -> Option<f64>) -> Option<f64> {
    mean(&group.windows.iter().filter_map(|window| of(window)).collect::<Vec<_>>())
}

fn host_share(group: &Group<'_>, pacing: Pacing) -> Option<HostShare> {
    let excess = |class: IoClass| {
        pooled(group, |window| window.io.get(&class).map(|io| io.actual - io.modelled))
    };
    let excess = Excess { log: excess(IoClass::Log)?, read: excess(IoClass::Read)? };
    let response_s = pooled(group, |window| window.load.response_s).unwrap_or(0.0);
    let waiting = match pacing {
        Pacing::Open => Waiting::Open {
            busy: response_s * pooled(group, |window| Some(window.load.completed_per_second))?,
        },
        Pacing::Closed { .. } | Pacing::Unknown => Waiting::Closed {
            users: f64::from(group.users),
            response_s,
            think_s: pooled(group, |window| window.load.think_s).unwrap_or(0.0),
        },
    };
    HostShare::bound(excess, waiting)
}

/// The same of a block load: every request is waited for, whatever its class, and nothing else takes its time.
fn host_share_of_requests(group: &Group<'_>, pacing: Pacing) -> Option<HostShare> {
    let of = |class: IoClass| {
        pooled(group, |window| window.io.get(&class).map(|io| io.actual - io.modelled))
    };
    let read: f64 = IoClass::ALL.into_iter().map(of).sum::<Option<f64>>()?;
    let response_s = pooled(group, |window| window.load.response_s)?;
    // Requests in flight on all volumes, by Little's law.
    let busy = response_s * pooled(group, |window| Some(window.load.completed_per_second))?;
    let waiting = match pacing {
        Pacing::Open => Waiting::Open { busy },
        Pacing::Closed { .. } | Pacing::Unknown => {
            Waiting::Closed { users: busy, response_s, think_s: 0.0 }
        }
    };
    HostShare::bound(Excess { log: 0.0, read }, waiting)
}

/// The same of programs: which class one waits for at a moment is unknown.
fn host_share_of_programs(group: &Group<'_>) -> Option<HostShare> {
    let of = |class: IoClass| {
        let number = |of: fn(&IoFacts) -> f64| pooled(group, |w| w.io.get(&class).map(of));
        Some((number(|io| io.modelled)?, number(|io| io.actual)?))
    };
    HostShare::of_programs(IoClass::ALL.into_iter().filter_map(of))
}

fn excess_rows(group: &Group<'_>, load: Load) -> Vec<ClassExcess> {
    // What programs write are no transactions.
    let completed = pooled(group, |window| Some(window.load.completed_per_second))
        .filter(|_| load.waits != Waits::Programs);
    let of_class = |class: IoClass| {
        let number =
            |of: fn(&IoFacts) -> f64| pooled(group, |window| window.io.get(&class).map(of));
        let (ios, modelled, actual) =
            (number(|io| io.per_second)?, number(|io| io.modelled)?, number(|io| io.actual)?);
        let mean_ns = |seconds: f64| (ios > 0.0).then(|| seconds / ios * 1e9);
        Some(ClassExcess {
            class: class.as_str().to_string(),
            ios_per_second: ios,
            modelled_mean_ns: mean_ns(modelled),
            actual_mean_ns: mean_ns(actual),
            excess_per_transaction_ns: completed
                .filter(|completed| *completed > 0.0)
                .map(|completed| (actual - modelled) / completed * 1e9),
        })
    };
    IoClass::ALL.into_iter().filter_map(of_class).collect()
}

/// `bounded: the host's share of I/O times is at most 9 % of the sessions' time (log 0.2 ms, reads 0.1 ms per transaction); ...`.
fn text(row: &RungValidity, Load { waits, is_stopped, .. }: Load) -> String {
    if row.no_device {
        return "host-limited: no device takes any time, so this is the host's ceiling".to_string();
    }
    let mut parts = Vec::new();
    if let (Some(late), Some(early)) = (row.late_share, row.early_share) {
        let share = |share: f64, how: &str| {
            (share > 0.0005).then(|| {
                let whose = waits.words();
                format!("at most {} of {whose} was I/O that took too {how}", percent(share))
            })
        };
        let shares: Vec<String> =
            [share(late, "long"), share(early, "short")].into_iter().flatten().collect();
        parts.push(match shares.is_empty() {
            true => "I/O took as long as modelled".to_string(),
            false => {
                let per = match waits {
                    Waits::Sessions => per_transaction(row),
                    Waits::Requests | Waits::Programs => String::new(),
                };
                format!("{} because of the host{per}", shares.join(", "))
            }
        });
    } else {
        parts.push("the record has no excess of I/O times".to_string());
    }
    parts.push(match row.ceiling.as_ref().and_then(|ceiling| ceiling.reached) {
        Some(reached) if reached >= CEILING_REACHED && is_stopped => {
            format!(
                "it reaches {} of what its server's CPU limit allows without a device",
                percent(reached)
            )
        }
        Some(reached) if reached >= CEILING_REACHED => {
            format!(
                "it reaches {} of the host's ceiling: not distinguishable from this host",
                percent(reached)
            )
        }
        Some(reached) => format!("it reaches {} of the host's ceiling", percent(reached)),
        None => "the host's ceiling is unknown".to_string(),
    });
    format!("{}: {}", row.outcome.as_str(), parts.join("; "))
}

/// ` (per transaction: log +12 us, read -3 us)`.
fn per_transaction(row: &RungValidity) -> String {
    let waited = row.excess.iter().filter(|class| class.class != IoClass::DataWrite.as_str());
    let parts: Vec<String> = waited
        .filter_map(|class| {
            let ns = class.excess_per_transaction_ns?;
            let sign = if ns < 0.0 { "-" } else { "+" };
            Some(format!("{} {sign}{}", class.class, time_ns(ns.abs())))
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({} per transaction)", parts.join(", "))
    }
}

/// What is in doubt about a result.
#[derive(Clone, Copy)]
pub(crate) struct Doubt {
    factors: Factors,
    /// Whether it is more than a valid result may have: such a result is used as it is.
    is_large: bool,
}

impl Doubt {
    const NONE: Doubt = Doubt { factors: Factors::EXACT, is_large: false };
}

/// What is in doubt about a result of a design; `None` where it is unknown. Of a design that is not emulated, nothing.
pub(crate) fn doubt(
    validity: &[RungValidity],
    (design, users): (usize, u32),
    metric: &str,
) -> Option<Doubt> {
    let Some(row) = validity.iter().find(|row| (row.design, row.users) == (design, users)) else {
        let is_emulated = validity.iter().any(|row| row.design == design);
        return (!is_emulated).then_some(Doubt::NONE);
    };
    if row.no_device {
        return Some(Doubt::NONE);
    }
    let HostFactors { low, high } = if metric == LATENCY { row.response } else { row.throughput }?;
    Some(Doubt {
        factors: Factors { low, high },
        is_large: ignoring_ceiling(row) != Validity::Valid,
    })
}

/// Adds the intervals with the host's share. `of` gives what is in doubt about the first (`false`) or second design of a comparison.
pub(crate) fn widen(
    comparisons: &mut [Comparison],
    of: impl Fn(&Comparison, bool) -> Option<Doubt>,
) {
    for comparison in comparisons {
        let Some(ratio) = comparison.ratio else { continue };
        let (Some(base), Some(over)) = (of(comparison, false), of(comparison, true)) else {
            continue;
        };
        let by_chance = comparison.low.zip(comparison.high).unwrap_or((ratio, ratio));
        let (low, high) = Factors::widen(by_chance, over.factors, base.factors);
        (comparison.host_low, comparison.host_high) = (Some(low), Some(high));
        if (base.is_large || over.is_large) && !is_equal((low, high)) {
            not_shown_equal(comparison);
        }
        // Only if it says more than what is there already.
        let wider = factor_interval(low, high);
        if wider != factor_interval(by_chance.0, by_chance.1) {
            comparison.text.push_str(&format!("; {wider} with the host's share"));
        }
    }
}

/// The same for designs of one record.
pub(crate) fn widen_within(
    comparisons: &mut [Comparison],
    validity: &[RungValidity],
    peaks: &[Peak],
) {
    widen(comparisons, |comparison, second| {
        let design = if second { comparison.b } else { comparison.a };
        let users = match comparison.scope {
            Scope::Rung => comparison.users?,
            Scope::Peak => peaks.iter().find(|peak| peak.design == design)?.users,
        };
        doubt(validity, (design, users), &comparison.metric)
    });
}
