//! What every datastore can do, whatever it is made of.

use underlay_core::series::SeriesSpec;
use underlay_core::{Evidence, Histogram};
use underlay_model::Operation;

use crate::control::ServiceSlowdown;
use crate::error::DatastoreError;
use crate::fault::{ClusterChange, ClusterFault, DatastoreNotice};
use crate::spec::{MountedVolume, Timing};
use crate::timing_report::TimingReport;

/// An opened datastore: mounted volumes and what is known about them.
pub trait Datastore: Send {
    /// The volumes, in the order requested.
    fn volumes(&self) -> &[MountedVolume];

    /// What kind of evidence a run on it yields.
    fn evidence(&self) -> Evidence;

    /// The series that [`Datastore::counters`] yields; fixed for the life of the datastore.
    fn series(&self) -> Vec<SeriesSpec>;

    /// One value per series, in the same order. Counters are cumulative since opening.
    fn counters(&mut self) -> Result<Vec<f64>, DatastoreError>;

    /// Switches modelled latencies on or off. Requests under way keep the time they were given.
    ///
    /// Fails with [`DatastoreError::NotEmulated`] where nothing is modelled.
    fn set_timing(&mut self, timing: Timing) -> Result<(), DatastoreError>;

    /// What write buffers of a cluster hold is on its capacity devices, in no time, as if it had been written long ago. Nothing
    /// happens where there is no cluster.
    fn destage_all(&mut self) -> Result<(), DatastoreError> {
        Ok(())
    }

    /// Lets services take longer than the models say, by these factors, until the next call: see
    /// [`ServiceSlowdown`].
    ///
    /// Fails with [`DatastoreError::NotEmulated`] where nothing is modelled, and with [`DatastoreError::Refused`] for factors
    /// out of range, and for a network where there is none.
    fn set_slowdown(&mut self, slowdown: ServiceSlowdown) -> Result<(), DatastoreError>;

    /// How well modelled latencies were met since the last call; `None` where nothing is modelled.
    fn timing(&mut self) -> Result<Option<TimingReport>, DatastoreError>;

    /// Latencies as the volumes gave them since the last call; empty where nothing is modelled.
    fn latency(&mut self) -> Result<Vec<VolumeLatency>, DatastoreError>;

    /// Latencies inside a cluster since the last call, those that are not empty; none where there is no cluster.
    fn backend_latency(&mut self) -> Result<Vec<BackendLatency>, DatastoreError> {
        Ok(Vec::new())
    }

    /// Cuts the power of every device: what is volatile is kept, lost or torn, and all I/O fails
    /// until [`Datastore::power_on`]. The volumes must be unmounted and mounted again afterwards,
    /// which `power_on` does.
    fn power_cut(&mut self) -> Result<(), DatastoreError>;

    /// Restores power and mounts the volumes again, letting their file systems recover. Nothing may
    /// hold files on them open.
    fn power_on(&mut self) -> Result<(), DatastoreError>;

    /// Breaks something, or mends it: anything of a cluster; devices alone where there is none.
    ///
    /// Fails with [`DatastoreError::NotEmulated`] where nothing can break, and with
    /// [`DatastoreError::Refused`] when what it names does not exist.
    fn inject(&mut self, fault: &ClusterFault) -> Result<(), DatastoreError>;

    /// Changes a cluster, or what its volumes ask of it, while they serve.
    ///
    /// Fails as [`Datastore::inject`] does, and with [`DatastoreError::Refused`] when the change is not possible there.
    fn change(&mut self, change: &ClusterChange) -> Result<(), DatastoreError>;

    /// Unmounts the volumes and mounts them again, so that file systems that gave up after I/O errors recover. Nothing may hold
    /// files on them open.
    fn remount(&mut self) -> Result<(), DatastoreError>;

    /// What happened since the last call: faults, hosts and devices that went or came, copying; in order.
    fn notices(&mut self) -> Result<Vec<DatastoreNotice>, DatastoreError>;

    /// The processes that do the datastore's work: (name, pid).
    fn processes(&self) -> Vec<(String, u32)>;

    /// Whether all volumes are usable; the error names the cause if not.
    fn health(&mut self) -> Result<(), DatastoreError>;

    /// Unmounts and removes everything. Nothing may hold files on the volumes open.
    fn close(self: Box<Self>) -> Result<(), DatastoreError>;
}

/// The latencies of one operation on one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeLatency {
    /// The volume.
    pub volume: String,
    /// The operation.
    pub operation: Operation,
    /// From arrival in the datastore to its answer, in ns.
    pub latency: Histogram,
}

/// Latencies of a disk group's requests of one class, or of a device's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendLatency {
    /// `group.HOST/GROUP.CLASS.OPERATION` or `device.HOST/GROUP/DEVICE.OPERATION`, the class one of `vm`, `resync`,
    /// the operation `read` or `write`.
    pub name: String,
    /// From submission to answer, in ns of the cluster's time.
    pub latency: Histogram,
}
