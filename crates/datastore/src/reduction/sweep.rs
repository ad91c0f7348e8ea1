//! Which blocks of a cluster's components are to be counted now: those that changed and are not in a write buffer any more.
//!
//! Destaged blocks are counted first, but they are not all. A write changes the bytes when the last replica has it, which
//! may be after the first replica has destaged it; a lost device drops its buffered data; a power cut reverts writes. So
//! every change of a component's bytes marks its block ([`crate::data_plane::DataPlane::track`]), and a sweep over the
//! marks finds blocks that are neither counted nor buffered. When no mark is left, the counts are exact.

use crate::data_plane::{BlockStore, DataPlane, StoreMaker};
use underlay_model::cluster::{Cluster, ComponentId, Leaving};

/// Words of 64 blocks that one sweep looks at.
const WORDS_PER_SWEEP: u32 = 1024;

/// Where the sweep over the marks is.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The component whose marks are looked at, and the next word of them.
    at: u32,
    word: usize,
}

impl Sweep {
    /// Takes out what the elevators destaged, and a part of what else is to be counted.
    pub fn collect<M: StoreMaker>(
        &mut self,
        cluster: &mut Cluster,
        data: &mut DataPlane<M>,
        leaving: &mut Vec<Leaving>,
    ) where
        M::Store: BlockStore,
    {
        self.collect_but(cluster, data, leaving, Cluster::buffered);
    }

    /// The same, and what is still in a write buffer too: while nothing is written, it may stay there for ever.
    pub fn collect_buffered_too<M: StoreMaker>(
        &mut self,
        cluster: &mut Cluster,
        data: &mut DataPlane<M>,
        leaving: &mut Vec<Leaving>,
    ) where
        M::Store: BlockStore,
    {
        self.collect_but(cluster, data, leaving, |_, _, _| 0);
    }

    /// `kept` says which of 64 blocks of a component keep their marks.
    fn collect_but<M: StoreMaker>(
        &mut self,
        cluster: &mut Cluster,
        data: &mut DataPlane<M>,
        leaving: &mut Vec<Leaving>,
        kept: fn(&Cluster, ComponentId, u64) -> u64,
    ) where
        M::Store: BlockStore,
    {
        for group in cluster.reducing_groups() {
            for range in cluster.take_destaged(group) {
                let Some(changed) = data.changed_mut(range.component) else { continue };
                let (component, group) = (range.component, range.group);
                changed.take_range(range.first, range.blocks, |first, blocks| {
                    leaving.push(Leaving { component, group, first, blocks });
                });
            }
        }
        self.look_around(cluster, data, leaving, kept);
    }

    fn look_around<M: StoreMaker>(
        &mut self,
        cluster: &Cluster,
        data: &mut DataPlane<M>,
        leaving: &mut Vec<Leaving>,
        kept: fn(&Cluster, ComponentId, u64) -> u64,
    ) where
        M::Store: BlockStore,
    {
        let mut left = WORDS_PER_SWEEP;
        let mut turns = 0;
        while left > 0 {
            let component = match data.next_changed(ComponentId(self.at)) {
                Some(component) => component,
                None if turns == 0 => {
                    // Once around, from the beginning.
                    (self.at, self.word, turns) = (0, 0, 1);
                    continue;
                }
                None => return,
            };
            if component.0 != self.at {
                (self.at, self.word) = (component.0, 0);
            }
            let place = cluster.place_of(component);
            let Some(changed) = data.changed_mut(component) else { return };
            let Some((word, mask)) = changed.next_word(self.word) else {
                (self.at, self.word) = (component.0 + 1, 0);
                continue;
            };
            left -= 1;
            self.word = word + 1;
            let Some(group) = place else { continue };
            let ready = mask & !kept(cluster, component, word as u64 * 64);
            changed.take_word(word, ready, |first, blocks| {
                leaving.push(Leaving { component, group, first, blocks });
            });
        }
    }
}
