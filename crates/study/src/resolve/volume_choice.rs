//! A volume of a design as it was decided. Merging, scaling and checks are not here.

use underlay_core::Bytes;

use super::chosen::Chosen;
use crate::plan::{FileSystem, VolumePlan, volume_name};

/// A volume with the places of its values.
#[derive(Clone, Debug)]
pub(super) struct VolumeChoice {
    pub name: String,
    pub capacity: Chosen<Bytes>,
    pub device: Option<Chosen<String>>,
    pub file_system: Chosen<FileSystem>,
}

impl VolumeChoice {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same as a volume of one of several databases.
    pub fn of_database(&self, database: &str) -> VolumeChoice {
        VolumeChoice { name: volume_name(database, &self.name), ..self.clone() }
    }

    /// Its size.
    pub fn capacity(&self) -> Bytes {
        self.capacity.value
    }

    /// The volume as the plan holds it.
    pub fn plan(self) -> VolumePlan {
        VolumePlan {
            name: self.name,
            capacity: self.capacity.value,
            device: self.device.map(|device| device.value),
            file_system: self.file_system.value,
        }
    }
}
