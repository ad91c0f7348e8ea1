//! Managed servers on a datastore that Underlay provides, as the ladder sees it: faults, background work, the datastore's
//! latencies and the health of all of them.

use std::sync::PoisonError;
use std::time::Instant;
use underlay_core::{Bytes, Resource};
use underlay_database::managed::Liveness;
use underlay_datastore::{DatastoreError, MountedVolume};
use underlay_host::free_space;
use underlay_record::{Interval, PhaseKind};
use underlay_telemetry::Collector;

use super::under_test::{UnderTest, serving};
use crate::lab::abort::{Abort, During};
use crate::lab::background::Background;
use crate::lab::causal_check::Changeable;
use crate::lab::causal_check::perturbation::Perturbation;
use crate::lab::event::Observer;
use crate::lab::faults::{Faults, Surroundings};
use crate::lab::ladder::Site;
use crate::lab::resync;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;
use crate::lab::storage_record;

/// Less free space than this on a volume of the database ends the run: the database would soon stop by
/// itself, with less to learn from.
const FREE_SPACE_MIN: Bytes = Bytes::from_mib(16);

/// Everything that surrounds the load of a managed run.
pub struct ManagedSite<'a, 'f, 'd> {
    /// The run in the record.
    pub log: RunLog<'a>,
    /// The databases.
    pub databases: &'a mut [UnderTest<'d>],
    /// The datastore under them.
    pub datastore: &'a SharedDatastore,
    /// Its volumes.
    pub volumes: &'a [MountedVolume],
    /// What the study breaks.
    pub faults: &'a mut Faults<'f>,
    /// Work scheduled alongside the users.
    pub background: &'a mut Background<'f>,
    /// What of it the causal check can change.
    pub perturbation: Perturbation<'a>,
    /// Is told of restarted servers.
    pub collector: &'a Collector,
}

impl ManagedSite<'_, '_, '_> {
    /// Stops the background work.
    pub fn stop_background(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        self.background.stop(observer)
    }

    /// Repairs every fault that is still in force.
    pub fn repair_faults(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        self.faults.mend_all(&mut Surroundings {
            servers: serving(self.databases),
            datastore: self.datastore,
            collector: self.collector,
            observer,
            meanwhile: &mut || Ok(()),
        })
    }
}

impl Site for ManagedSite<'_, '_, '_> {
    fn phase_began(&mut self, kind: PhaseKind, users: u32) {
        self.faults.phase_began(kind, users);
        self.background.phase_began(kind, users);
        if kind == PhaseKind::Measure {
            self.perturbation.cpu.window_began();
        }
    }

    fn phase_ended(&mut self, kind: PhaseKind, users: u32) {
        if kind == PhaseKind::Measure {
            self.perturbation.cpu.window_ended(users);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        [self.faults.next_due(), self.background.next_due()].into_iter().flatten().min()
    }

    fn carry_out_due(
        &mut self,
        observer: &mut dyn Observer,
        meanwhile: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        self.background.carry_out_due(observer)?;
        self.faults.carry_out_due(&mut Surroundings {
            servers: serving(self.databases),
            datastore: self.datastore,
            collector: self.collector,
            observer,
            meanwhile,
        })
    }

    fn write_interval(&mut self, interval: Interval) -> Result<(), Abort> {
        storage_record::write(self.log, self.datastore, interval)
    }

    fn changeable(&self) -> Vec<Changeable> {
        self.perturbation.changeable()
    }

    fn change(&mut self, change: Option<(Resource, f64)>) -> Result<(), Abort> {
        self.perturbation.change(self.datastore, change)
    }

    fn load_ended(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        // Requests of background work may wait for storage that is repaired first.
        let repaired = self.repair_faults(observer);
        repaired.and(self.stop_background(observer))
    }

    fn is_resync_done(&mut self) -> Result<bool, Abort> {
        resync::is_done(self.datastore).during("look at what is being copied")
    }

    fn check_health(&mut self) -> Result<(), Abort> {
        if self.faults.is_down() {
            return Ok(());
        }
        // The datastore first: when it is gone the database fails as well, and the cause is the former.
        let health = self.datastore.lock().unwrap_or_else(PoisonError::into_inner).health();
        if let Err(error) = health {
            let failure = Abort::failed("the datastore failed", &error);
            return match error {
                DatastoreError::ReadOnly { .. } | DatastoreError::LostMount { .. } => {
                    self.faults.excuse(failure)
                }
                _ => Err(failure),
            };
        }
        for database in self.databases.iter_mut() {
            let of = database.described();
            if let Liveness::Died(log) =
                database.server.liveness().during("look after the database server")?
            {
                return self.faults.excuse(Abort::Failed(format!(
                    "the database server{of} ended by itself: {}",
                    log.headline()
                )));
            }
            // It recovers by itself, but its users lost their sessions and its memory is empty: what was measured is not
            // what the design does. After a fault of the study that is what the study is about.
            if let Some(crash) = database.server.crash()
                && !self.faults.have_happened()
            {
                return Err(Abort::Failed(format!(
                    "a process of the database server{of} crashed, and all sessions were ended: {crash}"
                )));
            }
        }
        for volume in self.volumes {
            let free = free_space(&volume.path).during("look at the free space of a volume")?;
            if free < FREE_SPACE_MIN {
                return Err(Abort::Failed(format!(
                    "the volume `{}` is full: {free} of {} left; give it more capacity, or less data",
                    volume.name, volume.capacity
                )));
            }
        }
        Ok(())
    }
}
