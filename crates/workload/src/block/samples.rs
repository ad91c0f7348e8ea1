//! Workloads for the tests of this module. Those for users are files of the `study` crate.

use super::description::{BlockStream, BlockWorkload, FlushPolicy, Region, Runs, SizeShare};
use super::locality::{Locality, Zone};

const KIB: u32 = 1024;

fn stream(name: &str, read_percent: u32, kib: u32, random_share: f64) -> BlockStream {
    BlockStream {
        name: name.to_string(),
        weight: 1.0,
        read_share: f64::from(read_percent) / 100.0,
        sizes: vec![SizeShare { bytes: kib * KIB, weight: 1.0 }],
        random_share,
        locality: Locality::Uniform,
        runs: if random_share > 0.0 { Runs::PerThread } else { Runs::Interleaved },
        region: Region::WHOLE,
        durability: FlushPolicy::Cached,
    }
}

fn workload(name: &str, streams: Vec<BlockStream>) -> BlockWorkload {
    BlockWorkload { name: name.to_string(), streams }
}

pub(crate) fn random_reads() -> BlockWorkload {
    workload("4k-random-read", vec![stream("all", 100, 4, 1.0)])
}

/// Random 8 KiB, and a sequential log of 64 KiB with 1 % of the requests.
pub(crate) fn oracle() -> BlockWorkload {
    let mut data = stream("data", 80, 8, 1.0);
    data.weight = 99.0;
    data.region = Region { begin: 0.0, end: 0.9 };
    let mut log = stream("log", 1, 64, 0.0);
    log.region = Region { begin: 0.9, end: 1.0 };
    workload("oracle", vec![data, log])
}

fn hot_spots() -> BlockWorkload {
    let zone = |space_share, access_share| Zone { space_share, access_share };
    let mut data = stream("data", 70, 8, 1.0);
    data.weight = 5.0;
    data.locality = Locality::Zones(vec![zone(0.05, 0.95), zone(0.10, 0.04), zone(0.85, 0.01)]);
    data.region = Region { begin: 0.5, end: 1.0 };
    let mut log = stream("log", 0, 32, 0.0);
    log.region = Region { begin: 0.0, end: 0.5 };
    workload("hot-spots", vec![data, log])
}

fn desktop() -> BlockWorkload {
    let mut read = stream("read", 100, 8, 0.8);
    read.sizes.push(SizeShare { bytes: 32 * KIB, weight: 0.1 });
    read.region = Region { begin: 0.0, end: 0.8 };
    let mut write = stream("write", 0, 32, 0.2);
    write.region = Region { begin: 0.8, end: 1.0 };
    workload("desktop", vec![read, write])
}

pub(crate) fn find(name: &str) -> BlockWorkload {
    match name {
        "4k-random-read" => random_reads(),
        "64k-sequential-read" => workload(name, vec![stream("all", 100, 64, 0.0)]),
        "oracle" => oracle(),
        "hot-spots" => hot_spots(),
        "desktop" => desktop(),
        other => panic!("there is no sample called {other}"),
    }
}
