//! The bandwidth of the cable between host and device.
//!
//! Transfers are served in order of arrival, not of data readiness: a transfer reserved for the moment a
//! slow unit delivers would keep the cable idle until then and block everybody behind it. So the link
//! limits the rate and adds the backlog it has at arrival, and never makes a request wait for
//! another request's unit.
//!
//! A divided device (see [`crate::DeviceProfile::divisor`]) owns its link for a part of the time: see
//! [`crate::stage`].

use crate::profile::{Duplex, Link};
use crate::service_factor::ServiceFactor;
use crate::stage::{CREDIT, Stage};
use underlay_core::Nanos;

/// Latencies are quoted for 4 KiB, so the transfer of the first 4 KiB is already in them.
const QUOTED_BYTES: u64 = 4096;

/// The two directions of a link.
#[derive(Clone, Debug)]
pub(crate) struct LinkState {
    link: Link,
    reads: Stage,
    writes: Stage,
    read_times: TransferTimes,
    write_times: TransferTimes,
}

/// How long a transfer takes. That of the last length is remembered: the next one nearly always has it.
#[derive(Clone, Copy, Debug, Default)]
struct TransferTimes {
    bytes: u64,
    whole: Nanos,
    extra: Nanos,
}

impl TransferTimes {
    fn of(&mut self, bytes: u64, bytes_per_second: u64) -> TransferTimes {
        if self.bytes != bytes {
            let whole = transfer_time(bytes, bytes_per_second);
            let extra = transfer_time(bytes.saturating_sub(QUOTED_BYTES), bytes_per_second);
            *self = TransferTimes { bytes, whole, extra };
        }
        *self
    }
}

/// What one transfer got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// When the cable is free for it.
    pub(crate) start: Nanos,
    /// How long it takes beyond the 4 KiB that latencies already contain.
    pub(crate) extra: Nanos,
}

impl LinkState {
    pub(crate) fn new(link: Link, divisor: u32) -> LinkState {
        LinkState {
            link,
            reads: Stage::new(divisor, CREDIT),
            writes: Stage::new(divisor, CREDIT),
            read_times: TransferTimes::default(),
            write_times: TransferTimes::default(),
        }
    }

    /// When the device-to-host direction is free.
    pub(crate) fn read_free(&self) -> Nanos {
        self.reads.free()
    }

    /// When the host-to-device direction is free.
    pub(crate) fn write_free(&self) -> Nanos {
        match self.link.duplex {
            Duplex::Half => self.reads.free(),
            Duplex::Full => self.writes.free(),
        }
    }

    /// Reserves the device-to-host direction from `ready` on.
    pub(crate) fn read(&mut self, ready: Nanos, bytes: u64, factor: ServiceFactor) -> Transfer {
        let times = self.read_times.of(bytes, self.link.read_bytes_per_second);
        reserve(&mut self.reads, ready, times, factor)
    }

    /// Reserves the host-to-device direction from `ready` on.
    pub(crate) fn write(&mut self, ready: Nanos, bytes: u64, factor: ServiceFactor) -> Transfer {
        let times = self.write_times.of(bytes, self.link.write_bytes_per_second);
        let stage = match self.link.duplex {
            Duplex::Half => &mut self.reads,
            Duplex::Full => &mut self.writes,
        };
        reserve(stage, ready, times, factor)
    }
}

fn reserve(
    stage: &mut Stage,
    ready: Nanos,
    times: TransferTimes,
    factor: ServiceFactor,
) -> Transfer {
    let start = stage.serve(ready, factor.of(times.whole));
    Transfer { start, extra: factor.of(times.extra) }
}

/// Rounded up, so that a rate is never exceeded.
pub(crate) fn transfer_time(bytes: u64, bytes_per_second: u64) -> Nanos {
    // Divisions of 128 bits take many times as long, and only absurd lengths need them.
    debug_assert!(bytes_per_second > 0, "a link transfers something");
    if let Some(scaled) = bytes.checked_mul(1_000_000_000) {
        return Nanos(scaled.div_ceil(bytes_per_second));
    }
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
    Nanos(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::{LinkState, transfer_time};
    use crate::profile::{Duplex, Link};
    use crate::service_factor::ServiceFactor;
    use crate::stage::CREDIT;
    use underlay_core::Nanos;

    const ONE: ServiceFactor = ServiceFactor::ONE;

    fn link(duplex: Duplex) -> LinkState {
        divided_link(duplex, 1)
    }

    fn divided_link(duplex: Duplex, divisor: u32) -> LinkState {
        let link = Link {
            read_bytes_per_second: 1_000_000_000,
            write_bytes_per_second: 500_000_000,
            duplex,
        };
        LinkState::new(link, divisor)
    }

    #[test]
    fn backlog_delays_the_next_transfer() {
        let mut link = link(Duplex::Full);
        let first = link.read(Nanos(100), 8192, ONE);
        assert_eq!((first.start, first.extra), (Nanos(100), Nanos(4096)));
        assert_eq!(link.read(Nanos(100), 4096, ONE).start, Nanos(100 + 8192));
        assert_eq!(
            link.write(Nanos(100), 4096, ONE).start,
            Nanos(100),
            "directions are independent"
        );
    }

    #[test]
    fn half_duplex_shares_the_cable() {
        let mut link = link(Duplex::Half);
        link.read(Nanos(0), 1000, ONE);
        assert_eq!(link.write(Nanos(0), 1000, ONE).start, Nanos(1000));
        assert_eq!(link.read(Nanos(0), 1000, ONE).start, Nanos(3000));
    }

    #[test]
    fn a_divided_link_transfers_as_fast_until_its_credit_is_used_up() {
        let mut link = divided_link(Duplex::Full, 8);
        let mut transfer = || link.read(Nanos(0), 1_000_000, ONE);
        assert_eq!((transfer().start, transfer().start), (Nanos(0), Nanos(1_000_000)));
        let credit = 7 * CREDIT.0;
        let starts: Vec<u64> = (2..40).map(|_| transfer().start.0).collect();
        assert_eq!(starts[37], 39 * 8_000_000 - credit);
        assert_eq!(transfer().extra, Nanos(1_000_000 - 4096));
    }

    #[test]
    fn times_round_up() {
        assert_eq!(transfer_time(1, 3_000_000_000), Nanos(1));
        assert_eq!(transfer_time(0, 3), Nanos(0));
    }
}
