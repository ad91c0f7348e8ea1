//! The network: how long a message takes from one host to another.
//!
//! A message waits for the sender's link, travels, and waits for the receiver's. What it carries occupies both links; the switch
//! between them forwards while it receives. Host-local messages take no time.

use super::ids::HostId;
use super::spec::NetworkSpec;
use super::topology::Host;
use crate::service_factor::ServiceFactor;
use underlay_core::Nanos;

/// The network between the hosts.
#[derive(Clone, Debug)]
pub(super) struct Network {
    spec: NetworkSpec,
    /// How many times as long every message takes.
    factor: ServiceFactor,
    /// How long the last length occupied a link. Nearly all messages carry it again, and a division takes as long as ten of
    /// the other steps.
    last: (u32, Nanos),
}

impl Network {
    /// A network without messages.
    pub(super) fn new(spec: NetworkSpec) -> Network {
        Network { spec, factor: ServiceFactor::ONE, last: (0, Nanos::ZERO) }
    }

    /// Messages sent from now on take longer by this factor, and occupy their links that much
    /// longer.
    pub(super) fn set_factor(&mut self, factor: ServiceFactor) {
        self.factor = factor;
        self.last = (0, Nanos::ZERO);
    }

    /// The part of a whole host's rates that each host has: one in so many.
    pub(super) fn divisor(&self) -> u32 {
        self.spec.divisor
    }

    #[inline]
    fn latency(&self) -> Nanos {
        self.factor.of(self.spec.latency)
    }

    /// The latency of a message, one way; it is not shared.
    #[inline]
    pub(super) fn latency_between(&self, from: HostId, to: HostId) -> Nanos {
        if from == to { Nanos::ZERO } else { self.latency() }
    }

    /// When a message sent at `now` has arrived.
    #[inline]
    pub(super) fn travel(
        &mut self,
        hosts: &mut [Host],
        from: HostId,
        to: HostId,
        bytes: u32,
        now: Nanos,
    ) -> Nanos {
        if from == to {
            return now;
        }
        let (wire, latency) = (self.wire_time(bytes), self.latency());
        let sender = &mut hosts[from.0 as usize];
        let departure = sender.send.serve(now, wire);
        let receiver = &mut hosts[to.0 as usize];
        let arrival = receiver.receive.serve(departure + latency, wire) + wire;
        debug_assert!(arrival >= now + latency, "a message takes at least the latency");
        arrival
    }

    /// How long this many bytes occupy a link.
    #[inline]
    fn wire_time(&mut self, bytes: u32) -> Nanos {
        if bytes == 0 {
            return Nanos::ZERO;
        }
        if bytes != self.last.0 {
            let time = u64::from(bytes) * 1_000_000_000 / self.spec.bytes_per_second;
            self.last = (bytes, self.factor.of(Nanos(time)));
        }
        self.last.1
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, HostId, Network, NetworkSpec};
    use underlay_core::Nanos;

    #[test]
    fn messages_share_links_and_local_ones_are_free() {
        let spec = NetworkSpec { latency: Nanos(100), bytes_per_second: 1_000_000_000, divisor: 1 };
        let mut network = Network::new(spec);
        let mut hosts: Vec<Host> =
            (0..3).map(|id| Host::new(HostId(id), &format!("h{id}"), None, 1)).collect();
        let mut send = |from, to, bytes| {
            network.travel(&mut hosts, HostId(from), HostId(to), bytes, Nanos(0)).0
        };
        assert_eq!(send(0, 0, 1_000_000), 0);
        assert_eq!(send(0, 1, 1000), 1100);
        assert_eq!(send(0, 1, 1000), 2100, "the same link again");
        assert_eq!(send(2, 1, 1000), 3100, "the receiver's link is busy");
        assert_eq!(send(1, 2, 1000), 1100, "the other direction is free");
        assert_eq!(send(1, 0, 500), 1000 + 100 + 500, "another length");
        assert_eq!(send(1, 0, 0), 1000 + 500 + 100, "what carries nothing does not occupy a link");
    }
}
