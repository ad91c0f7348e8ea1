//! How a supervisor compensates for the path: it is measured once, and followed while volumes are in use.
//!
//! Over NBD a path begins in the client, where it cannot be measured. So only block devices of this host are followed,
//! and NBD clients get the same compensation.

use tracing::warn;
use underlay_core::Dilation;

use super::supervisor::Supervisor;
use crate::control::{Command, TimingMode};
use crate::emulated::check_floor;
use crate::emulated::path_calibration::calibrate;
use crate::emulated::path_follower::PathFollower;
use crate::error::DatastoreError;

impl Supervisor {
    /// Whether nothing in the datastore takes time.
    fn is_instant(&self) -> bool {
        let devices = &self.description.devices;
        match &self.description.cluster {
            Some(cluster) => cluster.is_instant(),
            None => {
                self.description.link.is_none()
                    && devices.iter().all(|device| device.profile.is_instant())
            }
        }
    }

    /// Measures the path once, through the first block device there is, before anybody uses it.
    pub(super) fn calibrate(&mut self) -> Result<(), DatastoreError> {
        let Some((_, first)) = self.attached.first() else { return Ok(()) };
        if self.calibration.is_some() || self.is_instant() {
            return Ok(());
        }
        let found = calibrate(&mut self.server, first.block_device(), Dilation::NONE, None)?;
        self.server.ask(&Command::Latency)?;
        self.server.ask(&Command::Timing)?;
        self.server.done(&Command::SetTiming(TimingMode::Modelled))?;
        self.calibration = Some(found);
        let devices = self.description.devices.iter();
        let devices: Vec<_> =
            devices.map(|device| (device.name.clone(), device.profile.clone())).collect();
        // Nothing is measured here, so a device that is too fast for the host runs as fast as the
        // host can.
        if let Err(error) = check_floor(&devices, found.floor) {
            warn!("{error}");
        }
        Ok(())
    }

    /// Follows what the path to the block devices there are now costs under load.
    pub(super) fn follow_path(&mut self) -> Result<(), DatastoreError> {
        self.stop_following();
        let Some(calibration) = self.calibration.filter(|_| !self.attached.is_empty()) else {
            return Ok(());
        };
        let devices = self.attached.iter().map(|(_, attached)| attached.device_name().to_string());
        let control = self.server.connect()?;
        let devices = (devices.collect(), Dilation::NONE);
        let follower = PathFollower::start(control, devices, calibration.compensation)?;
        self.follower = Some(follower);
        Ok(())
    }

    /// Before block devices come or go.
    pub(super) fn stop_following(&mut self) {
        if let (Some(follower), Some(calibration)) = (self.follower.take(), &mut self.calibration) {
            calibration.compensation = follower.stop();
        }
    }
}
