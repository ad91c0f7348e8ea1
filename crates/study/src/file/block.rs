//! `[workload.block]`: a block load on the volumes themselves, without a database.

use schemars::json_schema;
use underlay_core::Bytes;

use crate::entry::Entry;
use crate::limits::{
    BLOCK_CONCURRENCY, BLOCK_PRECONDITION, CURVE_PERCENT, CURVE_POINTS, RATE_PER_SECOND, RUNGS_MAX,
};
use crate::plan::Arrivals;
use crate::section::*;

section! {
    /// A block load on every volume of every design. No database server is started.
    pub(crate) struct Block as "Block" {
        /// What is asked of each volume: an `[[io-profile]]` of this study, or a built-in one
        /// (`underlay list io-profiles`).
        "profile" profile: Entry<String> = One(text());
        /// Threads per volume, each with a sequence of requests of its own: one number, or the rungs of a
        /// ladder, ascending. The profile's, when left out.
        "threads" threads: Entry<Vec<u32>> = One(threads());
        /// Requests in flight per thread. The profile's, when left out.
        "queue-depth" queue_depth: Entry<u64> = One(whole(BLOCK_CONCURRENCY));
        /// Requests per second over all volumes of a design, by a clock. The profile's rates per
        /// volume, or as fast as it goes, when left out.
        "rate-per-second" rate_per_second: Entry<f64> = One(number(RATE_PER_SECOND));
        /// A rate curve: the maximum first, then these percentages of it by a clock, ascending.
        "curve" curve: Entry<Vec<u32>> =
            One(list_of(1..=CURVE_POINTS, "percentages of the maximum", count(CURVE_PERCENT)));
        /// How requests by a clock are spread in time.
        "arrivals" arrivals: Entry<Arrivals> = One(word::<Arrivals>());
        /// Size of the file on each volume that the load uses.
        "working-set" working_set: Entry<Bytes> = One(size());
        /// How many times each file is written from its beginning to its end, at the speed of the
        /// design, before the load.
        "precondition" precondition: Entry<u64> = One(whole(BLOCK_PRECONDITION));
        /// Whether every block is marked when it is written, and compared whenever it is read and
        /// once more at the end.
        "verify" verify: Entry<bool> = One(boolean());
    }
    written_for {
        "name" => "profile", "io-profile" => "profile", "load" => "profile", "users" => "threads",
        "numjobs" => "threads", "iodepth" => "queue-depth", "rate" => "rate-per-second",
        "size" => "working-set",
    }
    limits { "required": ["profile"] }
}

/// A number of threads, or several.
fn threads() -> impl Kind<Value = Vec<u32>> {
    const LADDER: &str = "numbers of threads, such as [1, 8, 32]";
    kind(
        |item, report| {
            item.one_or_more(report, LADDER, |item, report| {
                let threads = item.integer(report, BLOCK_CONCURRENCY)?;
                u32::try_from(threads).ok()
            })
        },
        |_| {
            let (least, most) = (BLOCK_CONCURRENCY.start(), BLOCK_CONCURRENCY.end());
            let one = json_schema!({ "type": "integer", "minimum": least, "maximum": most });
            json_schema!({ "anyOf": [
                one,
                { "type": "array", "items": one, "minItems": 1, "maxItems": RUNGS_MAX },
            ] })
        },
    )
}
