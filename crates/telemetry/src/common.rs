//! What every thread of a collector shares: its clock, its stop signal, and where items go.

use crate::item::Item;
use crate::stop::StopSignal;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use underlay_core::Nanos;

/// What every thread of a collector shares.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) origin: Instant,
    pub(crate) interval: Duration,
    pub(crate) stop: Arc<StopSignal>,
    pub(crate) sink: Sender<Item>,
}

impl Common {
    /// The present moment on the time axis of the run.
    pub(crate) fn now(&self) -> Nanos {
        Nanos::from(self.origin.elapsed())
    }
}

/// The receiver is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SinkClosed;

/// Sends an item to the receiver.
pub(crate) fn send(common: &Common, item: Item) -> Result<(), SinkClosed> {
    common.sink.send(item).map_err(|_| SinkClosed)
}
