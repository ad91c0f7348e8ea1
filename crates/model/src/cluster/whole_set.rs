//! A cache of complete sets: what every request would look up again is looked up once.
//!
//! Nearly all requests go to sets whose slots have one reachable component each, with nothing stale. Which sets these are, and
//! where their components are, changes only if a component is added, removed, falls behind or catches up. Each such change
//! increments the *shape* of the cluster; entries of an earlier shape are not used.

use super::cached_set::CachedSet;
use super::component_place::Target;
use super::data_command::{Content, Piece, PieceMember};
use super::ids::{ComponentId, GroupId, HostId, VolumeId};
use super::object::Object;
use super::row_plan::SLOTS_MAX;
use super::storage::Storage;

impl Object {
    /// The entry of a set, if nothing of it is missing under that shape of the cluster.
    #[inline]
    pub(super) fn whole_set(&self, set: u32, shape: u64) -> Option<&CachedSet> {
        self.cached_sets.get(set as usize).filter(|cached| cached.shape == shape && cached.is_whole)
    }
}

impl Storage {
    /// Rebuilds the entries of a volume's present layout, if the cluster's shape has changed since.
    #[inline]
    pub(super) fn refresh_cached_sets(&mut self, volume: VolumeId) {
        let shape = self.objects.shape();
        let is_current = self.objects.volume(volume).is_none_or(|state| {
            state.object.cached_sets.first().is_some_and(|cached| cached.shape == shape)
        });
        if !is_current {
            self.rebuild_cached_sets(volume);
        }
    }

    #[cold]
    fn rebuild_cached_sets(&mut self, volume: VolumeId) {
        let Some(state) = self.objects.volume(volume) else { return };
        let sets = 0..state.object.geometry.sets;
        let sets = sets.map(|set| self.cached_set(&state.object, set)).collect();
        if let Some(state) = self.objects.volume_mut(volume) {
            state.object.cached_sets = sets;
        }
    }

    fn cached_set(&self, object: &Object, set: u32) -> CachedSet {
        let geometry = &object.geometry;
        let piece = Piece::new(geometry.kind, geometry.unit_bytes, 0, object.checksum);
        let nowhere = Target {
            component: ComponentId(u32::MAX),
            group: GroupId(0),
            host: HostId(0),
            disk: 0,
            base: 0,
        };
        let targets = [nowhere; SLOTS_MAX];
        let mut cached = CachedSet { shape: self.objects.shape(), is_whole: true, piece, targets };
        if !object.in_doubt[set as usize].is_empty() {
            return CachedSet { is_whole: false, ..cached };
        }
        for (index, slot) in object.set(set).iter().enumerate() {
            let component = self.objects.component(slot.current);
            let is_whole = component.is_some_and(|component| {
                slot.replacement.is_none() && component.reachable && component.stale.is_empty()
            });
            let target = self.target(slot.current).filter(|_| is_whole);
            let Some(target) = target else { return CachedSet { is_whole: false, ..cached } };
            cached.targets[index] = target;
            cached.piece.push(PieceMember {
                component: slot.current,
                slot: index as u8,
                content: Content::Current,
            });
        }
        cached
    }
}
