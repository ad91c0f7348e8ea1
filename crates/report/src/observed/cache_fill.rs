//! When the memory of a server was full of pages: what is read before that is read for the first time, and no steady state.
//!
//! Read off the memory that is charged to the server's control group, its page cache included. What it deliberately does not
//! do: judge whether what fits is enough.

use serde_json::json;
use underlay_core::Nanos;
use underlay_record::conventions::{event, source};
use underlay_record::{Event, PhaseKind};

use super::run::ObservedRun;
use crate::wording::gigabytes;

/// Memory counts as full from this part of the most that was ever charged on: later it varies by a few per cent, because
/// pages are reclaimed in batches.
const FULL: f64 = 0.98;
/// With more than this part of it at the begin of the load, there was nothing to fill.
const FILLED_BEFORE: f64 = 0.9;
/// Part of the time under load that it must have been full for. Else it may still be growing.
const LEVEL: f64 = 0.25;
/// Fewer readings show no level.
const READINGS: usize = 20;

/// The moment, as an event of the run: `memory full: 8.6 GB, 540 s after the load began`.
pub(crate) fn cache_fill_event(run: &ObservedRun) -> Option<Event> {
    let loaded = [PhaseKind::WarmUp, PhaseKind::RampUp, PhaseKind::Measure];
    let under_load = || run.phases.iter().filter(|phase| loaded.contains(&phase.kind));
    let begin = under_load().map(|phase| phase.begin).min()?;
    let end = under_load().filter_map(|phase| phase.end).max()?;
    let span = (begin.as_secs_f64(), end.as_secs_f64());
    let used = run.series(source::CGROUP, "memory.usage")?;
    let used: Vec<(f64, f64)> =
        used.values().into_iter().filter(|(at, _)| (span.0..=span.1).contains(at)).collect();
    let (at, most) = filled(&used)?;
    Some(Event {
        run: Some(run.run.id),
        at: Nanos((at * 1e9) as u64),
        kind: event::MEMORY_FULL.to_string(),
        text: format!(
            "memory full: {}, {:.0} s after the load began",
            gigabytes(most),
            at - span.0
        ),
        data: json!({}),
    })
}

/// When a gauge (time, value) reached its level, and the most that it was; `None` where it began there, or never did.
fn filled(used: &[(f64, f64)]) -> Option<(f64, f64)> {
    let most = used.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let full = used.iter().position(|(_, value)| *value >= FULL * most)?;
    let is_level = (used.len() - full) as f64 >= LEVEL * used.len() as f64;
    let was_filled = used[0].1 > FILLED_BEFORE * most;
    (used.len() >= READINGS && is_level && !was_filled).then_some((used[full].0, most))
}

#[cfg(test)]
mod tests {
    use super::filled;

    fn readings(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..100).map(|at| (f64::from(at), value(f64::from(at)))).collect()
    }

    #[test]
    fn memory_is_full_when_it_no_longer_grows() {
        let level = readings(|at| (at * 20.0).min(800.0) - 3.0 * (at % 5.0));
        let (at, most) = filled(&level).expect("it levels off");
        assert!((39.0..=41.0).contains(&at) && most == 800.0, "{at} {most}");
    }

    #[test]
    fn what_was_full_and_what_still_grows_has_no_such_moment() {
        assert_eq!(filled(&readings(|at| 760.0 + at.min(40.0))), None);
        assert_eq!(filled(&readings(|at| 8.0 * at)), None);
        assert_eq!(filled(&readings(|at| at.min(9.0))[..15]), None);
        assert_eq!(filled(&[]), None);
    }
}
