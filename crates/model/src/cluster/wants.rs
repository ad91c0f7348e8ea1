//! The I/Os on components that a phase of a part consists of.

use super::ids::ComponentId;
use crate::request::Operation;
use crate::scheduler::IoClass;

/// One I/O that a part wants done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) component: ComponentId,
    pub(super) operation: Operation,
    /// From the component's start.
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) class: IoClass,
}

/// A short list of I/Os; longer ones (flushes of wide volumes, policy changes) spill to the heap.
#[derive(Clone, Debug)]
pub(super) struct Wants {
    few: [Option<Wanted>; 4],
    more: Vec<Wanted>,
}

impl Wants {
    /// None.
    pub(super) fn new() -> Wants {
        Wants { few: [None; 4], more: Vec::new() }
    }

    /// Adds one.
    pub(super) fn push(&mut self, wanted: Wanted) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(wanted),
            None => self.more.push(wanted),
        }
    }

    /// Adds all of another list.
    pub(super) fn extend(&mut self, other: &Wants) {
        for wanted in other.iter() {
            self.push(*wanted);
        }
    }

    /// The same on behalf of another class.
    pub(super) fn of_class(mut self, class: IoClass) -> Wants {
        for wanted in self.few.iter_mut().flatten().chain(&mut self.more) {
            wanted.class = class;
        }
        self
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.few[0].is_none()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Wanted> {
        self.few.iter().flatten().chain(&self.more)
    }
}

impl std::ops::Index<usize> for Wants {
    type Output = Wanted;
    fn index(&self, index: usize) -> &Wanted {
        self.iter().nth(index).expect("the caller knows that there is one")
    }
}
