//! The server process alone, without loop devices and file systems: one volume as a file in its mount.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use underlay_host::{Process, ProcessSpec, Resource};

use super::Site;

/// A running server.
pub struct RawServer {
    control: BufReader<UnixStream>,
    pub file: PathBuf,
    /// Where NBD clients are accepted.
    pub nbd_socket: PathBuf,
    pub process: Process,
}

/// How the volume is exported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// As a file in a mount, for which root is needed, and over NBD.
    FileAndNbd,
    /// Over NBD, also on a TCP port.
    NbdAndTcp,
}

/// What to serve.
pub struct RawSpec {
    /// In the form of the configuration file.
    pub profile: Value,
    pub durability: &'static str,
    pub capacity_bytes: u64,
    pub seed: u64,
}

/// A cluster to serve instead of a device.
pub struct RawCluster {
    pub hosts: usize,
    pub failures_to_tolerate: u8,
    pub erasure_coding: bool,
}

impl RawCluster {
    fn json(&self) -> Value {
        let small = |profile: Value, gibibytes: u64| {
            let mut profile = profile;
            profile["capacity-bytes"] = json!(gibibytes << 30);
            profile
        };
        let host = |index: usize| {
            json!({
                "name": format!("h{index}"), "fault-domain": null,
                "groups": [{
                    "name": format!("g{index}"),
                    "cache": small(flash(true), 1), "capacity": [small(flash(true), 4)],
                    "write-buffer": {
                        "usable-bytes": 1 << 30, "elevator-start": 0.3, "elevator-stop": 0.25,
                        "elevator-unthrottle": 0.5, "elevator-run-bytes": 65_536, "elevator-window": 32,
                    },
                    "congestion": {
                        "low-fill": 0.6, "high-fill": 0.95, "unit-min-ns": 5_000,
                        "delay-max-ns": 1_000_000_000u64,
                    },
                    "scheduler": {
                        "policy": { "adaptive": { "resync-floor": 0.2 } }, "slice-bytes": 65_536,
                        "window": 4,
                    },
                    "reduction": null, "extents-bytes": [],
                }],
            })
        };
        json!({
            "hosts": (0..self.hosts).map(host).collect::<Vec<_>>(),
            "network": { "latency-ns": 10_000, "bytes-per-second": 1_250_000_000u64 },
            "settings": {
                "stripe-unit-bytes": 1 << 20, "component-limit-bytes": 255_000_000_000u64,
                "components-per-host": 9_000, "repair-delay-ns": 3_600_000_000_000u64,
                "failure-detection-ns": 200_000_000, "device-timeout-ns": 500_000_000,
                "device-read-errors": 10, "resync-slice-bytes": 65_536, "resync-window": 4,
                "rebalance-full-percent": 80, "rebalance-variance-percent": 30,
                "rebalance-interval-ns": 60_000_000_000u64, "owner-overhead-ns": 0,
                "checksum-overhead-per-4k-ns": 0,
            },
        })
    }

    fn policy(&self) -> Value {
        json!({
            "failures-to-tolerate": self.failures_to_tolerate, "erasure-coding": self.erasure_coding,
            "stripe-width": 1, "iops-limit": null, "checksum": true, "space-reservation-percent": 0,
        })
    }
}

/// No delay at all.
pub fn instant() -> Value {
    json!({
        "name": "null", "capacity-bytes": 1u64 << 40, "medium": "instant", "link": null,
        "write-buffer": null, "flush-ns": 0, "power-loss-protected": true,
    })
}

/// A flash device: reads take 60 us and more; writes are buffered and drain at 100 MB/s.
pub fn flash(power_loss_protected: bool) -> Value {
    json!({
        "name": "flash", "capacity-bytes": 1u64 << 40,
        "medium": { "flash": {
            "read-command-ns": 5_000, "write-command-ns": 5_000, "base-ns": 15_000, "units": 16,
            "unit-bytes": 4096, "read-service-ns": 40_000, "read-service-cv": 0.0,
            "slow-probability": 0.0, "slow-ns": 0, "program-ns": 100_000, "program-bytes": 65536,
        } },
        "link": null,
        "write-buffer": {
            "capacity-bytes": 1 << 20, "latency-ns": 20_000, "latency-per-4k-ns": 0,
            "drain-sequential-bytes-per-second": 100_000_000u64,
            "drain-random-bytes-per-second": 100_000_000u64, "fresh-budget-bytes": 0,
        },
        "flush-ns": 10_000, "power-loss-protected": power_loss_protected,
    })
}

/// A device that takes ages.
pub fn glacial() -> Value {
    let mut profile = flash(true);
    profile["medium"]["flash"]["base-ns"] = json!(1_000_000_000);
    profile
}

impl RawServer {
    pub fn start(site: &Site, spec: &RawSpec) -> RawServer {
        RawServer::start_with(site, spec, Ways::FileAndNbd)
    }

    pub fn start_with(site: &Site, spec: &RawSpec, ways: Ways) -> RawServer {
        RawServer::launch(site, spec, None, ways)
    }

    /// The volume on a cluster; the profile of `spec` has no meaning.
    pub fn start_cluster(
        site: &Site,
        spec: &RawSpec,
        cluster: &RawCluster,
        ways: Ways,
    ) -> RawServer {
        RawServer::launch(site, spec, Some(cluster), ways)
    }

    fn launch(site: &Site, spec: &RawSpec, cluster: Option<&RawCluster>, ways: Ways) -> RawServer {
        let base = site.scratch.join("raw");
        site.teardown.create_directory(&base).unwrap();
        let (mount_point, socket, config) =
            (base.join("m"), base.join("c.sock"), base.join("server.json"));
        std::fs::create_dir(&mount_point).unwrap();
        let nbd_socket = base.join("nbd.sock");
        let (mounted, address) = match ways {
            Ways::FileAndNbd => (Some(&mount_point), None),
            Ways::NbdAndTcp => (None, Some("127.0.0.1:0")),
        };
        let text = json!({
            "mount-point": mounted, "nbd": { "socket": nbd_socket, "address": address }, "control-socket": socket, "seed": spec.seed,
            "durability": spec.durability,
            "devices": [{ "name": "device", "profile": spec.profile }],
            "cluster": cluster.map(|cluster| json!({ "spec": cluster.json(), "components": base })),
            "volumes": [{
                "name": "data", "capacity-bytes": spec.capacity_bytes, "device": 0,
                "backing-file": base.join("backing"), "policy": cluster.map(RawCluster::policy),
            }],
        });
        std::fs::write(&config, text.to_string()).unwrap();
        if ways == Ways::FileAndNbd {
            site.teardown.register(Resource::Mount { target: mount_point.clone() }).unwrap();
        }
        let process = Process::spawn(
            &site.teardown,
            &ProcessSpec {
                name: "server",
                program: Path::new(env!("CARGO_BIN_EXE_underlay-datastore-server")),
                args: vec!["datastore-server".into(), "--config".into(), config.into()],
                env: Vec::new(),
                run_as: None,
                cgroup: None,
                working_dir: Path::new("/"),
                output: base.join("log"),
            },
        )
        .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => {
                    let log = std::fs::read_to_string(base.join("log")).unwrap_or_default();
                    assert!(Instant::now() < deadline, "no server: {error}; {log}");
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        };
        let file = mount_point.join("data");
        RawServer { control: BufReader::new(stream), file, nbd_socket, process }
    }

    /// Sends a command in its JSON form and returns the answer.
    pub fn ask(&mut self, command: Value) -> Value {
        let mut stream = self.control.get_ref();
        stream.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        self.control.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    pub fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.file).unwrap()
    }
}
