//! Reads that take a constant time by definition: the additional time that their clients see is the cost of
//! the path (see [`crate::path_cost`]).

use std::collections::VecDeque;

use underlay_core::Nanos;

/// The length of a probe, at the start of a volume.
pub(crate) const PROBE_BYTES: u32 = 4096;

/// Probes in flight. `C` names the client that is answered.
#[derive(Debug)]
pub(crate) struct Probes<C> {
    /// After how long they are answered; none = there are none.
    latency: Option<Nanos>,
    /// When each is to be seen by its client, in this order, with the buffer that goes with it.
    waiting: VecDeque<(Nanos, C, Vec<u8>)>,
}

impl<C> Probes<C> {
    pub(crate) fn new() -> Probes<C> {
        Probes { latency: None, waiting: VecDeque::new() }
    }

    /// They are answered after this time from now on; none = there are none any more.
    pub(crate) fn set_latency(&mut self, latency: Option<Nanos>) {
        self.latency = latency;
    }

    /// Whether answers are held back for them.
    pub(crate) fn are_expected(&self) -> bool {
        self.latency.is_some()
    }

    /// Whether a read is one.
    pub(crate) fn has(&self, offset_bytes: u64, length_bytes: u32) -> bool {
        self.are_expected() && offset_bytes == 0 && length_bytes == PROBE_BYTES
    }

    /// Accepts one that arrived at `arrived`.
    pub(crate) fn submit(&mut self, arrived: Nanos, client: C, buffer: Vec<u8>) {
        let due = arrived + self.latency.unwrap_or(Nanos::ZERO);
        self.waiting.push_back((due, client, buffer));
    }

    /// The next that is to be seen by its client at `until` or before.
    pub(crate) fn take_due(&mut self, until: Nanos) -> Option<(C, Vec<u8>)> {
        let (_, client, buffer) = self.waiting.pop_front_if(|(at, ..)| *at <= until)?;
        Some((client, buffer))
    }

    /// When the next is to be seen by its client.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.waiting.front().map(|(at, ..)| *at)
    }

    /// Gives all of them up.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = (C, Vec<u8>)> + '_ {
        self.waiting.drain(..).map(|(_, client, buffer)| (client, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::Probes;
    use underlay_core::Nanos;

    #[test]
    fn take_a_constant_time() {
        let mut probes = Probes::new();
        assert!(!probes.has(0, 4096));
        probes.set_latency(Some(Nanos::from_micros(200)));
        assert!(probes.has(0, 4096) && !probes.has(4096, 4096));
        let arrived = Nanos::from_micros(1_000);
        probes.submit(arrived, 7, Vec::new());
        probes.submit(arrived + Nanos(1), 8, Vec::new());
        assert_eq!(probes.next(), Some(Nanos::from_micros(1_200)));
        assert_eq!(probes.take_due(Nanos(1_199_999)), None);
        assert_eq!(probes.take_due(Nanos::from_micros(1_200)), Some((7, Vec::new())));
        assert_eq!(probes.take_due(Nanos::from_micros(1_200)), None);
        let abandoned: Vec<u32> = probes.abandon().map(|(client, _)| client).collect();
        assert_eq!((abandoned, probes.next()), (vec![8], None));
    }
}
