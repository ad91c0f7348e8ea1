//! The volumes of a cluster and the components they consist of, by number.
//!
//! What is not here: the devices on which components lie ([`super::inventory::Inventory`]), and requests.

use super::ids::{ComponentId, VolumeId};
use super::object::Component;
use super::object::{Layout, Object};
use super::volume::Volume;

/// Volumes and components. Removed ones leave a hole, so that numbers are never used again.
#[derive(Debug)]
pub(super) struct Objects {
    components: Vec<Option<Box<Component>>>,
    volumes: Vec<Option<Box<Volume>>>,
    /// Counts changes of what components there are, and of which can be used; see the module `whole_set`.
    shape: u64,
}

impl Objects {
    /// No volumes.
    pub(super) fn new() -> Objects {
        Objects { components: Vec::new(), volumes: Vec::new(), shape: 0 }
    }

    /// All components, by number.
    pub(super) fn components(&self) -> impl Iterator<Item = &Component> {
        self.components.iter().flatten().map(|component| &**component)
    }

    /// All volumes, those that stand for other data among them, by number.
    pub(super) fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().flatten().map(|volume| &**volume)
    }

    /// The numbers of all volumes, to go through them while they change.
    pub(super) fn volume_ids(&self) -> Vec<VolumeId> {
        self.volumes().map(|volume| volume.id).collect()
    }

    /// The number that the next component gets.
    pub(super) fn next_component(&self) -> ComponentId {
        ComponentId(self.components.len() as u32)
    }

    /// The number that the next volume gets.
    pub(super) fn next_volume(&self) -> VolumeId {
        VolumeId(self.volumes.len() as u32)
    }

    /// Adds a component that has the next number.
    pub(super) fn add_component(&mut self, component: Component) {
        assert_eq!(component.id, self.next_component(), "components are numbered in order");
        self.components.push(Some(Box::new(component)));
        self.shape_changed();
    }

    /// Adds a volume that has the next number.
    pub(super) fn add_volume(&mut self, volume: Volume) {
        assert_eq!(volume.id, self.next_volume(), "volumes are numbered in order");
        self.volumes.push(Some(Box::new(volume)));
    }

    /// Takes a component out; its number is never used again.
    pub(super) fn take_component(&mut self, id: ComponentId) -> Option<Component> {
        let component = self.components.get_mut(id.0 as usize)?.take()?;
        self.shape_changed();
        Some(*component)
    }

    /// Takes a volume out; its number is never used again.
    pub(super) fn take_volume(&mut self, id: VolumeId) -> Option<Volume> {
        self.volumes.get_mut(id.0 as usize)?.take().map(|volume| *volume)
    }

    /// The numbers below these were given out before a restart.
    pub(super) fn reserve_numbers(&mut self, components: u32, volumes: u32) {
        assert!(self.components.is_empty() && self.volumes.is_empty(), "restored when empty");
        self.components.resize_with(components as usize, || None);
        self.volumes.resize_with(volumes as usize, || None);
    }

    /// Puts a component back under a number that was given out; tells whether it was free.
    #[must_use]
    pub(super) fn restore_component(&mut self, component: Component) -> bool {
        put_back(&mut self.components, component.id.0, component)
    }

    /// Puts a volume back under a number that was given out; tells whether it was free.
    #[must_use]
    pub(super) fn restore_volume(&mut self, volume: Volume) -> bool {
        put_back(&mut self.volumes, volume.id.0, volume)
    }

    /// A component came, went, fell behind or caught up, or a row came into doubt or out of it: cached sets may be wrong.
    pub(super) fn shape_changed(&mut self) {
        self.shape += 1;
    }

    /// The shape that valid cached sets have, see the module `whole_set`.
    #[inline]
    pub(super) fn shape(&self) -> u64 {
        self.shape
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

fn put_back<T>(places: &mut [Option<Box<T>>], number: u32, entry: T) -> bool {
    match places.get_mut(number as usize) {
        Some(place @ None) => {
            *place = Some(Box::new(entry));
            true
        }
        Some(Some(_)) | None => false,
    }
}
