//! What commands do to a cluster and the volumes on it.

use std::io;

use underlay_core::{Histogram, Nanos};
use underlay_export::Client;
use underlay_model::cluster::Policy;
use underlay_model::{Operation, ServiceFactor};

use super::back_end::ClusterBackEnd;
use super::{changes, faults};
use crate::config::VolumeConfig;
use crate::control::{
    Answer, ClusterLatencyEntry, Command, EncodedHistogram, SeriesEntry, Stat, TimingMode,
};
use crate::server::commands::{Managed, Unfinished, finished, outcome};
use crate::server::devices::undo_log::PowerCut;

impl Managed for ClusterBackEnd<Client> {
    /// The cluster itself says so when the volume is placed.
    fn check_room(&self, _volume: &VolumeConfig) -> Result<(), String> {
        Ok(())
    }

    fn place(&mut self, now: Nanos, volume: &VolumeConfig) -> Result<usize, String> {
        self.add_volume(now, volume)
    }

    fn set_mode(&mut self, mode: TimingMode) {
        ClusterBackEnd::set_mode(self, mode);
    }

    fn set_slowdown(
        &mut self,
        now: Nanos,
        factors: Vec<[ServiceFactor; 4]>,
        network: ServiceFactor,
    ) -> Result<(), String> {
        self.plane.set_network_factor(now, network);
        self.set_factors(factors);
        Ok(())
    }

    /// Refused while what the cluster knows cannot be stored.
    fn power_off(&mut self, now: Nanos) -> Result<Vec<Client>, String> {
        self.plane.make_sure_of_memory().map_err(|refusal| refusal.to_string())?;
        Ok(ClusterBackEnd::power_off(self, now))
    }

    /// The data plane has done that, as part of the cluster's fault.
    fn lose_volatile(&mut self) -> io::Result<PowerCut> {
        Ok(PowerCut::default())
    }

    fn power_on(&mut self, now: Nanos) {
        ClusterBackEnd::power_on(self, now);
    }

    /// Not known by volume: it is in the cache devices of the hosts.
    fn volatile_bytes(&self, _volume: usize) -> u64 {
        0
    }

    fn stat(&mut self, now: Nanos) -> Stat {
        Stat {
            errors: self.plane.storage_errors(),
            cluster: self.plane.performance(now).iter().map(value).collect(),
            ..Stat::default()
        }
    }

    fn obey(&mut self, now: Nanos, command: &Command) -> Unfinished {
        let plane = &mut self.plane;
        match command {
            Command::Inject(fault) => outcome(faults::inject(plane, now, fault)),
            Command::ChangePolicy { volume, policy } => {
                let policy = Policy::from(*policy);
                outcome(changes::set_policy(plane, now, volume.as_deref(), policy))
            }
            Command::AddGroup { host, group } => {
                outcome(changes::add_group(plane, now, host, &group.to_spec()))
            }
            Command::AddDevice { group, profile } => {
                outcome(changes::add_device(plane, now, group, &profile.to_profile()))
            }
            Command::DestageAll => {
                plane.destage_all(now);
                finished(Answer::Done)
            }
            Command::Notices => finished(Answer::Notices(plane.journal.take(now))),
            Command::ClusterSeries => {
                let series = plane.series();
                Box::new(move || Answer::Series(series.iter().map(SeriesEntry::of).collect()))
            }
            Command::ClusterLatency => latency(plane.cluster.take_latencies()),
            Command::ClusterParts => finished(Answer::ClusterParts(plane.parts())),
            _ => outcome(Err(
                "the volumes are on a cluster; its devices are changed by faults".to_string()
            )),
        }
    }
}

/// JSON knows no NaN.
fn value(value: &f64) -> Option<f64> {
    (!value.is_nan()).then_some(*value)
}

fn latency(taken: Vec<(String, Operation, Histogram)>) -> Unfinished {
    Box::new(move || {
        let entry =
            |(of, operation, histogram): (String, Operation, Histogram)| ClusterLatencyEntry {
                name: format!("{of}.{}", operation.as_str()),
                histogram: EncodedHistogram::encode(&histogram),
            };
        Answer::ClusterLatency(taken.into_iter().map(entry).collect())
    })
}
