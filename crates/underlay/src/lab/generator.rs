//! What loads the server in a run, as the ladder sees it: users that are driven, or a job that runs until it is done.

use underlay_core::Nanos;
use underlay_driver::{DriveError, DriveSummary, DriveTick, Driver, Mix, Slowdown};
use underlay_workload::transactional::{RunAccounting, Shape};

use crate::lab::abort::Abort;
use crate::lab::client::LocalDriver;
use crate::lab::samplers::DriverGauge;

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
    /// Makes what it contributes to a transaction slower.
    fn set_slowdown(&self, slowdown: Slowdown);
    /// Whether it is a job that is done.
    fn has_ended(&self) -> bool;
    /// The process that its threads are of.
    fn pid(&self) -> u32 {
        std::process::id()
    }
    /// Hands over what the ticks since the last call counted for each of several databases. Of one there are no parts.
    fn take_parts(
        &self,
        _take: &mut dyn FnMut(Part<'_>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        Ok(())
    }
    /// Why it can generate no load any more, if it is a process that ended.
    fn lost(&self) -> Option<String> {
        None
    }
}

/// What was done to one of several databases in a tick.
pub struct Part<'a> {
    /// Its name.
    pub database: &'a str,
    /// For the sampler of its load generator.
    pub gauge: &'a DriverGauge,
    /// What was counted.
    pub tick: &'a DriveTick,
}

/// The same, to be stopped by its owner.
pub trait RunningLoad: LoadGenerator {
    /// What is kept of the run.
    type Accounting;

    /// Ends it; nothing new is begun.
    ///
    /// # Errors
    /// If it is lost, with what it knew.
    fn stop(self) -> Result<DriveSummary<Self::Accounting>, Abort>;
}

/// Users that are driven: by threads of the lab, or by a process within the server's limits.
pub enum UserLoad<B: RunAccounting> {
    /// By threads.
    Threads(Box<Driver<B>>),
    /// By a process.
    Process(Box<LocalDriver<B>>),
}

impl<B: RunAccounting> From<Driver<B>> for UserLoad<B> {
    fn from(driver: Driver<B>) -> UserLoad<B> {
        UserLoad::Threads(Box::new(driver))
    }
}

impl<B: RunAccounting> From<LocalDriver<B>> for UserLoad<B> {
    fn from(local: LocalDriver<B>) -> UserLoad<B> {
        UserLoad::Process(Box::new(local))
    }
}

impl<B: RunAccounting> LoadGenerator for UserLoad<B> {
    fn shape(&self) -> &'static Shape {
        match self {
            UserLoad::Threads(driver) => driver.shape(),
            UserLoad::Process(local) => local.driver.shape(),
        }
    }

    fn tick(&self) -> DriveTick {
        match self {
            UserLoad::Threads(driver) => driver.tick(),
            UserLoad::Process(local) => local.driver.tick(),
        }
    }

    fn set_users(&self, users: u32) {
        match self {
            UserLoad::Threads(driver) => driver.set_users(users),
            UserLoad::Process(local) => local.driver.set_users(users),
        }
    }

    fn set_rate(&self, rate_per_second: f64) -> Result<(), DriveError> {
        match self {
            UserLoad::Threads(driver) => driver.set_rate(rate_per_second, Nanos::ZERO),
            UserLoad::Process(local) => local.driver.set_rate(rate_per_second, Nanos::ZERO),
        }
    }

    fn set_mix(&self, mix: Mix) -> Result<(), DriveError> {
        match self {
            UserLoad::Threads(driver) => driver.set_mix(mix),
            UserLoad::Process(local) => local.driver.set_mix(&mix),
        }
    }

    fn set_slowdown(&self, slowdown: Slowdown) {
        match self {
            UserLoad::Threads(driver) => driver.set_slowdown(slowdown),
            UserLoad::Process(local) => local.driver.set_slowdown(slowdown),
        }
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn pid(&self) -> u32 {
        match self {
            UserLoad::Threads(_) => std::process::id(),
            UserLoad::Process(local) => local.pid(),
        }
    }

    fn lost(&self) -> Option<String> {
        match self {
            UserLoad::Threads(_) => None,
            UserLoad::Process(local) => local.lost(),
        }
    }
}

impl<B: RunAccounting> RunningLoad for UserLoad<B> {
    type Accounting = B;

    fn stop(self) -> Result<DriveSummary<B>, Abort> {
        match self {
            UserLoad::Threads(driver) => Ok(driver.stop()),
            UserLoad::Process(local) => Ok(local.stop()?),
        }
    }
}
