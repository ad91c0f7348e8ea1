//! The clock of a slow device: it is late by a factor, from some moment on. So the device's latency, its rate and its buffer
//! slow down together.

use underlay_core::Nanos;

/// A clock that runs slow by a factor.
#[derive(Clone, Debug)]
pub(super) struct SlowClock {
    host_base: Nanos,
    device_base: Nanos,
    factor: f64,
    /// Whether it has always shown the host's time, as hardly any does not: then nothing is computed.
    is_true: bool,
}

impl Default for SlowClock {
    fn default() -> SlowClock {
        SlowClock { host_base: Nanos::ZERO, device_base: Nanos::ZERO, factor: 1.0, is_true: true }
    }
}

impl SlowClock {
    /// From now on it is late by another factor.
    pub(super) fn set_factor(&mut self, now: Nanos, factor: f64) {
        debug_assert!(factor > 0.0, "a clock goes forward");
        debug_assert!(now >= self.host_base, "a clock is set in order of time");
        (self.device_base, self.host_base) = (self.to_device(now), now);
        self.factor = factor;
        self.is_true &= factor == 1.0;
    }

    /// What it shows.
    #[inline]
    pub(super) fn to_device(&self, host: Nanos) -> Nanos {
        if self.is_true {
            return host;
        }
        let elapsed = host.saturating_sub(self.host_base);
        if self.factor == 1.0 {
            return self.device_base + elapsed;
        }
        self.device_base + self.shrunk(elapsed)
    }

    /// When it shows that, rounded up, so that nothing is early.
    #[inline]
    pub(super) fn to_host(&self, device: Nanos) -> Nanos {
        if self.is_true {
            return device;
        }
        self.host_base + self.stretch(device.saturating_sub(self.device_base))
    }

    /// How long something takes by the host's clock.
    #[inline]
    pub(super) fn stretch(&self, length: Nanos) -> Nanos {
        if self.is_true || self.factor == 1.0 { length } else { self.stretched(length) }
    }

    // Apart and cold, so that nothing is divided for devices that run at their own speed, which hardly any do not.
    #[cold]
    fn shrunk(&self, length: Nanos) -> Nanos {
        Nanos((length.0 as f64 / self.factor) as u64)
    }

    #[cold]
    fn stretched(&self, length: Nanos) -> Nanos {
        Nanos((length.0 as f64 * self.factor).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::SlowClock;
    use underlay_core::Nanos;

    #[test]
    fn a_slow_clock_is_continuous_and_late() {
        let mut clock = SlowClock::default();
        assert_eq!(clock.to_host(Nanos(70)), Nanos(70));
        clock.set_factor(Nanos(1_000), 10.0);
        assert_eq!(clock.to_device(Nanos(2_000)), Nanos(1_100));
        assert_eq!(clock.to_host(Nanos(1_100)), Nanos(2_000));
        clock.set_factor(Nanos(2_000), 1.0);
        assert_eq!(clock.to_device(Nanos(2_500)), Nanos(1_600));
        assert_eq!(clock.to_host(Nanos(1_600)), Nanos(2_500));
    }
}
