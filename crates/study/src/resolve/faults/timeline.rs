//! When scheduled faults happen in a run in which every phase takes exactly its time.

use underlay_core::Nanos;

use crate::fault_plan::{FaultPhase, FaultPlan};
use crate::plan::ProcedurePlan;
use crate::resolve::moment::phase_length;

/// From when to when a fault is in force, since the beginning of the first phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub begin: Nanos,
    /// At most the end of the load. Equal to `begin` for single acts.
    pub end: Nanos,
}

impl Window {
    pub fn overlaps(self, other: Window) -> bool {
        self.begin < other.end && other.begin < self.end
    }
}

/// The end of the load.
pub(super) fn load_end(procedure: &ProcedurePlan) -> Nanos {
    let rung = procedure.ramp_up + procedure.measure;
    procedure.settle + procedure.warm_up + Nanos(rung.0 * procedure.users.len() as u64)
}

/// When a fault is in force.
pub(super) fn window(fault: &FaultPlan, procedure: &ProcedurePlan) -> Window {
    let begin = phase_begin(fault, procedure) + fault.at;
    let end = match fault.lasts {
        _ if !fault.action.kind().can_last() => begin,
        Some(lasts) => (begin + lasts).min(load_end(procedure)),
        None => load_end(procedure),
    };
    Window { begin, end }
}

fn phase_begin(fault: &FaultPlan, procedure: &ProcedurePlan) -> Nanos {
    let before = |phase: FaultPhase| {
        let earlier = FaultPhase::ALL.into_iter().take_while(|other| *other != phase);
        earlier.map(|phase| phase_length(procedure, phase)).sum::<Nanos>()
    };
    let rung = procedure.users.iter().position(|users| Some(*users) == fault.users).unwrap_or(0);
    let rungs = Nanos((procedure.ramp_up + procedure.measure).0 * rung as u64);
    before(fault.phase) + rungs
}

#[cfg(test)]
mod tests {
    use super::{Window, load_end, window};
    use crate::fault_plan::{FaultAction, FaultPhase, FaultPlan};
    use crate::plan::ProcedurePlan;
    use underlay_core::Nanos;

    fn procedure() -> ProcedurePlan {
        ProcedurePlan {
            users: vec![1, 4],
            settle: Nanos::from_secs(1),
            warm_up: Nanos::from_secs(10),
            ramp_up: Nanos::from_secs(100),
            measure: Nanos::from_secs(1000),
            ..ProcedurePlan::empty()
        }
    }

    fn of(phase: FaultPhase, users: Option<u32>, lasts: Option<u64>) -> (u64, u64) {
        let fault = FaultPlan {
            action: FaultAction::PowerCut,
            at: Nanos::from_millis(500),
            phase,
            users,
            lasts: lasts.map(Nanos::from_secs),
            designs: vec![0],
            line: 1,
        };
        let Window { begin, end } = window(&fault, &procedure());
        (begin.0 / 1_000_000, end.0 / 1_000_000)
    }

    #[test]
    fn phases_follow_each_other_rung_by_rung() {
        assert_eq!(of(FaultPhase::Settle, None, Some(1)), (500, 1_500));
        assert_eq!(of(FaultPhase::WarmUp, None, Some(2)), (1_500, 3_500));
        assert_eq!(of(FaultPhase::RampUp, Some(1), Some(1)), (11_500, 12_500));
        assert_eq!(of(FaultPhase::Measure, Some(1), Some(1)), (111_500, 112_500));
        assert_eq!(of(FaultPhase::Measure, Some(4), Some(1)), (1_211_500, 1_212_500));
        // Without an end of its own, and beyond the end of the load.
        assert_eq!(load_end(&procedure()), Nanos::from_secs(2_211));
        assert_eq!(of(FaultPhase::Measure, Some(4), None), (1_211_500, 2_211_000));
        assert_eq!(of(FaultPhase::Measure, Some(4), Some(9_999)), (1_211_500, 2_211_000));
    }
}
