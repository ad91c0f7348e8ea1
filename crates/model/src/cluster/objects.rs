//! The volumes of a cluster and the components they consist of, by number.
//!
//! What is not here: the devices on which components lie ([`super::inventory::Inventory`]), and requests.

use super::ids::{ComponentId, VolumeId};
use super::object::{Component, Volume};
use super::object::{Layout, Object};

/// Volumes and components. Removed ones leave a hole, so that numbers are never used again.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) components: Vec<Option<Box<Component>>>,
    pub(super) volumes: Vec<Option<Box<Volume>>>,
    /// Counts changes of what components there are, and of which can be used; see the module `whole_set`.
    pub(super) shape: u64,
}

impl Objects {
    /// No volumes.
    pub(super) fn new() -> Objects {
        Objects { components: Vec::new(), volumes: Vec::new(), shape: 0 }
    }

    #[inline]
    pub(super) fn component(&self, id: ComponentId) -> Option<&Component> {
        self.components.get(id.0 as usize)?.as_deref()
    }

    #[inline]
    pub(super) fn component_mut(&mut self, id: ComponentId) -> Option<&mut Component> {
        self.components.get_mut(id.0 as usize)?.as_deref_mut()
    }

    #[inline]
    pub(super) fn volume(&self, id: VolumeId) -> Option<&Volume> {
        self.volumes.get(id.0 as usize)?.as_deref()
    }

    #[inline]
    pub(super) fn volume_mut(&mut self, id: VolumeId) -> Option<&mut Volume> {
        self.volumes.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// One of the layouts of a volume.
    #[inline]
    pub(super) fn object(&self, volume: VolumeId, layout: Layout) -> Option<&Object> {
        let volume = self.volume(volume)?;
        match layout {
            Layout::Present => Some(&volume.object),
            Layout::Next => volume.reshape.as_ref().map(|reshape| &reshape.object),
        }
    }

    #[inline]
    pub(super) fn object_mut(&mut self, volume: VolumeId, layout: Layout) -> Option<&mut Object> {
        let volume = self.volume_mut(volume)?;
        match layout {
            Layout::Present => Some(&mut volume.object),
            Layout::Next => volume.reshape.as_mut().map(|reshape| &mut reshape.object),
        }
    }
}
