//! How well a single device of a [`crate::Store`] works, and the clock of a slow one.
//!
//! A device that is slow by a factor does everything that much slower: it has a clock of its own, which runs that
//! much slower than the wall clock. So throughput falls as latency grows, and the ratios between its operations stay
//! the same.
//!
//! Disk groups have member states of their own; this is for devices that volumes lie on directly.

use underlay_core::Nanos;

/// How well a device works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceCondition {
    /// As its profile says.
    Healthy,
    /// Everything takes this many times as long. Range 1 to 1,000,000.
    Slow {
        /// The factor.
        factor: f64,
    },
    /// Requests are accepted and nothing comes back, until the condition changes.
    Stuck,
    /// Requests take their time and fail with this probability, 0 to 1.
    Erroring {
        /// The probability.
        probability: f64,
    },
    /// It is gone: every request fails at once.
    Lost,
}

impl DeviceCondition {
    /// Whether requests may fail or stay out.
    pub fn fails(self) -> bool {
        !matches!(self, DeviceCondition::Healthy | DeviceCondition::Slow { .. })
    }

    /// Why the numbers of a condition make no sense, if they do not.
    pub fn problem(self) -> Option<&'static str> {
        match self {
            DeviceCondition::Slow { factor } if !(1.0..=1e6).contains(&factor) => {
                Some("the factor of a slow device must lie between 1 and 1,000,000")
            }
            DeviceCondition::Erroring { probability } if !(0.0..=1.0).contains(&probability) => {
                Some("a probability must lie between 0 and 1")
            }
            _ => None,
        }
    }

    fn factor(self) -> f64 {
        if let DeviceCondition::Slow { factor } = self { factor } else { 1.0 }
    }
}

/// A clock that goes `factor` times slower than the wall's since they were `wall` and `device`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceClock {
    wall: Nanos,
    device: Nanos,
    factor: f64,
}

impl DeviceClock {
    /// The same as the wall's.
    pub(crate) fn wall() -> DeviceClock {
        DeviceClock { wall: Nanos::ZERO, device: Nanos::ZERO, factor: 1.0 }
    }

    /// What it shows at `wall`; rounds down.
    pub(crate) fn at(&self, wall: Nanos) -> Nanos {
        let passed = wall.saturating_sub(self.wall);
        if self.factor == 1.0 {
            return self.device + passed;
        }
        self.device + Nanos((passed.0 as f64 / self.factor) as u64)
    }

    /// How long `span` of it is on the wall's clock; rounds up.
    pub(crate) fn on_the_wall(&self, span: Nanos) -> Nanos {
        if self.factor == 1.0 { span } else { Nanos((span.0 as f64 * self.factor).ceil() as u64) }
    }

    /// Goes on from `wall` by the factor of a condition.
    pub(crate) fn change(&mut self, wall: Nanos, condition: DeviceCondition) {
        *self = DeviceClock { device: self.at(wall), wall, factor: condition.factor() };
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceClock, DeviceCondition};
    use underlay_core::Nanos;

    #[test]
    fn a_slow_clock_never_jumps() {
        let mut clock = DeviceClock::wall();
        assert_eq!(clock.at(Nanos(1_000)), Nanos(1_000));
        clock.change(Nanos(1_000), DeviceCondition::Slow { factor: 4.0 });
        assert_eq!(clock.at(Nanos(1_000)), Nanos(1_000));
        assert_eq!(clock.at(Nanos(1_400)), Nanos(1_100));
        assert_eq!(clock.on_the_wall(Nanos(100)), Nanos(400));
        clock.change(Nanos(1_400), DeviceCondition::Healthy);
        assert_eq!(clock.at(Nanos(1_500)), Nanos(1_200));
    }

    #[test]
    fn impossible_numbers_are_named() {
        for factor in [0.5, f64::NAN, 1e7] {
            assert!(DeviceCondition::Slow { factor }.problem().is_some());
        }
        assert!(DeviceCondition::Erroring { probability: 1.5 }.problem().is_some());
        assert!(DeviceCondition::Slow { factor: 1.0 }.problem().is_none());
    }
}
