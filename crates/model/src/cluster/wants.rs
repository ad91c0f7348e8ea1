//! The I/Os on components that a phase of a part consists of.

use super::ids::ComponentId;
use crate::request::Operation;
use crate::scheduler::IoClass;

/// One I/O that a part wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) component: ComponentId,
    pub(super) operation: Operation,
    /// From the component's start.
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) class: IoClass,
}

/// So many need no memory of their own.
const FEW: usize = 4;

/// A short list of I/Os; longer ones (flushes of wide volumes, policy changes) spill to the heap.
#[derive(Clone, Debug)]
pub(super) struct Wants {
    few: [Option<Wanted>; FEW],
    count: usize,
    more: Vec<Wanted>,
}

impl Wants {
    /// None.
    pub(super) fn new() -> Wants {
        Wants { few: [None; FEW], count: 0, more: Vec::new() }
    }

    /// Adds one.
    pub(super) fn push(&mut self, wanted: Wanted) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = Some(wanted),
            None => self.more.push(wanted),
        }
        self.count += 1;
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
        self.count == 0
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Wanted> {
        self.few[..self.count.min(FEW)].iter().flatten().chain(&self.more)
    }
}

impl std::ops::Index<usize> for Wants {
    type Output = Wanted;
    fn index(&self, index: usize) -> &Wanted {
        self.iter().nth(index).expect("the caller knows that there is one")
    }
}
