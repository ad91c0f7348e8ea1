//! What a causal check can change around a server on a datastore of ours, and how.
//!
//! On emulated designs every kind of I/O, because the datastore can slow its models down. A host's real storage has no such
//! knob: a limit of its throughput would act on log, reads and data writes alike, so they are not changed there and stay
//! *observed*.

use std::sync::PoisonError;

use underlay_core::{Dilation, Resource};
use underlay_datastore::ServiceSlowdown;
use underlay_host::Cgroup;
use underlay_study::{DatastoreKind, DesignPlan};

use super::changeable::Changeable;
use super::server_cpu::ServerCpu;
use crate::lab::abort::{Abort, During};
use crate::lab::samplers::SharedDatastore;

/// The knobs of one run.
pub struct Perturbation<'a> {
    design: &'a DesignPlan,
    /// The server's processors.
    pub cpu: ServerCpu<'a>,
}

impl<'a> Perturbation<'a> {
    /// The knobs of a design whose server runs in this group, if it has one.
    pub fn new(
        design: &'a DesignPlan,
        cgroup: Option<&'a Cgroup>,
        dilation: Dilation,
    ) -> Perturbation<'a> {
        Perturbation { design, cpu: ServerCpu::new(cgroup, dilation) }
    }

    /// What can be changed.
    pub fn changeable(&self) -> Vec<Changeable> {
        const OF_STORAGE: [Resource; 3] = [Resource::Log, Resource::Read, Resource::DataWrite];
        let storage = |each: &dyn Fn(Resource) -> Changeable| OF_STORAGE.map(each).to_vec();
        let mut all = match &self.design.kind {
            // The factors are those of devices; a link keeps its rate.
            DatastoreKind::Emulated { devices, .. } => {
                let instant = devices.iter().all(|(_, profile)| profile.is_instant());
                storage(&|resource| match instant {
                    // Twice nothing is nothing.
                    true => Changeable::fixed(resource, "its devices take no time"),
                    false => Changeable::both(resource),
                })
            }
            DatastoreKind::Cluster(_) => {
                let mut all = storage(&Changeable::slower);
                all.push(Changeable::both(Resource::Network));
                all
            }
            DatastoreKind::Path { .. } => storage(&|resource| {
                Changeable::fixed(resource, "storage of this host cannot be slowed selectively")
            }),
        };
        all.push(self.cpu.changeable());
        all
    }

    /// Changes one resource by a factor of its service time, and nothing else.
    pub fn change(
        &mut self,
        datastore: &SharedDatastore,
        change: Option<(Resource, f64)>,
    ) -> Result<(), Abort> {
        let factor_of = |resource| match change {
            Some((changed, factor)) if changed == resource => factor,
            _ => 1.0,
        };
        self.cpu.set_factor(factor_of(Resource::Cpu)).during("change the server's CPU limit")?;
        let slowdown = ServiceSlowdown {
            log: factor_of(Resource::Log),
            read: factor_of(Resource::Read),
            data_write: factor_of(Resource::DataWrite),
            network: factor_of(Resource::Network),
        };
        let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
        datastore.set_slowdown(slowdown).during("change how slow the datastore is")
    }
}
