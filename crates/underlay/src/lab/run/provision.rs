//! What the databases of a run share: a folder and the datastore. All of it is on the run's teardown stack before it exists.

use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use underlay_core::RootSeed;
use underlay_datastore::{
    ClusterStorage, Context, DatastoreSpec, MountedVolume, Timing, VolumeRequest, open,
};
use underlay_host::{Teardown, User};
use underlay_record::conventions::document;
use underlay_study::{DatastoreKind, DesignPlan, VolumePlan};

use super::active::ActiveRun;
use crate::lab::abort::{Abort, During};
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;

/// What a design's volumes live on; `seed` is that of its random service times.
pub fn datastore_spec(design: &DesignPlan, seed: RootSeed) -> DatastoreSpec {
    match &design.kind {
        DatastoreKind::Path { directory } => DatastoreSpec::Path { directory: directory.clone() },
        DatastoreKind::Emulated { devices, durability, backing, link } => DatastoreSpec::Emulated {
            devices: devices.clone(),
            seed,
            backing_directory: backing.clone(),
            durability: *durability,
            link: *link,
        },
        DatastoreKind::Cluster(plan) => DatastoreSpec::Cluster {
            storage: Box::new(ClusterStorage {
                spec: plan.spec.clone(),
                policy: plan.policy,
                policies: BTreeMap::new(),
                fill_percent: plan.fill_percent,
            }),
            seed,
            backing_directory: None,
        },
    }
}

/// A design's volumes, to be created.
pub fn volume_requests(design: &DesignPlan) -> Vec<VolumeRequest> {
    let request = |(index, volume): (usize, &VolumePlan)| VolumeRequest {
        name: volume.name.clone(),
        capacity: volume.capacity,
        file_system: volume.file_system,
        device: volume.device.clone(),
        host: design.volume_hosts.get(index).copied(),
    };
    design.volumes.iter().enumerate().map(request).collect()
}

impl ActiveRun<'_> {
    /// A folder of this run's own; short, because sockets live in it.
    pub(super) fn scratch(&self) -> Result<PathBuf, Abort> {
        let name = format!("{}-{}", std::process::id(), self.log.run.0);
        let path = self.bench.state.scratch_dir(&name);
        self.teardown.create_directory(&path).during("create a folder for the run")?;
        Ok(path)
    }

    pub(super) fn open_datastore(
        &self,
        scratch: &Path,
    ) -> Result<(SharedDatastore, Vec<MountedVolume>), Abort> {
        open_datastore(&Ground {
            design: self.design,
            // Every repeat meets other random service times, both designs of a pair the same stream.
            seed: self.bench.plan.seed.child("datastore", u64::from(self.scheduled.repeat)),
            log: self.log,
            teardown: self.teardown,
            scratch,
            server_program: self.bench.server_program,
            owner: self.bench.user,
        })
    }

    pub(super) fn set_timing(
        &self,
        datastore: &SharedDatastore,
        timing: Timing,
    ) -> Result<(), Abort> {
        set_timing(self.design, datastore, timing)
    }
}

/// What a datastore is opened on.
pub struct Ground<'a> {
    /// The design.
    pub design: &'a DesignPlan,
    /// Of its random service times.
    pub seed: RootSeed,
    /// The run in the record.
    pub log: RunLog<'a>,
    /// Where everything that is created is registered.
    pub teardown: &'a Teardown,
    /// A folder of the run's own.
    pub scratch: &'a Path,
    /// The program that serves emulated volumes.
    pub server_program: &'a Path,
    /// Owner of the volumes; this process if there is none.
    pub owner: Option<&'a User>,
}

/// Opens the datastore of a design with its volumes, and notes them in the record.
pub fn open_datastore(ground: &Ground<'_>) -> Result<(SharedDatastore, Vec<MountedVolume>), Abort> {
    let spec = datastore_spec(ground.design, ground.seed);
    let volumes = volume_requests(ground.design);
    let context = Context {
        teardown: ground.teardown,
        scratch: ground.scratch,
        server_program: ground.server_program,
        owner: ground.owner,
        dilation: ground.log.dilation,
    };
    let datastore = open(&spec, &volumes, &context).during("open the datastore")?;
    let mounted = datastore.volumes().to_vec();
    let described: Vec<_> = mounted
        .iter()
        .zip(&volumes)
        .map(|(volume, request)| {
            json!({
                "name": volume.name,
                "path": volume.path,
                "block_device": volume.block_device,
                "owns_block_device": volume.owns_block_device,
                "capacity_bytes": volume.capacity.0,
                "file_system": request.file_system.as_str(),
            })
        })
        .collect();
    ground.log.document(document::DATASTORE, &json!({ "volumes": described }))?;
    Ok((Arc::new(Mutex::new(datastore)), mounted))
}

/// Switches the modelled latencies of a design's datastore.
pub fn set_timing(
    design: &DesignPlan,
    datastore: &SharedDatastore,
    timing: Timing,
) -> Result<(), Abort> {
    if matches!(design.kind, DatastoreKind::Path { .. }) {
        // A real device has one timing.
        return Ok(());
    }
    let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    datastore.set_timing(timing).during("switch the modelled latencies")
}

/// Switches the modelled latencies on after volumes were filled without them: data that was there before the run lies on the
/// capacity devices of a cluster.
pub fn begin_timing(design: &DesignPlan, datastore: &SharedDatastore) -> Result<(), Abort> {
    let mut locked = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    locked.destage_all().during("destage what the volumes were filled with")?;
    drop(locked);
    set_timing(design, datastore, Timing::Modelled)
}

/// Removes a datastore of which nothing else holds a share.
pub fn close(datastore: SharedDatastore) -> Result<(), Abort> {
    // The sampler's share went with the collector: this is the last one. If it is not, unwinding the
    // teardown stack removes the datastore all the same.
    match Arc::try_unwrap(datastore) {
        Ok(datastore) => {
            let datastore = datastore.into_inner().unwrap_or_else(PoisonError::into_inner);
            datastore.close().during("remove the datastore")
        }
        Err(_) => Ok(()),
    }
}
