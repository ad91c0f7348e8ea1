//! How full the write buffers of a cluster are: read in the same way, by the names of the performance service's series,
//! whether the cluster is emulated or simulated.

use serde_json::{Value, json};
use underlay_core::series::SeriesSpec;
use underlay_datastore::Datastore;
use underlay_model::cluster::Cluster;
use underlay_model::performance::{Catalogue, EmulatorStatus};

use super::site::Failure;

/// The write buffers of all disk groups at one moment.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    groups: Vec<Buffer>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    fill_bytes: f64,
    destaged_bytes: f64,
    is_destaging: bool,
}

impl Buffers {
    /// Of an emulated cluster, now.
    pub fn of_emulated(datastore: &mut dyn Datastore) -> Result<Buffers, Failure> {
        let values = datastore.counters()?;
        Ok(Buffers::read(&datastore.series(), &values))
    }

    /// Of a simulated one, at the moment that it has reached.
    pub fn of_simulated(cluster: &mut Cluster) -> Buffers {
        let catalogue = Catalogue::of(cluster);
        let values = catalogue.values(cluster, &EmulatorStatus::default());
        Buffers::read(catalogue.series(), &values)
    }

    fn read(series: &[SeriesSpec], values: &[f64]) -> Buffers {
        let all = |suffix: &str| -> Vec<f64> {
            let named = series.iter().zip(values);
            let of_groups = named.filter(|(series, _)| {
                series.name.starts_with("cluster.group.") && series.name.ends_with(suffix)
            });
            of_groups.map(|(_, value)| *value).collect()
        };
        let (fills, destaged) = (all(".buffer.fill"), all(".buffer.destaged"));
        let groups = fills.iter().zip(destaged).zip(all(".elevator.running"));
        let groups = groups.map(|((fill_bytes, destaged_bytes), running)| Buffer {
            fill_bytes: *fill_bytes,
            destaged_bytes,
            is_destaging: running != 0.0,
        });
        Buffers { groups: groups.collect() }
    }

    /// Whether anything is on its way to a capacity device, or about to be.
    pub fn are_destaging(&self) -> bool {
        self.groups.iter().any(|group| group.is_destaging)
    }

    /// What the fullest one holds, in MiB.
    pub fn fullest_mib(&self) -> f64 {
        self.groups.iter().map(|group| group.fill_bytes).fold(0.0, f64::max) / f64::from(1 << 20)
    }

    /// What all of them have destaged since an earlier moment, in MiB.
    pub fn destaged_mib(&self, since: &Buffers) -> f64 {
        let total = |of: &Buffers| of.groups.iter().map(|group| group.destaged_bytes).sum::<f64>();
        (total(self) - total(since)) / f64::from(1 << 20)
    }

    /// For a record.
    pub fn to_json(&self) -> Value {
        let fills = self.groups.iter().map(|group| group.fill_bytes);
        json!({ "fill_bytes": fills.collect::<Vec<_>>(), "destaging": self.are_destaging() })
    }
}
