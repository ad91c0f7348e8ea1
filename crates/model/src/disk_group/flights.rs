//! What is under way and when it comes back: the calendar of a group.

use super::member::Sent;
use crate::scheduler::Lane;
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

impl Event {
    fn is_vm_answer(&self) -> bool {
        matches!(self, Event::Answer { sent, .. } if sent.lane == Lane::Vm)
    }
}

/// Where an event is kept, and whether it is the answer to a virtual machine: who asks for the next one of those looks
/// through all entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32);

impl Place {
    fn of(slot: u32, event: &Event) -> Place {
        Place(slot << 1 | u32::from(event.is_vm_answer()))
    }

    fn slot(self) -> usize {
        (self.0 >> 1) as usize
    }

    fn is_vm_answer(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Events in order of time, and of their entry where times are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    heap: BinaryHeap<Reverse<(Nanos, u64, Place)>>,
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
        self.heap.push(Reverse((at, self.entered, Place::of(slot, &event))));
    }

    /// When the next event happens.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// When a device next answers for a virtual machine. Takes as long as there are events.
    pub(crate) fn next_answer(&self) -> Option<Nanos> {
        let answers = self.heap.iter().filter(|Reverse((_, _, place))| {
            place.is_vm_answer() && self.slots[place.slot()].is_some()
        });
        answers.map(|Reverse((at, _, _))| *at).min()
    }

    /// Takes the next event, unless it has been withdrawn in the meantime.
    pub(crate) fn take(&mut self) -> Option<Event> {
        let Reverse((_, _, place)) = self.heap.pop()?;
        self.free.push(place.slot() as u32);
        self.slots[place.slot()].take()
    }

    /// Withdraws every answer of a member, in the order in which they would have come.
    pub(crate) fn withdraw(&mut self, member: usize) -> Vec<Sent> {
        let mut entries: Vec<_> = self.heap.iter().map(|Reverse(entry)| *entry).collect();
        entries.sort_unstable();
        let mut withdrawn = Vec::new();
        for (_, _, place) in entries {
            let event = &mut self.slots[place.slot()];
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
