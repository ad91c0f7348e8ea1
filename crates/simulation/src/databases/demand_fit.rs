//! Demands as measured: what transactions of recorded windows cost, next to the same windows simulated with the default's
//! demands.
//!
//! Factors are medians over the windows. Not here: how windows are read from a record, and the file that demands are written to.

use std::collections::{BTreeMap, BTreeSet};
use underlay_core::Nanos;
use underlay_engine::{DemandProfile, TypeDemand};

use super::observation::{Costs, Observation, Range, TypeCosts};

/// Share of page images in the log above which a window does not tell what else is in it. Servers
/// count images, not their bytes, and leave the unused part of a page out.
const MOST_IMAGES: f64 = 0.5;

/// Demands, and what they follow from; `None` of what was not observed.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandFit {
    /// The default's, with the factors.
    pub demands: DemandProfile,
    /// The factor on processor times.
    pub cpu: Option<Range>,
    /// The factor on log bytes.
    pub log: Option<Range>,
    /// Further factors on the processor times of the types, in their order.
    pub types: Vec<Option<Range>>,
}

/// Fits demands to what was `measured`; `simulated` is with the default's demands, at the same users.
pub fn fitted(
    defaults: &DemandProfile,
    measured: &[Observation],
    simulated: &[Observation],
) -> DemandFit {
    let pairs = || measured.iter().filter_map(|window| Some((window, twin(window, simulated)?)));
    let cpu = Range::of(pairs().filter_map(|(window, twin)| cpu_ratio(window, twin)));
    let factor = |range: Option<Range>| range.map_or(1.0, |range| range.value);
    let cpu_factor = factor(cpu);
    let log = log_factor(measured, simulated);
    let background = pairs().filter_map(|(window, twin)| {
        // That of writing pages follows from the pages.
        let written = twin.costs.background_ns? * cpu_factor;
        Some((window.costs.background_ns? - written).max(0.0))
    });
    let background = Range::of(background);
    let of_types: Vec<Vec<Option<f64>>> =
        pairs().map(|(window, twin)| type_ratios(&window.types, &twin.types)).collect();
    let of_type = |number: usize| {
        Range::of(of_types.iter().filter_map(|ratios| ratios.get(number).copied().flatten()))
    };
    let types: Vec<Option<Range>> = (0..defaults.types.len()).map(of_type).collect();
    let scaled = |(kind, range): (&TypeDemand, &Option<Range>)| {
        let cpu = |time: Nanos| Nanos((time.0 as f64 * factor(*range)).round() as u64);
        let (cpu_base, cpu_per_unit) = (cpu(kind.cpu_base), cpu(kind.cpu_per_unit));
        TypeDemand { cpu_base, cpu_per_unit, ..kind.clone() }
    };
    let seen = |of: &dyn Fn(&Costs) -> Option<f64>| {
        let times = Range::of(measured.iter().filter_map(|window| of(&window.costs)))?;
        Some(Nanos(times.value.round() as u64))
    };
    // It is multiplied by the factor, as all processor times are.
    let background_cpu = background.map(|time| Nanos((time.value / cpu_factor).round() as u64));
    let demands = DemandProfile {
        types: defaults.types.iter().zip(&types).map(scaled).collect(),
        cpu_factor: defaults.cpu_factor * cpu_factor,
        log_factor: defaults.log_factor * factor(log),
        client_cpu: seen(&|costs| costs.client_ns).unwrap_or(defaults.client_cpu),
        cpu_per_io: seen(&|costs| costs.io_ns).unwrap_or(defaults.cpu_per_io),
        background_cpu: background_cpu.unwrap_or(defaults.background_cpu),
        ..defaults.clone()
    };
    DemandFit { demands, cpu, log, types }
}

/// By numbers of users: processor time per transaction there, over that of all windows. A transaction costs a busy host
/// more than an idle one, whose caches it has to itself.
pub fn cpu_scales(measured: &[Observation], simulated: &[Observation]) -> BTreeMap<u32, f64> {
    let ratio = |window: &Observation| cpu_ratio(window, twin(window, simulated)?);
    let Some(all) = Range::of(measured.iter().filter_map(ratio)) else { return BTreeMap::new() };
    let users: BTreeSet<u32> = measured.iter().map(|window| window.users).collect();
    let at = |users: u32| {
        let windows = measured.iter().filter(|window| window.users == users);
        Some((users, Range::of(windows.filter_map(ratio))?.value / all.value))
    };
    users.into_iter().filter_map(at).collect()
}

/// What was simulated at the users of a window.
fn twin<'a>(window: &Observation, simulated: &'a [Observation]) -> Option<&'a Observation> {
    simulated.iter().find(|twin| twin.users == window.users)
}

fn over(value: f64, base: f64) -> Option<f64> {
    (base > 0.0).then(|| value / base)
}

/// Processor time per transaction of a window over that of its twin: of the sessions, where the window tells them from the rest
/// of the server.
fn cpu_ratio(window: &Observation, twin: &Observation) -> Option<f64> {
    let (seen, base) = (window.costs.cpu_ns?, twin.costs.cpu_ns?);
    match (window.costs.background_ns, twin.costs.background_ns) {
        (Some(rest), Some(rest_of_base)) => over(seen - rest, base - rest_of_base),
        _ => over(seen, base),
    }
}

fn log_factor(measured: &[Observation], simulated: &[Observation]) -> Option<Range> {
    let ratios = |of: &dyn Fn(&Costs) -> Option<f64>| {
        let ratio =
            |window: &Observation| over(of(&window.costs)?, of(&twin(window, simulated)?.costs)?);
        Range::of(measured.iter().filter_map(ratio))
    };
    // Page images depend on checkpoints and memory, which the model knows.
    let own = |costs: &Costs| {
        let (log, images) = (costs.log_bytes?, costs.image_bytes?);
        (images <= log * MOST_IMAGES).then_some(log - images)
    };
    let has_images = measured.iter().any(|window| window.costs.image_bytes.is_some());
    if has_images { ratios(&own) } else { ratios(&|costs| costs.log_bytes) }
}

/// By type: processor time per transaction over that of the twin, as a multiple of the same of all types that were observed, so
/// that it says nothing of all of them together. Of a single type there is nothing to say.
fn type_ratios(window: &[TypeCosts], twin: &[TypeCosts]) -> Vec<Option<f64>> {
    let pairs: Vec<Option<(u64, f64, f64)>> = window
        .iter()
        .zip(twin)
        .map(|(seen, base)| {
            Some((seen.ended, seen.cpu_ns?, base.cpu_ns.filter(|base| *base > 0.0)?))
        })
        .collect();
    let (mut types, mut of_seen, mut of_base) = (0, 0.0, 0.0);
    for (ended, seen, base) in pairs.iter().flatten() {
        types += 1;
        of_seen += *ended as f64 * seen;
        of_base += *ended as f64 * base;
    }
    let all = over(of_seen, of_base).filter(|all| types > 1 && *all > 0.0);
    pairs
        .into_iter()
        .map(|pair| pair.zip(all).map(|((_, seen, base), all)| seen / base / all))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{cpu_scales, fitted};
    use crate::databases::{Costs, Observation, TypeCosts};
    use underlay_core::Nanos;
    use underlay_engine::DemandProfile;

    fn window(users: u32, costs: Costs) -> Observation {
        Observation { users, costs, ..Observation::default() }
    }

    #[test]
    fn factors_are_medians_over_the_windows() {
        let window = |users, cpu, log, images: Option<f64>| {
            let (cpu_ns, log_bytes) = (Some(cpu), Some(log));
            window(users, Costs { cpu_ns, log_bytes, image_bytes: images, ..Costs::default() })
        };
        let simulated =
            [window(4, 100.0, 3_000.0, Some(1_000.0)), window(16, 200.0, 2_000.0, Some(0.0))];
        let measured = [
            window(4, 150.0, 9_000.0, Some(8_500.0)),
            window(4, 160.0, 9_000.0, Some(9_500.0)),
            window(16, 400.0, 2_000.0, Some(1_000.0)),
            window(99, 1.0, 1.0, Some(0.0)),
        ];
        let defaults = DemandProfile::tpcc_postgresql();
        let fit = fitted(&defaults, &measured, &simulated);
        assert!((fit.demands.cpu_factor - 1.6).abs() < 1e-9, "{:?}", fit.cpu);
        assert!(
            (fit.demands.log_factor - 0.5).abs() < 1e-9,
            "without images, where they are not most of the log: {:?}",
            fit.log
        );
        assert_eq!(fit.demands.types, defaults.types);
        assert_eq!(fit.demands.background_cpu, Nanos::ZERO);
        let scales = cpu_scales(&measured, &simulated);
        let near = |users, wanted: f64| (scales[&users] - wanted).abs() < 1e-9;
        assert!(near(4, 1.55 / 1.6) && near(16, 2.0 / 1.6) && scales.len() == 2, "{scales:?}");
        let unseen = Observation::default();
        assert_eq!(fitted(&defaults, &[unseen], &simulated).demands, defaults);
    }

    #[test]
    fn what_no_session_waits_for_is_not_in_the_times_of_sessions() {
        let of = |cpu: f64, background: Option<f64>| {
            let costs = Costs { cpu_ns: Some(cpu), background_ns: background, ..Costs::default() };
            [window(1, costs)]
        };
        let defaults = DemandProfile::tpcc_mariadb();
        // 80,000 of sessions become 160,000; of the rest the pages make 2 x 20,000.
        let simulated = of(100_000.0, Some(20_000.0));
        let fit = fitted(&defaults, &of(260_000.0, Some(100_000.0)), &simulated);
        assert!((fit.demands.cpu_factor - 2.0).abs() < 1e-9, "{fit:?}");
        assert_eq!(fit.demands.background_cpu, Nanos(30_000), "times the factor");
        assert_eq!(fit.demands.scaled().background_cpu, Nanos(60_000));
        let little = fitted(&defaults, &of(170_000.0, Some(10_000.0)), &simulated);
        assert_eq!(little.demands.background_cpu, Nanos::ZERO, "never less than that of pages");
        let together = fitted(&defaults, &of(260_000.0, None), &simulated);
        assert!((together.demands.cpu_factor - 2.6).abs() < 1e-9, "{together:?}");
        assert_eq!(together.demands.background_cpu, Nanos::ZERO);
    }

    #[test]
    fn types_are_told_apart_and_their_sum_stays() {
        let of = |types: &[(u64, f64)]| {
            let types = types
                .iter()
                .map(|&(ended, cpu)| TypeCosts { ended, cpu_ns: (cpu > 0.0).then_some(cpu) });
            [Observation { users: 4, types: types.collect(), ..Observation::default() }]
        };
        let defaults = DemandProfile::tpcc_postgresql();
        let simulated = of(&[(9, 500.0), (9, 200.0), (1, 100.0), (1, 900.0), (1, 700.0)]);
        // New-Order costs twice as much against the others, of which one was not seen.
        let seen = of(&[(45, 1_000.0), (43, 200.0), (4, 100.0), (4, 900.0), (4, 0.0)]);
        let fit = fitted(&defaults, &seen, &simulated);
        let factors: Vec<f64> = fit.types.iter().flatten().map(|range| range.value).collect();
        assert_eq!(fit.types[4], None);
        assert_eq!(factors.len(), 4);
        assert!((factors[0] / factors[1] - 2.0).abs() < 1e-9, "{factors:?}");
        let sum = |costs: &[f64]| -> f64 {
            [45.0, 43.0, 4.0, 4.0].iter().zip(costs).map(|(count, cost)| count * cost).sum()
        };
        let base = [500.0, 200.0, 100.0, 900.0];
        let fitted_costs: Vec<f64> = base.iter().zip(&factors).map(|(b, f)| b * f).collect();
        assert!((sum(&fitted_costs) / sum(&base) - 1.0).abs() < 1e-9, "{factors:?}");
        let [new_order, payment] = [0, 1].map(|kind| fit.demands.types[kind].cpu_base.0 as f64);
        let [by_default, other] = [0, 1].map(|kind| defaults.types[kind].cpu_base.0 as f64);
        assert!((new_order / payment / (by_default / other) - 2.0).abs() < 1e-3);
        let alone = fitted(&defaults, &of(&[(45, 1_000.0)]), &simulated);
        assert_eq!(alone.demands.types, defaults.types, "a single type says nothing of others");
    }
}
