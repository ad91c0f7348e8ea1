//! Blocks whose content is unknown and that could not even be marked as lost, because the medium accepted neither bytes nor
//! checksums.
//!
//! They count as lost as long as they are recorded. Here they are in memory. A store that outlives the process also keeps
//! them in a log with reserved space ([`MarkLog`]): otherwise, after a kill, zeros or old content would be used as data.
//! Not here: when marking is tried again (see [`super::held`]), and where the log is stored.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use underlay_model::cluster::ComponentId;

/// Keeps such blocks where they outlive the process.
///
/// It may store more blocks than given if its space is short, but never fewer.
pub trait MarkLog: Debug + Send {
    /// The content of these blocks is unknown.
    fn mark(&mut self, component: ComponentId, blocks: Range<u64>);

    /// It is known, or known to be lost by what is stored beside them. What was not marked stays as it is.
    fn clear(&mut self, component: ComponentId, blocks: Range<u64>);
}

/// A log that the components of a data plane share.
pub(super) type SharedLog = Arc<Mutex<Box<dyn MarkLog>>>;

/// Those of one component.
#[derive(Debug, Default)]
pub(super) struct Unmarked {
    blocks: BTreeSet<u64>,
    log: Option<(ComponentId, SharedLog)>,
}

impl Unmarked {
    /// From now on every change is kept in a log, as what is known of a component.
    pub(super) fn keep(&mut self, component: ComponentId, log: &SharedLog) {
        // Another one would not have what this one has been told.
        debug_assert!(self.log.is_none(), "one log for as long as the component is there");
        self.log = Some((component, Arc::clone(log)));
    }

    /// The log has these blocks already.
    pub(super) fn recall(&mut self, blocks: Range<u64>) {
        self.blocks.extend(blocks);
    }

    pub(super) fn contains(&self, block: u64) -> bool {
        self.blocks.contains(&block)
    }

    /// Whether any of these blocks is among them.
    pub(super) fn touches(&self, blocks: Range<u64>) -> bool {
        self.blocks.range(blocks).next().is_some()
    }

    /// The first few of them.
    pub(super) fn first(&self, count: usize) -> Vec<u64> {
        self.blocks.iter().copied().take(count).collect()
    }

    pub(super) fn insert(&mut self, blocks: Range<u64>) {
        self.blocks.extend(blocks.clone());
        self.with_log(|log, component| log.mark(component, blocks));
    }

    pub(super) fn remove(&mut self, blocks: Range<u64>) {
        if !self.touches(blocks.clone()) {
            return;
        }
        self.blocks.retain(|block| !blocks.contains(block));
        debug_assert!(!self.touches(blocks.clone()), "none of them is left");
        self.with_log(|log, component| log.clear(component, blocks));
    }

    fn with_log(&self, what: impl FnOnce(&mut dyn MarkLog, ComponentId)) {
        if let Some((component, log)) = &self.log {
            // What another thread left there when it panicked is still the whole log.
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            what(log.as_mut(), *component);
        }
    }
}
