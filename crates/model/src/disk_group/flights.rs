//! The calendar of a group: which pieces are in flight, and when they complete.

use super::piece::Sent;
use crate::agenda::Agenda;
use crate::scheduler::Lane;
use underlay_core::Nanos;

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A device answers.
    Answer { member: usize, sent: Sent },
    /// An operation has waited long enough for the group's processor.
    Computed { op: u32 },
    /// Nothing any more.
    Withdrawn,
}

impl Event {
    fn is_vm_answer(&self) -> bool {
        matches!(self, Event::Answer { sent, .. } if sent.lane == Lane::Vm)
    }
}

/// Events in order of time, and of their entry where times are equal.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    agenda: Agenda<Event>,
}

impl Calendar {
    pub(crate) fn new() -> Calendar {
        Calendar { agenda: Agenda::new() }
    }

    #[inline]
    pub(crate) fn enter(&mut self, at: Nanos, event: Event) {
        self.agenda.enter(at, event);
    }

    /// When the next event happens; `u64::MAX` = never.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.agenda.next()
    }

    /// When a device next answers for a virtual machine. Takes as long as there are events.
    pub(crate) fn next_answer(&self) -> Option<Nanos> {
        let answers = self.agenda.iter().filter(|(_, event)| event.is_vm_answer());
        answers.map(|(turn, _)| turn.at()).min()
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Event> {
        self.agenda.take().map(|(_, event)| event)
    }

    /// Withdraws every answer of a member, in the order in which they would have come.
    pub(crate) fn withdraw(&mut self, member: usize) -> Vec<Sent> {
        let mut withdrawn = Vec::new();
        for (turn, event) in self.agenda.iter_mut() {
            if let Event::Answer { member: of, sent } = *event
                && of == member
            {
                withdrawn.push((turn, sent));
                *event = Event::Withdrawn;
            }
        }
        withdrawn.sort_unstable_by_key(|(turn, _)| *turn);
        withdrawn.into_iter().map(|(_, sent)| sent).collect()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.agenda.clear();
    }
}
