//! What a cluster costs per I/O: null profiles without and with a mirror, beside the single device and nbdkit + nbdfuse.
//!
//! All end in a loop device with direct I/O and ext4, all keep their data in memory, fio reads and writes 4 KiB at random. They
//! run in turns (A B C D D C B A), so that a noisy host hurts all. A cluster of null devices still computes and verifies the
//! checksum of each block, which the others do not.
//!
//! `cargo run --release -p underlay-datastore --example cluster_cost -- [--json FILE] [--seconds N] [--patience SECONDS]
//! [--only SUBJECT] [--pattern randread|randwrite] [--depth N]`

mod support;

use std::path::PathBuf;

use serde_json::json;
use support::clusters::{mirrored, null, profile, storage};
use support::fio::{Job, Outcome, is_installed, lay_out, mean};
use support::peer::Peer;
use support::quiet::Patience;
use support::site::{
    Failure, Site, argument, on_one_device, seconds_per_cell, serve_if_asked, write_json,
};
use underlay_core::Bytes;
use underlay_datastore::{Datastore, DatastoreSpec};

const VOLUME: Bytes = Bytes::from_mib(768);
const FILE_MIB: u64 = 512;
const DEPTHS: [u32; 2] = [1, 32];
const PATTERNS: [&str; 2] = ["randread", "randwrite"];
const SINGLE: &str = "single";
const PEER: &str = "nbdkit";
/// How many times as long as on the single device an I/O may take.
const AIMS: [(&str, f64); 2] = [("ftt0", 1.3), ("ftt1", 2.0)];
/// How many times as many I/Os as nbdkit + nbdfuse at the largest depth.
const PEER_AIM: f64 = 4.0;

/// One of those that are compared.
struct Subject {
    name: &'static str,
    file: PathBuf,
    servers: Vec<u32>,
    outcomes: Vec<Outcome>,
    /// Held as long as it is measured.
    _datastore: Option<Box<dyn Datastore>>,
    _peer: Option<Peer>,
}

fn main() -> Result<(), Failure> {
    serve_if_asked();
    if !is_installed() {
        eprintln!("skip: fio is not installed");
        return Ok(());
    }
    let seconds = seconds_per_cell(4);
    let patience = Patience::from_arguments();
    let site = Site::new()?;
    let mut subjects = subjects(&site)?;
    for subject in &subjects {
        lay_out(&subject.file, FILE_MIB)?;
    }
    let chosen = |option: &str, value: &str| argument(option).is_none_or(|only| only == value);
    let mut rows = Vec::new();
    for pattern in PATTERNS.into_iter().filter(|pattern| chosen("--pattern", pattern)) {
        for depth in DEPTHS.into_iter().filter(|depth| chosen("--depth", &depth.to_string())) {
            let there_and_back = (0..subjects.len()).chain((0..subjects.len()).rev());
            for index in there_and_back {
                let subject = &mut subjects[index];
                let job = Job {
                    file: &subject.file,
                    size_mib: FILE_MIB,
                    pattern,
                    queue_depth: depth,
                    seconds,
                    servers: &subject.servers,
                };
                let outcome = patience.measure(&job, || Ok::<(), Failure>(()))?;
                subject.outcomes.push(outcome);
            }
            rows.push(report(pattern, depth, &subjects));
            subjects.iter_mut().for_each(|subject| subject.outcomes.clear());
        }
    }
    write_json(&json!({ "benchmark": "cluster-cost", "seconds_per_cell": seconds, "rows": rows }))
}

fn subjects(site: &Site) -> Result<Vec<Subject>, Failure> {
    let wanted =
        |name: &str| argument("--only").is_none_or(|only| only.split(',').any(|o| o == name));
    let ours: [(&str, DatastoreSpec); 3] = [
        (SINGLE, on_one_device(&profile("null"))),
        ("ftt0", storage(null(1), mirrored(0))),
        ("ftt1", storage(null(3), mirrored(1))),
    ];
    let mut subjects = Vec::new();
    for (name, spec) in ours.into_iter().filter(|(name, _)| wanted(name)) {
        let datastore = site.open(name, &spec, VOLUME)?;
        subjects.push(Subject {
            name,
            file: datastore.volumes()[0].path.join("file"),
            servers: datastore.processes().iter().map(|(_, pid)| *pid).collect(),
            outcomes: Vec::new(),
            _datastore: Some(datastore),
            _peer: None,
        });
    }
    if wanted(PEER) {
        match Peer::start(site, VOLUME)? {
            Some(peer) => subjects.push(Subject {
                name: PEER,
                file: peer.file.clone(),
                servers: peer.servers(),
                outcomes: Vec::new(),
                _datastore: None,
                _peer: Some(peer),
            }),
            None => {
                eprintln!("skip: nbdkit and nbdfuse are not installed, nothing to compare with")
            }
        }
    }
    Ok(subjects)
}

fn report(pattern: &str, depth: u32, subjects: &[Subject]) -> serde_json::Value {
    println!("{pattern}, queue depth {depth}");
    let sides: Vec<_> = subjects.iter().map(side).collect();
    let iops = |name: &str| {
        let subject = subjects.iter().find(|subject| subject.name == name)?;
        Some(mean(&subject.outcomes, |o| o.iops))
    };
    let mut ratios = Vec::new();
    for (name, aim) in AIMS {
        let Some((single, cluster)) = iops(SINGLE).zip(iops(name)) else { continue };
        let ratio = single / cluster;
        println!("  {name}: {ratio:.2} x the single device per I/O (aim <= {aim})");
        ratios.push(json!({ "subject": name, "against": SINGLE, "time_ratio": ratio, "aim": aim }));
        let Some(peer) = iops(PEER) else { continue };
        let ratio = cluster / peer;
        let aim = (depth == DEPTHS[1]).then_some(PEER_AIM);
        let text = aim.map_or_else(String::new, |aim| format!(" (aim >= {aim})"));
        println!("  {name}: {ratio:.2} x the I/Os of nbdkit + nbdfuse{text}");
        ratios.push(json!({ "subject": name, "against": PEER, "iops_ratio": ratio, "aim": aim }));
    }
    json!({ "pattern": pattern, "queue_depth": depth, "subjects": sides, "ratios": ratios })
}

fn side(subject: &Subject) -> serde_json::Value {
    let of = |figure: fn(&Outcome) -> f64| mean(&subject.outcomes, figure);
    let cpu: Vec<f64> = (0..3).map(|i| mean(&subject.outcomes, |o| o.cpu_us[i])).collect();
    println!(
        "  {:<8} {:>8.0} IOPS  p50 {:>6.1} us  p99 {:>7.1} us  CPU/IO: fio {:.1} + server {:.1} + workers {:.1} us  \
         unrelated {:.0} %  steal {:.1} %",
        subject.name,
        of(|o| o.iops),
        of(|o| o.p50_us),
        of(|o| o.p99_us),
        cpu[0],
        cpu[1],
        cpu[2],
        100.0 * of(|o| o.unrelated),
        100.0 * of(|o| o.steal),
    );
    json!({
        "subject": subject.name,
        "iops": of(|o| o.iops),
        "p50_us": of(|o| o.p50_us),
        "p99_us": of(|o| o.p99_us),
        "mean_us": of(|o| o.mean_us),
        "cpu_us_per_io": { "fio": cpu[0], "server": cpu[1], "workers": cpu[2] },
        "unrelated_cpu_share": of(|o| o.unrelated),
        "each_iops": subject.outcomes.iter().map(|o| o.iops).collect::<Vec<_>>(),
    })
}
