//! What loads the server in a run, as the ladder sees it: users that are driven, or a job that runs until it is done.

use underlay_core::Nanos;
use underlay_driver::{DriveError, DriveSummary, DriveTick, Driver, Mix};
use underlay_workload::transactional::{RunAccounting, Shape};

/// Something that loads the server and can be asked what it did.
pub trait LoadGenerator {
    /// Names and headline.
    fn shape(&self) -> &'static Shape;
    /// Everything since the last tick.
    fn tick(&self) -> DriveTick;
    /// Makes that many users active. A job begins with the first.
    fn set_users(&self, users: u32);
    /// Changes the rate of an open loop.
    fn set_rate(&self, rate_per_second: f64) -> Result<(), DriveError>;
    /// Changes the mix.
    fn set_mix(&self, mix: Mix) -> Result<(), DriveError>;
    /// Lets each transaction cost it so many times the processor time; 1 = as it is.
    fn set_cpu_factor(&self, factor: f64);
    /// Whether it is a job that is done.
    fn has_ended(&self) -> bool;
}

/// The same, to be stopped by its owner.
pub trait RunningLoad: LoadGenerator {
    /// What is kept of the run.
    type Accounting;

    /// Ends it; nothing new is begun.
    fn stop(self) -> DriveSummary<Self::Accounting>;
}

impl<B: RunAccounting> LoadGenerator for Driver<B> {
    fn shape(&self) -> &'static Shape {
        self.shape()
    }

    fn tick(&self) -> DriveTick {
        self.tick()
    }

    fn set_users(&self, users: u32) {
        self.set_users(users);
    }

    fn set_rate(&self, rate_per_second: f64) -> Result<(), DriveError> {
        self.set_rate(rate_per_second, Nanos::ZERO)
    }

    fn set_mix(&self, mix: Mix) -> Result<(), DriveError> {
        self.set_mix(mix)
    }

    fn set_cpu_factor(&self, factor: f64) {
        self.set_cpu_factor(factor);
    }

    fn has_ended(&self) -> bool {
        false
    }
}

impl<B: RunAccounting> RunningLoad for Driver<B> {
    type Accounting = B;

    fn stop(self) -> DriveSummary<B> {
        self.stop()
    }
}
