//! What it costs to hand a request through: the null profile against nbdkit + nbdfuse, on the same path.
//!
//! Both end in a loop device with direct I/O and ext4, both keep their data in memory, fio reads 4 KiB at random.
//! They run in turns (A B B A), so that a noisy host hurts both.
//!
//! `cargo run --release -p underlay-datastore --example export_cost -- [--json FILE] [--seconds N]
//! [--patience SECONDS]`

mod support;

use std::path::{Path, PathBuf};

use serde_json::json;
use support::fio::{Job, Outcome, is_installed, lay_out, mean};
use support::peer::Peer;
use support::quiet::Patience;
use support::site::{Failure, Site, seconds_per_cell, serve_if_asked, write_json};
use underlay_core::Bytes;
use underlay_datastore::Datastore;
use underlay_model::builtin;

const VOLUME: Bytes = Bytes::from_mib(1536);
const FILE_MIB: u64 = 1024;
const DEPTHS: [u32; 2] = [1, 32];

fn main() -> Result<(), Failure> {
    serve_if_asked();
    if !is_installed() {
        eprintln!("skip: fio is not installed");
        return Ok(());
    }
    let seconds = seconds_per_cell(4);
    let patience = Patience::from_arguments();
    let site = Site::new()?;
    let ours = UnderlayExport::start(&site)?;
    let peer = Peer::start(&site, VOLUME)?;
    lay_out(&ours.file(), FILE_MIB)?;
    if let Some(peer) = &peer {
        lay_out(&peer.file, FILE_MIB)?;
    }
    let mut rows = Vec::new();
    for queue_depth in DEPTHS {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for turn in ["A", "B", "B", "A"] {
            if turn == "A" {
                a.push(ours.measure(queue_depth, seconds, &patience)?);
            } else if let Some(peer) = &peer {
                let servers = peer.servers();
                let job = job(&peer.file, queue_depth, seconds, &servers);
                b.push(patience.measure(&job, || Ok::<(), Failure>(()))?);
            }
        }
        rows.push(report(queue_depth, &a, &b));
    }
    if peer.is_none() {
        eprintln!("skip: nbdkit and nbdfuse are not installed, nothing to compare with");
    }
    write_json(&json!({ "benchmark": "export-cost", "seconds_per_cell": seconds, "rows": rows }))
}

/// The null profile through our own server.
struct UnderlayExport {
    datastore: Box<dyn Datastore>,
}

impl UnderlayExport {
    fn start(site: &Site) -> Result<UnderlayExport, Failure> {
        let profile = builtin::find("null").expect("built in");
        Ok(UnderlayExport { datastore: site.emulate(&profile, VOLUME)? })
    }

    fn file(&self) -> PathBuf {
        self.datastore.volumes()[0].path.join("file")
    }

    fn measure(
        &self,
        queue_depth: u32,
        seconds: u64,
        patience: &Patience,
    ) -> Result<Outcome, Failure> {
        let servers: Vec<u32> = self.datastore.processes().iter().map(|(_, pid)| *pid).collect();
        let file = self.file();
        let job = job(&file, queue_depth, seconds, &servers);
        patience.measure(&job, || Ok::<(), Failure>(()))
    }
}

fn job<'a>(file: &'a Path, queue_depth: u32, seconds: u64, servers: &'a [u32]) -> Job<'a> {
    Job { file, size_mib: FILE_MIB, pattern: "randread", queue_depth, seconds, servers }
}

fn report(queue_depth: u32, a: &[Outcome], b: &[Outcome]) -> serde_json::Value {
    let side = |name: &str, outcomes: &[Outcome]| {
        if outcomes.is_empty() {
            return serde_json::Value::Null;
        }
        let cpu: Vec<f64> = (0..3).map(|i| mean(outcomes, |o| o.cpu_us[i])).collect();
        println!(
            "QD{queue_depth:<3} {name:<16} {:>8.0} IOPS  p50 {:>6.1} us  p99 {:>7.1} us  mean {:>6.1} us  \
             CPU/IO: fio {:.1} + server {:.1} + workers {:.1} us  unrelated {:.0} %  steal {:.1} %",
            mean(outcomes, |o| o.iops),
            mean(outcomes, |o| o.p50_us),
            mean(outcomes, |o| o.p99_us),
            mean(outcomes, |o| o.mean_us),
            cpu[0],
            cpu[1],
            cpu[2],
            100.0 * mean(outcomes, |o| o.unrelated),
            100.0 * mean(outcomes, |o| o.steal),
        );
        json!({
            "iops": mean(outcomes, |o| o.iops),
            "p50_us": mean(outcomes, |o| o.p50_us),
            "p99_us": mean(outcomes, |o| o.p99_us),
            "p999_us": mean(outcomes, |o| o.p999_us),
            "mean_us": mean(outcomes, |o| o.mean_us),
            "cpu_us_per_io": { "fio": cpu[0], "server": cpu[1], "workers": cpu[2] },
            "unrelated_cpu_share": mean(outcomes, |o| o.unrelated),
            "each_iops": outcomes.iter().map(|o| o.iops).collect::<Vec<_>>(),
        })
    };
    let ours = side("underlay null", a);
    let peer = side("nbdkit+nbdfuse", b);
    let ratio = (!b.is_empty()).then(|| mean(a, |o| o.iops) / mean(b, |o| o.iops));
    let target = if queue_depth == 1 { 1.8 } else { 5.0 };
    if let Some(ratio) = ratio {
        println!("QD{queue_depth:<3} ratio {ratio:.2} (aim >= {target})");
    }
    json!({
        "queue_depth": queue_depth,
        "underlay": ours,
        "nbdkit_nbdfuse": peer,
        "iops_ratio": ratio,
        "aim": target,
    })
}
