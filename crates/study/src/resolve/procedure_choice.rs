//! The decisions about a procedure, whatever load it measures.
//!
//! How each load decides is not here: see `procedure`, `job_procedure` and `block_procedure`.

use underlay_core::Nanos;

use super::chosen::Chosen;
use super::procedure_keys::PlainKeys;
use super::repeats::RepeatsChoice;
use crate::plan::{CausalPlan, CoolDownPlan, ProcedurePlan, SearchPlan, TimeDilation};

/// The decisions about the procedure. What one of its parts needs of another is known also where a third is refused.
#[derive(Clone, Debug)]
pub(crate) struct ProcedureChoice {
    /// None where any part is refused.
    pub plan: Option<ProcedurePlan>,
    pub phases: Phases,
    /// None where the ladder is refused.
    pub ladder: Option<Ladder>,
    /// None where it is refused, and of a job.
    pub time_dilation: Option<Chosen<TimeDilation>>,
    /// None where the repeats are refused.
    pub repeats: Option<RepeatsChoice>,
    /// None where the load of the warm-up rises to the top of the ladder.
    pub warm_up_users: Option<Chosen<u32>>,
}

/// How long each phase lasts; none where that is refused.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    pub settle: Option<Nanos>,
    pub warm_up: Option<Nanos>,
    pub ramp_up: Option<Nanos>,
    pub measure: Option<Nanos>,
}

impl Phases {
    /// As the keys say.
    pub fn of(keys: &PlainKeys) -> Phases {
        let value = |time: &Option<Chosen<Nanos>>| time.as_ref().map(|time| time.value);
        Phases {
            settle: value(&keys.settle),
            warm_up: value(&keys.warm_up),
            ramp_up: value(&keys.ramp_up),
            measure: value(&keys.measure),
        }
    }
}

/// The ladder of users; of a job its sessions, of a block load its threads per volume.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// As it is climbed.
    pub users: Vec<u32>,
    /// Before scaling.
    pub full: Vec<u32>,
    /// Its top, placed where the ladder was decided.
    pub top: Chosen<u32>,
}

impl ProcedureChoice {
    /// The top of the ladder, where there is one.
    pub fn top(&self) -> Option<&Chosen<u32>> {
        self.ladder.as_ref().map(|ladder| &ladder.top)
    }

    /// The users that are active at once, at most, placed where that was decided.
    pub fn users_at_once(&self) -> Option<&Chosen<u32>> {
        let top = self.top()?;
        Some(self.warm_up_users.as_ref().filter(|users| users.value > top.value).unwrap_or(top))
    }
}

/// What a study may leave out, once that is decided; the outer `None` = it was refused.
type Decided<T> = Option<Option<T>>;

/// The plan, if every part of it is decided.
pub(super) fn plan(
    keys: Option<ProcedurePlan>,
    ladder: Option<&Ladder>,
    (search, causal, cool_down): (Decided<SearchPlan>, Decided<CausalPlan>, Decided<CoolDownPlan>),
    repeats: Option<&RepeatsChoice>,
) -> Option<ProcedurePlan> {
    Some(ProcedurePlan {
        users: ladder?.users.clone(),
        search: search?,
        causal: causal?,
        cool_down: cool_down?,
        repeats: repeats?.most(),
        repeats_until: repeats?.until(),
        ..keys?
    })
}
