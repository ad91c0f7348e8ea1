//! Time dilation: how wall time and the time of a dilated experiment, *design time*, follow from each other.
//!
//! A dilated experiment takes a whole number of times as long as what it stands for. Everything that it
//! plans and records is in design time; only clocks and timers translate. Reads no clock.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::units::Nanos;

/// How many nanoseconds of wall time a nanosecond of design time takes: 1 to [`Dilation::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dilation(NonZeroU32);

impl Dilation {
    /// Real time.
    pub const NONE: Dilation = Dilation(NonZeroU32::MIN);
    /// The largest factor: a minute then takes an hour.
    pub const MAX: u32 = 64;

    /// The dilation by a factor; `None` outside of 1 to [`Dilation::MAX`].
    pub fn new(factor: u32) -> Option<Dilation> {
        NonZeroU32::new(factor).filter(|factor| factor.get() <= Dilation::MAX).map(Dilation)
    }

    /// The factor.
    pub const fn factor(self) -> u32 {
        self.0.get()
    }

    /// Whether design time is not real time.
    pub fn is_dilated(self) -> bool {
        self != Dilation::NONE
    }

    /// A span of wall time in design time, rounded down.
    pub fn design(self, wall: Nanos) -> Nanos {
        Nanos(wall.0 / u64::from(self.factor()))
    }

    /// A span of design time in wall time. Saturates at 584 years.
    pub fn wall(self, design: Nanos) -> Nanos {
        Nanos(design.0.saturating_mul(u64::from(self.factor())))
    }

    /// [`Dilation::wall`] of a duration.
    pub fn wall_duration(self, design: Duration) -> Duration {
        design.saturating_mul(self.factor())
    }
}

impl Default for Dilation {
    fn default() -> Dilation {
        Dilation::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::Dilation;
    use crate::units::Nanos;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    #[test]
    fn factors_have_a_range() {
        assert_eq!(Dilation::new(1), Some(Dilation::NONE));
        assert_eq!((Dilation::new(0), Dilation::new(Dilation::MAX + 1)), (None, None));
        assert!(!Dilation::default().is_dilated());
    }

    proptest! {
        #[test]
        fn design_time_survives_the_way_through_wall_time(
            factor in 1..=Dilation::MAX,
            at in 0..u64::MAX / 64,
            more in 0..1_000_000u64,
        ) {
            let dilation = Dilation::new(factor).expect("in range");
            prop_assert_eq!(dilation.design(dilation.wall(Nanos(at))), Nanos(at));
            // Neither direction turns time back.
            let later = dilation.design(Nanos(at + more));
            prop_assert!(later >= dilation.design(Nanos(at)));
            prop_assert!(dilation.wall(later) <= Nanos(at + more));
        }
    }
}
