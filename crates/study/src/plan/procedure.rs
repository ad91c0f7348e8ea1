//! How a plan is measured: the ladder of users, repeats and their order, searches.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use underlay_core::{Dilation, Nanos, words};
use underlay_workload::objective::Objective;

use super::Precision;
use crate::json_value::{FromJson, ToJson, json_struct};
use crate::procedure_keys;

/// Once per rung of a null twin: load that does not count yet.
pub const TWIN_RAMP_UP: Nanos = Nanos::from_secs(1);
/// Once per rung of a null twin: what counts. Short, because only a difference of a fifth matters.
pub const TWIN_MEASURE: Nanos = Nanos::from_secs(2);

/// The plan of the plain keys and of the decisions that are declared here.
macro_rules! plan_with {
    (
        [$($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty = $kind:expr,
            plan $json:literal, of [$($load:ident),+], unused $unused:expr
            $(, option $option:literal $value:literal $help:literal)?;)*]
        $(#[doc = $struct_doc:literal])+
        #[derive($($derived:ident),+)]
        pub struct $name:ident {
            $($(#[doc = $other_doc:literal])+
            $other_json:literal $other:ident: $other_type:ty = $other_unused:expr;)*
        }
    ) => {
        json_struct! {
            $(#[doc = $struct_doc])+
            #[derive($($derived),+)]
            pub struct $name {
                $($(#[doc = $doc])+ $json $field: $type,)*
                $($(#[doc = $other_doc])+ $other_json $other: $other_type,)*
            }
        }

        impl $name {
            /// A plan that measures nothing: one user, one run, every phase empty and everything that may be left out absent.
            pub fn empty() -> $name {
                $name { $($field: $unused,)* $($other: $other_unused,)* }
            }
        }
    };
}

procedure_keys! { plan_with!
    /// How a study is measured. One run = restore, start, settle, warm up, then per rung of the ladder
    /// ramp up and measure, then stop and check.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ProcedurePlan {
        /// Virtual users of each rung, in the order of the run, each once; of a job its sessions, of a block load its threads per
        /// volume, ascending.
        "users" users: Vec<u32> = vec![1];
        /// Users that it rises to, where they are not those of the highest rung.
        "warm_up_users" warm_up_to: Option<u32> = None;
        /// Before the measured window: the search for the highest rate that meets a latency target.
        "search" search: Option<SearchPlan> = None;
        /// After the last rung, in the first repeat: which resource limits throughput, by experiment.
        "causal" causal: Option<CausalPlan> = None;
        /// After all that, without users.
        "cool_down" cool_down: Option<CoolDownPlan> = None;
        /// Runs per design; at most, where a precision ends the repeats.
        "repeats" repeats: u32 = 1;
        /// The repeats end when the interval of every main ratio is as narrow as this.
        "repeats_until" repeats_until: Option<Precision> = None;
    }
}

impl ProcedurePlan {
    /// Users of the highest rung, wherever in the ladder it is.
    pub fn most_users(&self) -> u32 {
        self.users.iter().copied().max().unwrap_or(1)
    }

    /// Users that the load of the warm-up rises to.
    pub fn warm_up_users(&self) -> u32 {
        self.warm_up_to.unwrap_or_else(|| self.most_users())
    }

    /// Users that are active at once, at most: those of the highest rung, or of the warm-up.
    pub fn users_at_once(&self) -> u32 {
        self.most_users().max(self.warm_up_users())
    }
}

/// How many times longer a study takes than what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeDilation {
    /// As the study says.
    Factor(Dilation),
    /// The smallest factor at which this host's share of storage times is small, found before the first run.
    Auto,
}

impl TimeDilation {
    /// Real time.
    pub const NONE: TimeDilation = TimeDilation::Factor(Dilation::NONE);
    /// The largest factor that `auto` chooses. Users have to ask for a study that takes longer.
    pub const AUTO_MAX: u32 = 16;

    /// Whether it is real time for certain.
    pub fn is_none(self) -> bool {
        self == TimeDilation::NONE
    }

    /// The factor, where the study says it.
    pub fn factor(self) -> Option<Dilation> {
        match self {
            TimeDilation::Factor(dilation) => Some(dilation),
            TimeDilation::Auto => None,
        }
    }
}

/// Why the text of a time dilation was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time dilation; write a whole number from 1 to {max}, or auto", max = Dilation::MAX)]
pub struct TimeDilationError(pub String);

impl FromStr for TimeDilation {
    type Err = TimeDilationError;
    fn from_str(text: &str) -> Result<TimeDilation, TimeDilationError> {
        match text.trim() {
            "auto" => Ok(TimeDilation::Auto),
            number => number
                .parse()
                .ok()
                .and_then(Dilation::new)
                .map(TimeDilation::Factor)
                .ok_or_else(|| TimeDilationError(text.to_string())),
        }
    }
}

impl fmt::Display for TimeDilation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeDilation::Factor(dilation) => write!(f, "{}", dilation.factor()),
            TimeDilation::Auto => f.write_str("auto"),
        }
    }
}

/// The factor, or `auto`.
impl ToJson for TimeDilation {
    fn to_json(&self) -> Value {
        match self {
            TimeDilation::Factor(dilation) => dilation.factor().into(),
            TimeDilation::Auto => "auto".into(),
        }
    }
}

impl FromJson for TimeDilation {
    fn from_json(value: &Value) -> Option<TimeDilation> {
        match value.as_str() {
            Some(text) => text.parse().ok(),
            None => value.as_u64()?.to_string().parse().ok(),
        }
    }
}

/// A search for the highest rate that meets a latency target. It begins at the rate of the open
/// loop, and its answer is the headline of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// What must be met.
    pub objective: Objective,
    /// How near the highest rate that holds and the lowest that fails come, as a share of the former: 0.05.
    pub resolution: f64,
    /// Unmeasured time at each rate.
    pub settle: Nanos,
    /// Measured time at each rate; the answer is measured once more, for twice as long.
    pub measure: Nanos,
}

/// A causal check: one resource after another is slowed and released again, under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CausalPlan {
    /// Time in which resources are slowed and released.
    pub length: Nanos,
    /// Whether each resource is made faster as well, for as long again.
    pub what_if: bool,
}

impl CausalPlan {
    /// Time that the whole check takes of a run.
    pub fn total(&self) -> Nanos {
        if self.what_if { self.length + self.length } else { self.length }
    }
}

/// The phase after the load, without users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolDownPlan {
    /// The longest it takes.
    pub at_most: Nanos,
    /// What ends it earlier.
    pub until: Option<Until>,
}

impl ToJson for CoolDownPlan {
    fn to_json(&self) -> Value {
        json!({ "at_most_ns": self.at_most.0, "until": self.until.map(Until::as_str) })
    }
}

words! {
    /// What a phase waits for.
    pub enum Until: "condition" {
        /// Nothing is being copied, and no copy misses anything.
        ResyncDone = "resync-done",
    }
}

impl ToJson for CausalPlan {
    fn to_json(&self) -> Value {
        json!({ "length_ns": self.length.0, "what_if": self.what_if })
    }
}

impl ToJson for SearchPlan {
    fn to_json(&self) -> Value {
        json!({
            "slo": self.objective.to_string(),
            "quantile": self.objective.quantile,
            "limit_ns": self.objective.limit.0,
            "resolution": self.resolution,
            "settle_ns": self.settle.0,
            "measure_ns": self.measure.0,
        })
    }
}

impl ToJson for Order {
    fn to_json(&self) -> Value {
        self.as_str().into()
    }
}

words! {
    /// How the runs of the designs are interleaved.
    pub enum Order: "order" {
        /// Drawn by the seed. Of each four repeats, every order has its reverse, so that a drift of the host hits all
        /// designs alike; and none follows from the one before, so that a host whose runs resemble each other
        /// does not look like a difference.
        Random = "random",
        /// A B, B A, A B, ...: every second repeat is reversed.
        Abba = "abba",
        /// A B, A B, A B, ...
        Rotating = "rotating",
    }
}
