//! Block workloads that come with Underlay, with the public definitions they follow.
//!
//! Compatible with those definitions, which is not the same as comparable with anybody's results.

use super::description::{BlockStream, BlockWorkload, Region, Runs, SizeShare};
use super::locality::{Locality, Zone};

/// A workload with what it follows.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWorkload {
    /// One line for people.
    pub title: &'static str,
    /// The definition it follows, and threads per volume where that says so.
    pub source: &'static str,
    /// The workload.
    pub workload: BlockWorkload,
}

const KIB: u32 = 1024;

/// Of the public four-corner scripts, whose random and sequential thread counts are quoted.
const CORNERS: &str = "Four corners as the vdbench scripts of storage reviews list them; 128 threads (4K random \
    read), 64 (4K random write), 16 (64K sequential read), 8 (64K sequential write).";
/// Of the database-like profiles.
const VDBENCH_DATABASE: &str = "Public vdbench definitions of the database profiles of storage reviews: 8K, all \
    random; 26 threads (SQL), 22 (90-10), 18 to 20 (80-20).";
/// Of HCIBench's mixes.
const MIX: &str = "The random mixes of HCIBench and of published vSAN tests.";

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
    }
}

fn simple(
    name: &str,
    title: &'static str,
    source: &'static str,
    (read_percent, kib, random_share): (u32, u32, f64),
) -> NamedWorkload {
    let streams = vec![stream("all", read_percent, kib, random_share)];
    NamedWorkload { title, source, workload: BlockWorkload { name: name.to_string(), streams } }
}

/// All built-in block workloads, sorted by name.
pub fn all() -> Vec<NamedWorkload> {
    let mut workloads = vec![
        simple("4k-random-read", "4 KiB random reads", CORNERS, (100, 4, 1.0)),
        simple("4k-random-write", "4 KiB random writes", CORNERS, (0, 4, 1.0)),
        simple("64k-sequential-read", "64 KiB sequential reads", CORNERS, (100, 64, 0.0)),
        simple("64k-sequential-write", "64 KiB sequential writes", CORNERS, (0, 64, 0.0)),
        simple("4k-random-70-30", "4 KiB random, 70 % reads", MIX, (70, 4, 1.0)),
        simple("4k-random-75-25", "4 KiB random, 75 % reads", MIX, (75, 4, 1.0)),
        simple("8k-random-70-30", "8 KiB random, 70 % reads", MIX, (70, 8, 1.0)),
        simple("8k-random-90-10", "8 KiB random, 90 % reads", MIX, (90, 8, 1.0)),
        simple("64k-random-70-30", "64 KiB random, 70 % reads", MIX, (70, 64, 1.0)),
        simple("64k-sequential-90-10", "64 KiB sequential, 90 % reads", MIX, (90, 64, 0.0)),
        simple("128k-sequential-read", "128 KiB sequential reads", MIX, (100, 128, 0.0)),
        simple("128k-sequential-write", "128 KiB sequential writes", MIX, (0, 128, 0.0)),
        simple("256k-sequential", "256 KiB sequential, half of them reads", MIX, (50, 256, 0.0)),
        simple("sql", "Database-like: 8 KiB random, 97 % reads", VDBENCH_DATABASE, (97, 8, 1.0)),
        simple(
            "sql-90-10",
            "Database-like: 8 KiB random, 90 % reads",
            VDBENCH_DATABASE,
            (90, 8, 1.0),
        ),
        simple(
            "sql-80-20",
            "Database-like: 8 KiB random, 80 % reads",
            VDBENCH_DATABASE,
            (80, 8, 1.0),
        ),
        oracle(),
        sql_vmfleet(),
        vdi_power_worker(),
    ];
    workloads.sort_by(|a, b| a.workload.name.cmp(&b.workload.name));
    workloads
}

/// The built-in block workload of that name.
pub fn find(name: &str) -> Option<NamedWorkload> {
    all().into_iter().find(|workload| workload.workload.name == name)
}

fn oracle() -> NamedWorkload {
    let mut data = stream("data", 80, 8, 1.0);
    data.weight = 99.0;
    data.region = Region { begin: 0.0, end: 0.9 };
    let mut log = stream("log", 1, 64, 0.0);
    log.weight = 1.0;
    log.region = Region { begin: 0.9, end: 1.0 };
    NamedWorkload {
        title: "Database-like: 8 KiB random with 80 % reads, and a sequential log of 64 KiB",
        source: "Public vdbench definition of the Oracle profile of storage reviews: 99 % of the requests 8K \
                 with 80 % reads, 1 % sequential 64K with 99 % writes; 24 threads.",
        workload: BlockWorkload { name: "oracle".to_string(), streams: vec![data, log] },
    }
}

/// 95 % of the accesses in 5 % of the space, 4 % in the next 10 %.
fn hot_spots() -> Locality {
    let zone = |space_share, access_share| Zone { space_share, access_share };
    Locality::Zones(vec![zone(0.05, 0.95), zone(0.10, 0.04), zone(0.85, 0.01)])
}

fn sql_vmfleet() -> NamedWorkload {
    let mut data = stream("data", 70, 8, 1.0);
    data.weight = 1500.0;
    data.locality = hot_spots();
    data.region = Region { begin: 0.5, end: 1.0 };
    let mut log = stream("log", 0, 32, 0.0);
    log.weight = 300.0;
    log.region = Region { begin: 0.0, end: 0.5 };
    NamedWorkload {
        title: "Database-like with hot spots: 8 KiB with 30 % writes, and a sequential log of 32 KiB",
        source: "The SQL profile of VMFleet: 1500 data and 300 log requests per second at its base, 95 % of \
                 the data accesses in 5 % of the space and 4 % in the next 10 %; 4 threads of queue depth 32.",
        workload: BlockWorkload { name: "sql-vmfleet".to_string(), streams: vec![data, log] },
    }
}

fn vdi_power_worker() -> NamedWorkload {
    let mut read = stream("read", 100, 8, 0.8);
    read.sizes = vec![
        SizeShare { bytes: 8 * KIB, weight: 90.0 },
        SizeShare { bytes: 32 * KIB, weight: 10.0 },
    ];
    read.region = Region { begin: 0.0, end: 0.8 };
    let mut write = stream("write", 0, 32, 0.2);
    write.region = Region { begin: 0.8, end: 1.0 };
    NamedWorkload {
        title: "Desktop of a power worker: 8 and 32 KiB, mostly random reads, mostly sequential writes",
        source: "The VDI profile of Nutanix X-Ray: 8K/90 and 32K/10 reads, 80 % random, in 8 GiB; 32K writes, \
                 20 % random, in 2 GiB after it; 13 of each per second; queue depth 8.",
        workload: BlockWorkload {
            name: "vdi-power-worker".to_string(),
            streams: vec![read, write],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{all, find};
    use crate::block::description::Concurrency;
    use underlay_core::Bytes;

    #[test]
    fn all_are_usable_sorted_and_found() {
        let names: Vec<String> = all().into_iter().map(|named| named.workload.name).collect();
        assert!(names.is_sorted());
        for name in names {
            let named = find(&name).expect("listed");
            let concurrency = Concurrency { threads: 128, queue_depth: 1 };
            assert_eq!(named.workload.problems(Bytes::from_gib(1), concurrency), [], "{name}");
            assert!(!named.source.contains("  ") && !named.title.ends_with('.'), "{name}");
        }
    }
}
