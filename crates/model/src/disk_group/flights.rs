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

/// Events in order of time, and of their entry where times are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    heap: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    slots: Vec<Option<Event>>,
    free: Vec<u32>,
    entered: u64,
    /// When virtual machines get answers.
    answers: BinaryHeap<Reverse<Nanos>>,
}

impl Calendar {
    pub(crate) fn enter(&mut self, at: Nanos, event: Event) {
        if event.is_vm_answer() {
            self.answers.push(Reverse(at));
        }
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

    /// When a device next answers for a virtual machine.
    pub(crate) fn next_answer(&self) -> Option<Nanos> {
        self.answers.peek().map(|Reverse(at)| *at)
    }

    /// Takes the next event, unless it has been withdrawn in the meantime.
    pub(crate) fn take(&mut self) -> Option<Event> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        let event = self.slots[slot as usize].take();
        if event.is_some_and(|event| event.is_vm_answer()) {
            let answer = self.answers.pop();
            debug_assert_eq!(answer, Some(Reverse(at)), "answers are entered with their events");
        }
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
        let slots = &self.slots;
        let stays = |slot: u32| slots[slot as usize].is_some_and(|event| event.is_vm_answer());
        let staying = self.heap.iter().filter(|Reverse((_, _, slot))| stays(*slot));
        self.answers = staying.map(|Reverse((at, _, _))| Reverse(*at)).collect();
        withdrawn
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.answers.clear();
        self.slots.clear();
        self.free.clear();
    }
}
