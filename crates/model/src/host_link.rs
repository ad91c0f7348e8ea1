//! The path between a host and all its devices: a Fibre Channel or iSCSI link in front of an array.
//!
//! Both directions work at once, each carries one transfer at a time, in order of arrival. What a request reads crosses
//! the link after its device has delivered it; what it writes, before its device sees it. Commands and answers without
//! data take the latency only. Frames are not modelled: the rate is what the link carries of data.
//!
//! A divided link (see [`crate::DeviceProfile::divisor`]) is one part in so many of it: see [`crate::stage`].

use crate::link::transfer_time;
use crate::request::{Operation, Request};
use crate::stage::{CREDIT, Stage};
use underlay_core::Nanos;

/// A link between a host and its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLink {
    /// Of each direction. 1 MB/s to 1 TB/s.
    pub bytes_per_second: u64,
    /// Added to every request, both ways together. 0 to 1 s.
    pub latency: Nanos,
    /// One part in so many of the link; 1 = all of it.
    pub divisor: u32,
}

impl HostLink {
    /// The range of its rate.
    pub const RATES: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;

    /// Why its numbers make no sense, if they do not.
    pub fn problem(&self) -> Option<&'static str> {
        if !HostLink::RATES.contains(&self.bytes_per_second) {
            return Some("use 1 MB/s to 1 TB/s");
        }
        if self.latency > Nanos::from_secs(1) {
            return Some("use 0 to 1 s");
        }
        (self.divisor == 0).then_some("use 1 or more")
    }
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Time for which data from the devices occupied it. Of a divided link a transfer counts at once for all that it pays, so
    /// a burst can count for more than the time that it takes.
    pub read_busy: Nanos,
    /// Time for which data to the devices occupied it.
    pub write_busy: Nanos,
}

/// A link with its backlog.
#[derive(Clone, Debug)]
pub(crate) struct HostLinkState {
    link: HostLink,
    reads: Stage,
    writes: Stage,
    used: LinkUse,
}

/// A request that passed the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) at: Nanos,
    /// Time for which it waited for other transfers.
    pub(crate) queue: Nanos,
}

impl HostLinkState {
    pub(crate) fn new(link: HostLink) -> HostLinkState {
        assert_eq!(link.problem(), None, "a link");
        HostLinkState {
            link,
            reads: Stage::new(link.divisor, CREDIT),
            writes: Stage::new(link.divisor, CREDIT),
            used: LinkUse::default(),
        }
    }

    /// When a request that arrived at `now`, and that its device alone would complete at `served`, completes behind the
    /// link. The link is reserved on arrival, as devices are: a transfer that waits for a slow device keeps no other back.
    pub(crate) fn pass(&mut self, now: Nanos, served: Nanos, request: &Request) -> Passed {
        let bytes = match request.operation {
            Operation::Read | Operation::Write => u64::from(request.length_bytes),
            Operation::Flush | Operation::Discard => 0,
        };
        let wire = transfer_time(bytes, self.link.bytes_per_second);
        let (stage, busy) = match request.operation {
            Operation::Read => (&mut self.reads, &mut self.used.read_busy),
            _ => (&mut self.writes, &mut self.used.write_busy),
        };
        // What carries nothing does not wait for the others' data.
        if bytes == 0 {
            return Passed { at: served + self.link.latency, queue: Nanos::ZERO };
        }
        let start = stage.serve(now, wire);
        *busy += stage.charge(wire);
        let ready = match request.operation {
            // The backlog shrinks while the device reads.
            Operation::Read => served.max(start),
            _ => served + (start - now),
        };
        Passed { at: ready + wire + self.link.latency, queue: ready - served }
    }

    /// What it has carried.
    pub(crate) fn used(&self) -> LinkUse {
        self.used
    }

    /// Goes on counting where `old` stopped.
    pub(crate) fn succeed(&mut self, old: &HostLinkState) {
        self.used = old.used;
    }
}

#[cfg(test)]
mod tests {
    use super::{HostLink, HostLinkState, Passed};
    use crate::request::Request;
    use crate::stage::CREDIT;
    use underlay_core::Nanos;

    fn link(divisor: u32) -> HostLinkState {
        HostLinkState::new(HostLink {
            bytes_per_second: 1_000_000_000,
            latency: Nanos(10),
            divisor,
        })
    }

    #[test]
    fn transfers_of_a_direction_wait_for_each_other_and_for_nothing_else() {
        let mut link = link(1);
        let mut pass = |served, request: &Request| link.pass(Nanos(0), Nanos(served), request);
        let read = Request::read(0, 4096);
        // 4,096 ns on the wire and 10 ns of latency after the device.
        assert_eq!(pass(100_000, &read), Passed { at: Nanos(104_106), queue: Nanos(0) });
        // The backlog of 4,096 ns is gone before this device has read.
        assert_eq!(pass(100_000, &read), Passed { at: Nanos(104_106), queue: Nanos(0) });
        assert_eq!(pass(1_000, &read), Passed { at: Nanos(12_298), queue: Nanos(7_192) });
        let write = Request::write(0, 4096);
        assert_eq!(pass(1_000, &write), Passed { at: Nanos(5_106), queue: Nanos(0) });
        assert_eq!(pass(1_000, &write), Passed { at: Nanos(9_202), queue: Nanos(4_096) });
        assert_eq!(pass(1_000, &Request::flush()), Passed { at: Nanos(1_010), queue: Nanos(0) });
        assert_eq!(link.used().read_busy, Nanos(3 * 4096));
        assert_eq!(link.used().write_busy, Nanos(2 * 4096));
    }

    #[test]
    fn a_part_of_a_link_takes_as_long_and_carries_less() {
        let mut link = link(8);
        let read = Request::read(0, 4096);
        let mut pass = || link.pass(Nanos(0), Nanos(0), &read).at.0;
        assert_eq!((pass(), pass()), (4_106, 2 * 4_096 + 10));
        let thousandth = (2..1000).map(|_| pass()).last();
        assert_eq!(thousandth, Some(999 * 8 * 4_096 - 7 * CREDIT.0 + 4_106));
        assert_eq!(link.used().read_busy, Nanos(1000 * 8 * 4_096));
    }

    #[test]
    fn impossible_links_are_named() {
        let good = HostLink { bytes_per_second: 1_600_000_000, latency: Nanos::ZERO, divisor: 1 };
        assert_eq!(good.problem(), None);
        assert!(HostLink { bytes_per_second: 10, ..good }.problem().is_some());
        assert!(HostLink { latency: Nanos::from_secs(2), ..good }.problem().is_some());
        assert!(HostLink { divisor: 0, ..good }.problem().is_some());
    }
}
