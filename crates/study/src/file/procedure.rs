//! `[procedure]`: how a study is measured.

use schemars::JsonSchema;
use underlay_core::Nanos;

use crate::entry::{Entry, Section};
use crate::limits::RESOLUTION;
use crate::plan::Order;
use crate::reader::Keys;
use crate::schema::Time;
use crate::words::Word;

/// How the study is measured. One run = restore, start, settle, warm up, then ramp up and measure for
/// each rung of the ladder, then stop and check.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["users"]))]
pub(crate) struct Procedure {
    /// Virtual users of each rung of the ladder, strictly ascending.
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 100_000)))]
    pub users: Entry<Vec<u32>>,
    /// Idle time between the start of the server and the warm-up.
    #[schemars(with = "Time")]
    pub settle: Entry<Nanos>,
    /// Once per run: load rising from one user to the top of the ladder, not measured.
    #[schemars(with = "Time")]
    pub warm_up: Entry<Nanos>,
    /// Once per rung: users rise to the number of the rung, not measured.
    #[schemars(with = "Time")]
    pub ramp_up: Entry<Nanos>,
    /// Once per rung: the measured window, at least 5 s.
    #[schemars(with = "Time")]
    pub measure: Entry<Nanos>,
    /// A search for the highest rate that meets a latency target, before the measured window.
    pub search: Section<Search>,
    /// Runs per design. At least 3 give a useful confidence interval.
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: Entry<u32>,
    /// How the runs of the designs are interleaved: `abba` reverses every second repeat.
    #[schemars(with = "Word<Order>")]
    pub order: Entry<Order>,
}

/// A search for the highest rate that meets a latency target. The workload must follow a clock: its rate is the first one that
/// is offered. The answer is what designs are compared by.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["slo"]))]
pub(crate) struct Search {
    /// The target: a quantile of the response time of all transactions and its limit, such as `p99=10ms`.
    #[schemars(regex(pattern = r"^p[0-9.]+=.+$"))]
    pub slo: Entry<String>,
    /// The search ends when the lowest rate that fails is that share above the highest that holds.
    #[schemars(range(min = 0.005, max = 1))]
    pub resolution: Entry<f64>,
    /// Unmeasured time at each rate.
    #[schemars(with = "Time")]
    pub settle: Entry<Nanos>,
    /// Measured time at each rate; the answer is measured once more, for twice as long.
    #[schemars(with = "Time")]
    pub measure: Entry<Nanos>,
}

/// Reads the procedure. Ranges are checked by the resolver, which also sees the command line.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Procedure {
    keys.alias("ladder", "users");
    keys.alias("virtual-users", "users");
    keys.alias("duration", "measure");
    keys.alias("rampup", "ramp-up");
    Procedure {
        users: keys.take("users", |item, report| {
            item.list(report, "numbers of virtual users, such as [1, 4, 16]", |item, report| {
                item.count(report)
            })
        }),
        settle: keys.take("settle", |item, report| item.time(report)),
        warm_up: keys.take("warm-up", |item, report| item.time(report)),
        ramp_up: keys.take("ramp-up", |item, report| item.time(report)),
        measure: keys.take("measure", |item, report| item.time(report)),
        search: keys.section("search", |keys| {
            keys.alias("target", "slo");
            keys.alias("objective", "slo");
            Search {
                slo: keys.take("slo", |item, report| item.text(report)),
                resolution: keys.take("resolution", |item, report| item.number(report, RESOLUTION)),
                settle: keys.take("settle", |item, report| item.time(report)),
                measure: keys.take("measure", |item, report| item.time(report)),
            }
        }),
        repeats: keys.take("repeats", |item, report| item.count(report)),
        order: keys.take("order", |item, report| item.word(report)),
    }
}
