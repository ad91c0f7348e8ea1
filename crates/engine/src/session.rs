//! A session: one user's transaction on its way through the engine.
//!
//! Only its state and where its time goes; what happens next is decided by the database.

use crate::read_ahead::Streams;
use crate::result::Place;
use crate::script::Script;
use crate::station::Station;
use underlay_core::Nanos;

/// What a session is doing, or waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing: no transaction.
    Idle,
    /// Pausing before a transaction.
    Pausing,
    /// In the queue for a connection.
    Connecting,
    /// The client prepares the transaction on its processor.
    Preparing,
    /// The request is on the network.
    Sending,
    /// In the queue for a lock.
    Locking,
    /// Another session reads the page that it needs.
    Awaiting,
    /// No frame can give way to the page that it needs.
    Starved,
    /// The page that it changes is being written.
    Latched,
    /// On the processor before a page is read.
    BeforeRead,
    /// A page is read.
    Reading,
    /// Waiting until fewer dirty pages wait to be written.
    Throttled,
    /// On the processor at the end of a step.
    Working,
    /// On the processor before it flushes the log.
    BeforeFlush,
    /// Waiting for the log.
    Flushing,
    /// The answer is on the network.
    Answering,
}

impl Phase {
    /// Where a session in this phase is counted; none outside of transactions.
    pub(crate) const fn place(self) -> Option<Place> {
        Some(match self {
            Phase::Idle | Phase::Pausing => return None,
            Phase::Connecting => Place::Connection,
            Phase::Preparing => Place::Client,
            Phase::Sending | Phase::Answering => Place::Network,
            Phase::Locking => Place::Lock,
            Phase::Awaiting | Phase::Reading => Place::Read,
            Phase::Throttled | Phase::Starved | Phase::Latched => Place::Throttle,
            Phase::BeforeRead | Phase::Working | Phase::BeforeFlush => Place::Cpu,
            Phase::Flushing => Place::Log,
        })
    }
}

/// The state.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) phase: Phase,
    /// When it entered the phase.
    pub(crate) since: Nanos,
    pub(crate) script: Script,
    pub(crate) step: usize,
    pub(crate) next_lock: u32,
    pub(crate) next_touch: u32,
    /// Processor time of the step that was used.
    pub(crate) cpu_used: Nanos,
    /// Processor time of the server for the transaction.
    pub(crate) server_cpu: Nanos,
    /// Bytes of page images that the step owes to the log.
    pub(crate) images: u64,
    /// Whether the page that it needs exists; otherwise it makes it.
    pub(crate) page_exists: bool,
    /// The frame that it reads into.
    pub(crate) frame: u32,
    /// Whether the page that it needs is in the page cache of the operating system.
    pub(crate) is_cached: bool,
    /// Whether it gave the kernel a page to write, to make room for the one that it needs.
    pub(crate) has_written: bool,
    /// Blocks that are read with the page, itself included.
    pub(crate) read_blocks: u32,
    /// What its server process has read, as the kernel remembers it.
    pub(crate) streams: Streams,
    pub(crate) intended: Nanos,
    pub(crate) started: Nanos,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session {
            phase: Phase::Idle,
            since: Nanos::ZERO,
            script: Script::default(),
            step: 0,
            next_lock: 0,
            next_touch: 0,
            cpu_used: Nanos::ZERO,
            server_cpu: Nanos::ZERO,
            images: 0,
            page_exists: true,
            frame: 0,
            is_cached: false,
            has_written: false,
            read_blocks: 1,
            streams: Streams::default(),
            intended: Nanos::ZERO,
            started: Nanos::ZERO,
        }
    }

    /// Enters a phase, and is counted where it is.
    pub(crate) fn enter(
        &mut self,
        now: Nanos,
        phase: Phase,
        stations: &mut [Station; Place::COUNT],
    ) {
        let (from, to) = (self.phase.place(), phase.place());
        if let Some(from) = from {
            stations[from as usize].depart(now, self.since);
        }
        if let Some(to) = to {
            stations[to as usize].arrive(now);
        }
        self.phase = phase;
        self.since = now;
    }
}
