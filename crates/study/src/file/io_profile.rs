//! A block load as a file of its own, for `underlay io`: jobs, their streams, their data.

use std::ops::RangeInclusive;

use underlay_core::Bytes;
use underlay_workload::block::{Provenance, Runs};

use crate::entry::{Entry, Section};
use crate::limits::RATE_PER_SECOND;
use crate::plan::Arrivals;
use crate::reader::{Item, Keys};
use crate::report::Report;

/// Threads, and requests in flight of one.
const CONCURRENCY: RangeInclusive<u64> = 1..=4096;
const PERCENT: RangeInclusive<f64> = 0.0..=100.0;
const WEIGHT: RangeInclusive<f64> = 1e-6..=1e9;

/// The whole file.
#[derive(Clone, Debug, Default)]
pub(crate) struct IoProfile {
    pub name: Entry<String>,
    pub title: Entry<String>,
    pub source: Entry<String>,
    pub kind: Entry<Provenance>,
    pub data: Section<Data>,
    pub jobs: Entry<Vec<Section<Job>>>,
}

/// What written bytes look like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub compress_ratio: Entry<f64>,
    pub duplicate_percent: Entry<f64>,
}

/// Threads with streams of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub name: Entry<String>,
    pub threads: Entry<u64>,
    pub queue_depth: Entry<u64>,
    pub rate_per_second: Entry<f64>,
    pub arrivals: Entry<Arrivals>,
    pub streams: Entry<Vec<Section<Stream>>>,
}

/// One kind of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub name: Entry<String>,
    pub weight: Entry<f64>,
    pub read_percent: Entry<f64>,
    pub random_percent: Entry<f64>,
    pub size: Entry<Bytes>,
    pub sizes: Entry<Vec<Section<Size>>>,
    pub region_percent: Entry<Vec<f64>>,
    pub zipf_exponent: Entry<f64>,
    pub zones: Entry<Vec<Section<Zone>>>,
    pub runs: Entry<Runs>,
    pub durability: Entry<WriteMode>,
    pub flush_every: Entry<u64>,
}

/// One size of a mix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Size {
    pub size: Entry<Bytes>,
    pub weight: Entry<f64>,
}

/// One zone of hot spots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zone {
    pub space_percent: Entry<f64>,
    pub access_percent: Entry<f64>,
}

/// What writes ask of volatile caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Cached,
    WriteThrough,
    Flush,
}

impl WriteMode {
    pub(crate) const ALL: [WriteMode; 3] =
        [WriteMode::Cached, WriteMode::WriteThrough, WriteMode::Flush];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            WriteMode::Cached => "cached",
            WriteMode::WriteThrough => "write-through",
            WriteMode::Flush => "flush",
        }
    }
}

/// Reads a whole file.
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
