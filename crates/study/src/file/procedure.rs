//! `[procedure]`: how a study is measured.

use schemars::json_schema;
use underlay_core::Nanos;

use crate::entry::{Entry, Section};
use crate::limits::{REPEATS, RESOLUTION, RUNGS_MAX, USERS};
use crate::plan::{Order, Repeats, TimeDilation, Until};
use crate::procedure_keys;
use crate::quantity_schema::Time;
use crate::section::*;

/// What a ladder is, for messages.
const LADDER: &str = "numbers of virtual users, such as [1, 4, 16]";

/// A number of repeats, or a precision.
fn repeats() -> impl Kind<Value = Repeats> {
    kind(
        |item, report| item.repeats(report),
        |_| {
            json_schema!({ "anyOf": [
                { "type": "integer", "minimum": REPEATS.start(), "maximum": REPEATS.end() },
                { "type": "string", "pattern": r"^until [0-9.]+ ?%$" },
            ] })
        },
    )
}

/// The section of the plain keys and of those that are declared here.
macro_rules! section_with {
    (
        [$($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty = $kind:expr,
            plan $json:literal, of [$($load:ident),+], unused $unused:expr
            $(, option $option:literal $value:literal $help:literal)?;)*]
        $(#[doc = $section_doc:literal])+
        $vis:vis struct $name:ident as $schema_name:literal { $($others:tt)* }
        $($limits:tt)*
    ) => {
        section! {
            $(#[doc = $section_doc])+
            $vis struct $name as $schema_name {
                $($others)*
                $($(#[doc = $doc])+ $key $field: Entry<$type> = One($kind);)*
            }
            $($limits)*
        }
    };
}

procedure_keys! { section_with!
    /// How the study is measured. One run = restore, start, settle, warm up, then ramp up and
    /// measure for
    /// each rung of the ladder, then stop and check.
    pub(crate) struct Procedure as "Procedure" {
        /// Virtual users of each rung of the ladder, each number once, in the order of the run.
        "users" users: Entry<Vec<u32>> =
            One(list_of(1..=RUNGS_MAX, LADDER, count(USERS)));
        /// Users that the load of the warm-up rises to. Those of the highest rung, when left out.
        "warm-up-users" warm_up_users: Entry<u32> = One(count(USERS));
        /// After the measured window of the last rung, in the first repeat: one resource after another is
        /// slowed and released again for this long, to find which one limits throughput. At least
        /// 10 s; none, when left out.
        "causal-check" causal_check: Entry<Nanos> = One(time());
        /// Also make each resource 20 % faster for a while, and compare with what the causal check
        /// predicts. Takes as long again.
        "what-if" what_if: Entry<bool> = One(boolean());
        /// After everything else, without users: a length, or a condition that ends it. None, when left
        /// out.
        "cool-down" cool_down: Entry<Section<CoolDown>> = One(cool_down());
        /// A search for the highest rate that meets a latency target, before the measured window.
        "search" search: Section<Search> = table::<Search>();
        /// Runs per design: a number, of which at least 3 give a useful confidence interval; or
        /// `until 5 %`: until the interval of the main ratio is within 5 % of it.
        "repeats" repeats: Entry<Repeats> = One(repeats());
        /// With `repeats = "until 5 %"`: runs per design at most.
        "repeats-at-most" repeats_at_most: Entry<u32> = One(count(REPEATS));
    }
    written_for {
        "dilation" => "time-dilation", "ladder" => "users", "virtual-users" => "users", "duration" => "measure",
        "rampup" => "ramp-up", "cooldown" => "cool-down",
    }
    limits { "required": ["users"] }
}

section! {
    /// A phase after the load that ends when something is done.
    pub(crate) struct CoolDown as "CoolDown" {
        /// `resync-done` = nothing is being copied, and nothing misses anything.
        "until" until: Entry<Until> = One(word::<Until>());
        /// It ends after this time in any case.
        "at-most" at_most: Entry<Nanos> = One(time());
    }
    limits { "required": ["until", "at-most"] }
}

/// A length, or a condition with the longest time it may take.
fn cool_down() -> impl Kind<Value = Section<CoolDown>> {
    kind(
        |item, report| {
            if item.is_table() {
                return Some(item.section(report, CoolDown::read));
            }
            let at_most = Entry::Given { value: item.time(report)?, span: item.span.clone() };
            let content = CoolDown { at_most, ..CoolDown::default() };
            Some(Section { content, span: Some(item.span.clone()), refused: false })
        },
        |generator| {
            let time = generator.subschema_for::<Time>();
            let table = generator.subschema_for::<CoolDown>();
            json_schema!({ "anyOf": [time, table] })
        },
    )
}

section! {
    /// A search for the highest rate that meets a latency target. The workload must follow a clock:
    /// its rate is the first one that
    /// is offered. The answer is what designs are compared by.
    pub(crate) struct Search as "Search" {
        /// The target: a quantile of the response time of all transactions and its limit, such as
        /// `p99=10ms`.
        "slo" slo: Entry<String> = One(text_like(r"^p[0-9.]+=.+$"));
        /// The search ends when the lowest rate that fails is that share above the highest that
        /// holds.
        "resolution" resolution: Entry<f64> = One(number(RESOLUTION));
        /// Unmeasured time at each rate.
        "settle" settle: Entry<Nanos> = One(time());
        /// Measured time at each rate; the answer is measured once more, for twice as long.
        "measure" measure: Entry<Nanos> = One(time());
    }
    written_for {
        "target" => "slo", "objective" => "slo",
    }
    limits { "required": ["slo"] }
}
