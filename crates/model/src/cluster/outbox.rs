//! What the driver of a cluster is to be told next: events in the order in which they are to be processed, and whether
//! the state that must survive a restart has changed since the driver last got it.
//!
//! What is not here: the state itself. The cluster writes it down when [`Outbox::push_state`] asks for it.

use super::data_command::DataCommand;
use super::event::{ClusterEvent, Notice};
use super::state::ClusterState;
use underlay_core::Nanos;

/// Events that the driver has not taken yet.
#[derive(Debug)]
pub(super) struct Outbox {
    events: Vec<ClusterEvent>,
    /// Events at the front that are in their final order.
    ordered: usize,
    /// Counts changes that must survive a restart; see [`ClusterEvent::StateChanged`].
    generation: u64,
    /// The generation of the state that was emitted last; none if the driver does not want states.
    emitted_generation: Option<u64>,
}

impl Outbox {
    /// No events; the driver gets no states until it asks for them.
    pub(super) fn new() -> Outbox {
        Outbox { events: Vec::new(), ordered: 0, generation: 0, emitted_generation: None }
    }

    /// Whether no event is waiting.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether there is an event, or a change of the state that has not been emitted.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        !self.events.is_empty() || self.has_unsaved_change()
    }

    /// Whether the state has changed since it was emitted last, if the driver wants states at all.
    pub(super) fn has_unsaved_change(&self) -> bool {
        self.emitted_generation.is_some_and(|emitted| emitted != self.generation)
    }

    /// Something has changed that must survive a restart.
    pub(super) fn state_changed(&mut self) {
        self.generation += 1;
    }

    /// From now on states are emitted, beginning with the present one.
    pub(super) fn emit_states(&mut self) {
        self.emitted_generation = Some(self.generation.wrapping_sub(1));
    }

    /// Adds an event.
    #[inline]
    pub(super) fn emit(&mut self, event: ClusterEvent) {
        self.events.push(event);
    }

    /// Adds a command for the data plane.
    #[inline]
    pub(super) fn command(&mut self, command: DataCommand) {
        self.events.push(ClusterEvent::Data(command));
    }

    /// Adds a notice for the time line.
    pub(super) fn notice(&mut self, at: Nanos, notice: Notice) {
        self.events.push(ClusterEvent::Notice { at, notice });
    }

    /// Inserts the present state among the events added since the last state. It says that copies have ended and that what
    /// they replaced is gone, and it knows everything that clients were answered. So it comes after the bytes, and before
    /// answers and before what destroys bytes that an older state counts on.
    pub(super) fn push_state(&mut self, state: ClusterState) {
        debug_assert!(self.has_unsaved_change(), "a state is emitted once per change");
        debug_assert!(self.ordered <= self.events.len(), "ordered events are among the events");
        self.emitted_generation = Some(self.generation);
        let comes_after = |event: &ClusterEvent| match event {
            ClusterEvent::Finished(_) => true,
            ClusterEvent::Data(command) => {
                matches!(command, DataCommand::Remove { .. } | DataCommand::Blank { .. })
            }
            ClusterEvent::StateChanged(_) | ClusterEvent::Notice { .. } => false,
        };
        let count = self.events.len();
        let unordered = self.events.drain(self.ordered..);
        let (after, before): (Vec<_>, Vec<_>) = unordered.partition(comes_after);
        self.events.extend(before);
        self.events.push(ClusterEvent::StateChanged(Box::new(state)));
        self.events.extend(after);
        self.ordered = self.events.len();
        debug_assert_eq!(self.ordered, count + 1, "no event is lost when they are put in order");
    }

    /// Moves all events to the end of `events`.
    pub(super) fn take(&mut self, events: &mut Vec<ClusterEvent>) {
        self.ordered = 0;
        if events.is_empty() {
            std::mem::swap(events, &mut self.events);
        } else {
            events.append(&mut self.events);
        }
    }
}
