//! A measured window: what users saw in it, in all and second by second. It is filled by whoever lets time go by.

use underlay_core::Nanos;
use underlay_driver::DriveTick;

/// A measured window.
#[derive(Default)]
pub struct Window {
    /// Active users; of a job its sessions.
    pub users: u32,
    /// Whether it was measured to its end.
    pub is_complete: bool,
    /// Everything in it.
    pub tick: DriveTick,
    /// The same, second by second.
    pub seconds: Vec<Second>,
    /// CPU time of the load generator's threads within it.
    pub cpu_ns: u64,
    /// Transactions that had ended when it began.
    pub ended_before: u64,
}

/// What users saw within about a second.
pub struct Second {
    /// Its end, since the begin of the window.
    pub end: Nanos,
    /// What the headline counts.
    pub headline_rate: f64,
    /// Their response times.
    pub response_p99: Option<Nanos>,
    /// Errors of all classes.
    pub errors: u64,
}

impl Window {
    pub(super) fn add(&mut self, tick: &DriveTick) {
        append(&mut self.tick, tick);
        self.seconds.push(Second {
            end: tick.end.saturating_sub(self.tick.begin),
            headline_rate: tick.headline_rate(),
            response_p99: tick.headline_response().quantile(0.99).map(Nanos),
            errors: tick.errors(),
        });
    }
}

/// Appends a tick to those before it.
pub(super) fn append(window: &mut DriveTick, tick: &DriveTick) {
    if window.types.is_empty() {
        window.begin = tick.begin;
    }
    window.append(tick);
}
