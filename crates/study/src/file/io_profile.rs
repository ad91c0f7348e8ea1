//! A block load, as a file of its own for `underlay io` or as an `[[io-profile]]` of a study: jobs, their streams,
//! their data.

use std::ops::RangeInclusive;
use underlay_core::words;

use underlay_core::Bytes;
use underlay_workload::block::{Provenance, Runs};

use crate::entry::{Entry, Section};
use crate::limits::RATE_PER_SECOND;
use crate::plan::Arrivals;
use crate::reader::Item;
use crate::report::Report;
use crate::section::*;

/// Threads, and requests in flight of one.
const CONCURRENCY: RangeInclusive<u64> = 1..=4096;
const PERCENT: RangeInclusive<f64> = 0.0..=100.0;
const WEIGHT: RangeInclusive<f64> = 1e-6..=1e9;

section! {
    /// The whole file, or one `[[io-profile]]` of a study.
    pub(crate) struct IoProfile as "IoProfile" {
        /// Name of the block load: lower case letters, digits and `-`.
        "name" name: Entry<String> = One(text());
        /// One line for people.
        "title" title: Entry<String> = One(text());
        /// Where its parameters come from.
        "source" source: Entry<String> = One(text());
        /// Whether the original was published, or this is a model of it. `model`, when left out.
        "kind" kind: Entry<Provenance> = One(word::<Provenance>());
        /// What written bytes look like.
        "data" data: Section<Data> = table::<Data>();
        /// Threads with streams of their own; jobs run concurrently.
        "job" jobs: Entry<Vec<Section<Job>>> = tables::<Job>();
    }
    written_for {
        "jobs" => "job", "description" => "title",
    }
    limits { "required": ["name", "job"] }
}

section! {
    /// What written bytes look like.
    pub(crate) struct Data as "IoData" {
        /// By how much LZ4 shrinks each block of 4 KiB; 1, noise, when left out.
        "compress-ratio" compress_ratio: Entry<f64> = One(number(1.0..=40.0));
        /// Share of blocks of 4 KiB whose content another block has too; 0, when left out.
        "duplicate-percent" duplicate_percent: Entry<f64> = One(number(0.0..=99.0));
    }
}

section! {
    /// Threads with streams of their own.
    pub(crate) struct Job as "IoJob" {
        /// Name of the job; may be left out of a load with one.
        "name" name: Entry<String> = One(text());
        /// Sequences of requests; 1, when left out.
        "threads" threads: Entry<u64> = One(whole(CONCURRENCY));
        /// Requests in flight per thread; 1, when left out.
        "queue-depth" queue_depth: Entry<u64> = One(whole(CONCURRENCY));
        /// Requests per second of an open loop. As fast as it goes, when left out.
        "rate-per-second" rate_per_second: Entry<f64> = One(number(RATE_PER_SECOND));
        /// How the requests of an open loop arrive. `poisson`, when left out.
        "arrivals" arrivals: Entry<Arrivals> = One(word::<Arrivals>());
        /// Kinds of requests, which share the threads of the job.
        "stream" streams: Entry<Vec<Section<Stream>>> = tables::<Stream>();
    }
    written_for {
        "iodepth" => "queue-depth", "numjobs" => "threads", "rate" => "rate-per-second",
        "streams" => "stream",
    }
    limits { "required": ["stream"] }
}

section! {
    /// One kind of requests.
    pub(crate) struct Stream as "IoStream" {
        /// Name of the stream; may be left out of a job with one.
        "name" name: Entry<String> = One(text());
        /// Its share of the job's requests, relative to the other streams; 1, when left out.
        "weight" weight: Entry<f64> = One(number(WEIGHT));
        /// Share of requests that read; 100, when left out.
        "read-percent" read_percent: Entry<f64> = One(number(PERCENT));
        /// Share of requests at random places; the rest continues where the thread's last one
        /// ended. 100, when left out.
        "random-percent" random_percent: Entry<f64> = One(number(PERCENT));
        /// Size of all requests, a multiple of 512 B up to 64 MiB.
        "size" size: Entry<Bytes> = One(request_size());
        /// Sizes of requests by their shares, instead of `size`.
        "sizes" sizes: Entry<Vec<Section<Size>>> = tables::<Size>();
        /// The part of the target that is used: where it begins and where it ends, in percent. All
        /// of it, when left out.
        "region-percent" region_percent: Entry<Vec<f64>> =
            One(list("two percentages", number(PERCENT)));
        /// Random places after Zipf's law with this exponent. Uniform, when left out.
        "zipf-exponent" zipf_exponent: Entry<f64> = One(number(0.01..=5.0));
        /// Random places by zones, from the hottest part of the region to the coldest.
        "zones" zones: Entry<Vec<Section<Zone>>> = tables::<Zone>();
        /// Whether threads have sequential runs of their own or take turns along one.
        "runs" runs: Entry<Runs> = One(word::<Runs>());
        /// What writes ask of volatile caches. `cached`, when left out.
        "durability" durability: Entry<WriteMode> = One(word::<WriteMode>());
        /// Writes between two flushes of a thread; 1, when left out and durability is `flush`.
        "flush-every" flush_every: Entry<u64> = One(whole(CONCURRENCY));
    }
    written_for {
        "read" => "read-percent", "rwmixread" => "read-percent", "rdpct" => "read-percent",
        "random" => "random-percent", "seekpct" => "random-percent", "bs" => "size",
        "xfersize" => "size", "skew" => "weight", "fsync" => "flush-every",
        "zipf" => "zipf-exponent",
    }
}

section! {
    /// One size of a mix.
    pub(crate) struct Size as "IoSize" {
        /// A multiple of 512 B, up to 64 MiB.
        "size" size: Entry<Bytes> = One(request_size());
        /// Its share, relative to the other sizes.
        "weight" weight: Entry<f64> = One(number(WEIGHT));
    }
    limits { "required": ["size", "weight"] }
}

section! {
    /// One zone of hot spots.
    pub(crate) struct Zone as "IoZone" {
        /// Its share of the region; all add up to 100.
        "space-percent" space_percent: Entry<f64> = One(number(PERCENT));
        /// Its share of the accesses; all add up to 100.
        "access-percent" access_percent: Entry<f64> = One(number(PERCENT));
    }
    limits { "required": ["space-percent", "access-percent"] }
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

/// Size of a request.
fn request_size() -> impl Kind<Value = Bytes> {
    kind(read_request_size, |generator| size().schema(generator))
}

fn read_request_size(item: &Item<'_>, report: &mut Report) -> Option<Bytes> {
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
