//! What is under way and when it comes back: the calendar of a group.

use super::member::Sent;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::Nanos;

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A device answers.
    Answer { member: usize, sent: Sent },
    /// An operation has waited long enough for the group's processor.
    Computed { op: u32 },
}

/// Events in order of time, and of their entry where times are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    heap: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    entered: u64,
}

impl Calendar {
    pub(crate) fn enter(&mut self, at: Nanos, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slots.push(Some(event));
                self.slots.len() as u32 - 1
            }
        };
        self.entered += 1;
        self.heap.push(Reverse((at, self.entered, slot)));
    }

    /// When the next event happens.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes the next event, unless it has been withdrawn in the meantime.
    pub(crate) fn take(&mut self) -> Option<Event> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        let event = self.slots[slot as usize].take();
        self.free.push(slot);
        event
    }

    /// Withdraws every answer of a member, in the order in which they would have come.
    pub(crate) fn withdraw(&mut self, member: usize) -> Vec<Sent> {
        let mut entries: Vec<_> = self.heap.iter().map(|Reverse(entry)| *entry).collect();
        entries.sort_unstable();
        let mut withdrawn = Vec::new();
        for (_, _, slot) in entries {
            let event = &mut self.slots[slot as usize];
            if let Some(Event::Answer { member: of, sent }) = *event
                && of == member
            {
                withdrawn.push(sent);
                *event = None;
            }
        }
        withdrawn
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.slots.clear();
        self.free.clear();
    }
}
