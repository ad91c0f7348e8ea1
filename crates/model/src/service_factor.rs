//! Factors by which each class of I/O takes longer or shorter than its device says.
//!
//! The causal check of a study slows one class at a time; that is all the factors are for. Failures of a device are
//! conditions of the device instead. [`crate::io_class`] determines the class of a request.

use crate::io_class::class_of;
use crate::request::Operation;
use underlay_core::{IoClass, Nanos};

/// How many times as long a service takes. In steps of 1/1024, so that every time stays a whole number of nanoseconds and
/// a factor of 1 changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceFactor(u64);

impl ServiceFactor {
    /// As the device says.
    pub const ONE: ServiceFactor = ServiceFactor(1024);
    /// The range of what [`ServiceFactor::new`] takes.
    pub const RANGE: std::ops::RangeInclusive<f64> = 0.1..=100.0;

    /// A factor, rounded to the next step. `None` outside of [`ServiceFactor::RANGE`].
    pub fn new(factor: f64) -> Option<ServiceFactor> {
        Self::RANGE.contains(&factor).then(|| ServiceFactor((factor * 1024.0).round() as u64))
    }

    /// The factor in force.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1024.0
    }

    /// What is left of a time that was reckoned with another factor.
    pub(crate) fn instead_of(self, old: ServiceFactor, left: Nanos) -> Nanos {
        Nanos((u128::from(left.0) * u128::from(self.0) / u128::from(old.0)) as u64)
    }

    /// A time under this factor.
    #[inline]
    pub(crate) fn of(self, time: Nanos) -> Nanos {
        Nanos((time.0 * self.0) >> 10)
    }
}

impl Default for ServiceFactor {
    fn default() -> ServiceFactor {
        ServiceFactor::ONE
    }
}

/// A factor per class of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceFactors {
    /// Of writes and flushes of the log.
    pub log: ServiceFactor,
    /// Of reads.
    pub read: ServiceFactor,
    /// Of other writes and flushes.
    pub data_write: ServiceFactor,
}

impl ServiceFactors {
    /// The factor of a class.
    #[inline]
    pub const fn of(&self, class: IoClass) -> ServiceFactor {
        match class {
            IoClass::Log => self.log,
            IoClass::Read => self.read,
            IoClass::DataWrite => self.data_write,
        }
    }

    /// The factors of a volume's operations, in the order of [`Operation::ALL`]; `volumes` are all of its database.
    pub fn of_volume(&self, volume: &str, volumes: &[&str]) -> [ServiceFactor; 4] {
        Operation::ALL.map(|operation| self.of(class_of(volume, operation, volumes)))
    }
}

#[cfg(test)]
mod tests {
    use super::{ServiceFactor, ServiceFactors};
    use underlay_core::Nanos;

    #[test]
    fn factors_are_exact_where_they_change_nothing_and_bounded_elsewhere() {
        assert_eq!(ServiceFactor::ONE.of(Nanos(12_345_678_901)), Nanos(12_345_678_901));
        assert_eq!(ServiceFactor::new(2.0).unwrap().of(Nanos(1001)), Nanos(2002));
        assert!((ServiceFactor::new(1.0 / 1.2).unwrap().value() - 1.0 / 1.2).abs() < 1e-3);
        for refused in [0.0, 0.05, 101.0, f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(ServiceFactor::new(refused), None, "{refused}");
        }
    }

    #[test]
    fn volumes_have_the_factors_of_their_classes() {
        let slow = ServiceFactor::new(2.0).unwrap();
        let factors = ServiceFactors { log: slow, ..ServiceFactors::default() };
        let volumes = ["data", "wal"];
        assert_eq!(factors.of_volume("data", &volumes), [ServiceFactor::ONE; 4]);
        let [read, write, flush, discard] = factors.of_volume("wal", &volumes);
        assert_eq!((read, discard), (ServiceFactor::ONE, ServiceFactor::ONE));
        assert_eq!((write, flush), (slow, slow));
    }
}
