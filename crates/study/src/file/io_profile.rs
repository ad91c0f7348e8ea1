//! A block load, as a file of its own for `underlay io` or as an `[[io-profile]]` of a study: jobs, their streams,
//! their data.

use std::ops::RangeInclusive;
use underlay_core::words;

use schemars::JsonSchema;
use underlay_core::Bytes;
use underlay_workload::block::{Provenance, Runs};

use crate::entry::{Entry, Section};
use crate::limits::RATE_PER_SECOND;
use crate::plan::Arrivals;
use crate::reader::{Item, Keys};
use crate::report::Report;
use crate::schema;
use crate::words::Word;

/// Threads, and requests in flight of one.
const CONCURRENCY: RangeInclusive<u64> = 1..=4096;
const PERCENT: RangeInclusive<f64> = 0.0..=100.0;
const WEIGHT: RangeInclusive<f64> = 1e-6..=1e9;

/// The whole file, or one `[[io-profile]]` of a study.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["name", "job"]))]
pub(crate) struct IoProfile {
    /// Name of the block load: lower case letters, digits and `-`.
    pub name: Entry<String>,
    /// One line for people.
    pub title: Entry<String>,
    /// Where its parameters come from.
    pub source: Entry<String>,
    /// Whether the original was published, or this is a model of it. `model`, when left out.
    #[schemars(with = "Word<Provenance>")]
    pub kind: Entry<Provenance>,
    /// What written bytes look like.
    pub data: Section<Data>,
    /// Threads with streams of their own; jobs run beside each other.
    #[schemars(rename = "job")]
    pub jobs: Entry<Vec<Section<Job>>>,
}

/// What written bytes look like.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename = "IoData", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Data {
    /// By how much LZ4 shrinks each block of 4 KiB; 1, noise, when left out.
    #[schemars(range(min = 1, max = 40))]
    pub compress_ratio: Entry<f64>,
    /// Share of blocks of 4 KiB whose content another block has too; 0, when left out.
    #[schemars(range(min = 0, max = 99))]
    pub duplicate_percent: Entry<f64>,
}

/// Threads with streams of their own.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename = "IoJob", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["stream"]))]
pub(crate) struct Job {
    /// Name of the job; may be left out of a load with one.
    pub name: Entry<String>,
    /// Sequences of requests; 1, when left out.
    #[schemars(range(min = 1, max = 4096))]
    pub threads: Entry<u64>,
    /// Requests in flight per thread; 1, when left out.
    #[schemars(range(min = 1, max = 4096))]
    pub queue_depth: Entry<u64>,
    /// Requests per second of an open loop. As fast as it goes, when left out.
    #[schemars(range(min = 0.001, max = 10_000_000))]
    pub rate_per_second: Entry<f64>,
    /// How the requests of an open loop arrive. `poisson`, when left out.
    #[schemars(with = "Word<Arrivals>")]
    pub arrivals: Entry<Arrivals>,
    /// Kinds of requests, which share the threads of the job.
    #[schemars(rename = "stream")]
    pub streams: Entry<Vec<Section<Stream>>>,
}

/// One kind of requests.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename = "IoStream", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Stream {
    /// Name of the stream; may be left out of a job with one.
    pub name: Entry<String>,
    /// Its share of the job's requests, relative to the other streams; 1, when left out.
    #[schemars(range(min = 1e-6, max = 1e9))]
    pub weight: Entry<f64>,
    /// Share of requests that read; 100, when left out.
    #[schemars(range(min = 0, max = 100))]
    pub read_percent: Entry<f64>,
    /// Share of requests at random places; the rest continues where the thread's last one ended. 100, when left out.
    #[schemars(range(min = 0, max = 100))]
    pub random_percent: Entry<f64>,
    /// Size of all requests, a multiple of 512 B up to 64 MiB.
    #[schemars(with = "schema::Size")]
    pub size: Entry<Bytes>,
    /// Sizes of requests by their shares, instead of `size`.
    pub sizes: Entry<Vec<Section<Size>>>,
    /// The part of the target that is used: where it begins and where it ends, in percent. All of it, when left out.
    pub region_percent: Entry<Vec<f64>>,
    /// Random places after Zipf's law with this exponent. Uniform, when left out.
    #[schemars(range(min = 0.01, max = 5))]
    pub zipf_exponent: Entry<f64>,
    /// Random places by zones, from the hottest part of the region to the coldest.
    pub zones: Entry<Vec<Section<Zone>>>,
    /// Whether threads have sequential runs of their own or take turns along one.
    #[schemars(with = "Word<Runs>")]
    pub runs: Entry<Runs>,
    /// What writes ask of volatile caches. `cached`, when left out.
    #[schemars(with = "Word<WriteMode>")]
    pub durability: Entry<WriteMode>,
    /// Writes between two flushes of a thread; 1, when left out and durability is `flush`.
    #[schemars(range(min = 1, max = 4096))]
    pub flush_every: Entry<u64>,
}

/// One size of a mix.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename = "IoSize", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["size", "weight"]))]
pub(crate) struct Size {
    /// A multiple of 512 B, up to 64 MiB.
    #[schemars(with = "schema::Size")]
    pub size: Entry<Bytes>,
    /// Its share, relative to the other sizes.
    #[schemars(range(min = 1e-6, max = 1e9))]
    pub weight: Entry<f64>,
}

/// One zone of hot spots.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename = "IoZone", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["space-percent", "access-percent"]))]
pub(crate) struct Zone {
    /// Its share of the region; all add up to 100.
    #[schemars(range(min = 0, max = 100))]
    pub space_percent: Entry<f64>,
    /// Its share of the accesses; all add up to 100.
    #[schemars(range(min = 0, max = 100))]
    pub access_percent: Entry<f64>,
}

words! {
    /// What writes ask of volatile caches.
    pub(crate) enum WriteMode: "durability" {
        /// Nothing: an acknowledged write may be lost in a power cut.
        Cached = "cached",
        /// Every write is durable when it is acknowledged.
        WriteThrough = "write-through",
        /// A thread flushes after some writes.
        Flush = "flush",
    }
}

/// Reads one of them.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> IoProfile {
    for (wrong, right) in [("jobs", "job"), ("description", "title")] {
        keys.alias(wrong, right);
    }
    IoProfile {
        name: text(keys, "name"),
        title: text(keys, "title"),
        source: text(keys, "source"),
        kind: keys.take("kind", |item, report| item.word(report)),
        data: keys.section("data", |keys| Data {
            compress_ratio: number(keys, "compress-ratio", 1.0..=40.0),
            duplicate_percent: number(keys, "duplicate-percent", 0.0..=99.0),
        }),
        jobs: keys.sections("job", job),
    }
}

fn job(keys: &mut Keys<'_, '_>) -> Job {
    let aliases = [
        ("iodepth", "queue-depth"),
        ("numjobs", "threads"),
        ("rate", "rate-per-second"),
        ("streams", "stream"),
    ];
    for (wrong, right) in aliases {
        keys.alias(wrong, right);
    }
    Job {
        name: text(keys, "name"),
        threads: count(keys, "threads"),
        queue_depth: count(keys, "queue-depth"),
        rate_per_second: number(keys, "rate-per-second", RATE_PER_SECOND),
        arrivals: keys.take("arrivals", |item, report| item.word(report)),
        streams: keys.sections("stream", stream),
    }
}

fn stream(keys: &mut Keys<'_, '_>) -> Stream {
    let aliases = [
        ("read", "read-percent"),
        ("rwmixread", "read-percent"),
        ("rdpct", "read-percent"),
        ("random", "random-percent"),
        ("seekpct", "random-percent"),
        ("bs", "size"),
        ("xfersize", "size"),
        ("skew", "weight"),
        ("fsync", "flush-every"),
        ("zipf", "zipf-exponent"),
    ];
    for (wrong, right) in aliases {
        keys.alias(wrong, right);
    }
    Stream {
        name: text(keys, "name"),
        weight: number(keys, "weight", WEIGHT),
        read_percent: number(keys, "read-percent", PERCENT),
        random_percent: number(keys, "random-percent", PERCENT),
        size: keys.take("size", request_size),
        sizes: keys.sections("sizes", |keys| Size {
            size: keys.take("size", request_size),
            weight: number(keys, "weight", WEIGHT),
        }),
        region_percent: keys.take("region-percent", |item, report| {
            item.list(report, "two percentages", |item, report| item.number(report, PERCENT))
        }),
        zipf_exponent: number(keys, "zipf-exponent", 0.01..=5.0),
        zones: keys.sections("zones", |keys| Zone {
            space_percent: number(keys, "space-percent", PERCENT),
            access_percent: number(keys, "access-percent", PERCENT),
        }),
        runs: keys.take("runs", |item, report| item.word(report)),
        durability: keys.take("durability", |item, report| item.word(report)),
        flush_every: count(keys, "flush-every"),
    }
}

fn text(keys: &mut Keys<'_, '_>, key: &'static str) -> Entry<String> {
    keys.take(key, |item, report| item.text(report))
}

fn number(keys: &mut Keys<'_, '_>, key: &'static str, range: RangeInclusive<f64>) -> Entry<f64> {
    keys.take(key, |item, report| item.number(report, range))
}

fn count(keys: &mut Keys<'_, '_>, key: &'static str) -> Entry<u64> {
    keys.take(key, |item, report| item.integer(report, CONCURRENCY))
}

fn request_size(item: &Item<'_>, report: &mut Report) -> Option<Bytes> {
    let size = item.size(report)?;
    if size.0 > 0 && size.0 <= 64 << 20 && size.0.is_multiple_of(512) {
        return Some(size);
    }
    report.at(
        &item.span,
        "out-of-range",
        format!("`{}` must be a multiple of 512 B, up to 64 MiB", item.path),
        format!("{size} is not"),
        "write a size such as \"4KiB\"",
    );
    None
}
