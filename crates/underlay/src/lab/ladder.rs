//! The ladder of virtual users that a run climbs, and how time goes by on it: second by second.
//!
//! Each second everything the load generator did is written to the record, and the server and the storage are monitored:
//! what is scheduled is carried out, and a failure ends the run with its cause. A [`Site`] says what that is: the ladder
//! knows neither servers nor storage. Which rungs follow each other is decided in `climb`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use underlay_core::{Nanos, Resource};
use underlay_driver::{DriveTick, Slowdown};
use underlay_record::conventions::{CONNECTION_WAIT, DISPATCH_LAG, histogram_scope};
use underlay_record::{Interval, PhaseKind, TransactionTick};

use crate::lab::abort::{Abort, During};
use crate::lab::causal_check::{CausalSpec, Changeable};
use crate::lab::event::{Event, Observer};
use crate::lab::generator::LoadGenerator;
use crate::lab::interrupt;
use crate::lab::mix::MixChanges;
use crate::lab::phases::Phases;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::DriverGauge;
use crate::lab::searched::Searched;

pub use crate::lab::window::{Second, Window};

/// Where load runs, as the ladder sees it: what is scheduled, recorded and watched there beside the load itself.
pub trait Site {
    /// A phase of the ladder begins.
    fn phase_began(&mut self, kind: PhaseKind, users: u32);

    /// A phase of the ladder has ended.
    fn phase_ended(&mut self, _kind: PhaseKind, _users: u32) {}

    /// When there is next something to do.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    /// Carries out what is due. What takes long calls `meanwhile` now and then.
    fn carry_out_due(
        &mut self,
        _observer: &mut dyn Observer,
        _meanwhile: &mut dyn FnMut() -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        Ok(())
    }

    /// Writes what happened there in `interval`, which has just ended.
    fn write_interval(&mut self, _interval: Interval) -> Result<(), Abort> {
        Ok(())
    }

    /// What can be changed there for a causal check.
    fn changeable(&self) -> Vec<Changeable> {
        Vec::new()
    }

    /// Changes a resource by a factor of its service time and nothing else; `None` = everything is as the design says.
    fn change(&mut self, _change: Option<(Resource, f64)>) -> Result<(), Abort> {
        Ok(())
    }

    /// There is no load any more: what lasts as long as it is over now.
    fn load_ended(&mut self, _observer: &mut dyn Observer) -> Result<(), Abort> {
        Ok(())
    }

    /// Whether the storage has nothing to copy, and no copy misses anything.
    fn is_resync_done(&mut self) -> Result<bool, Abort> {
        Ok(true)
    }

    /// What is broken there, if that ends the run.
    fn check_health(&mut self) -> Result<(), Abort> {
        Ok(())
    }
}

/// Everything the ladder looks at.
pub struct Ladder<'a> {
    /// The run in the record.
    pub log: RunLog<'a>,
    /// The load generator, with no user active.
    pub driver: &'a dyn LoadGenerator,
    /// The rate of an open loop when it begins.
    pub first_rate: f64,
    /// For the sampler of the load generator.
    pub gauge: &'a DriverGauge,
    /// The causal check that this run is to make after the last rung.
    pub causal: Option<CausalSpec>,
    /// Changes of the mix.
    pub mix: MixChanges<'a>,
    /// Where it runs.
    pub site: &'a mut dyn Site,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
    /// What was measured so far, also when the climb ends early.
    pub measured: &'a mut Measured,
}

/// What was measured in a run.
#[derive(Default)]
pub struct Measured {
    /// Measured windows in their order; the last one may have been cut short.
    pub windows: Vec<Window>,
    /// The search for a rate, if there was one.
    pub search: Option<Searched>,
    /// Transactions that have ended since the run's origin, whenever.
    pub(super) ended: u64,
    /// CPU time of the load generator's threads at the last tick.
    cpu_ns: u64,
}

/// Users and headline of a rung.
pub type Rung = (u32, f64);

impl Measured {
    /// CPU time of the load generator's threads at the last tick.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// The rungs that were measured to their end.
    pub fn rungs(&self) -> Vec<Rung> {
        let complete = self.windows.iter().filter(|window| window.is_complete);
        complete.map(|window| (window.users, window.tick.headline_rate())).collect()
    }
}

impl Ladder<'_> {
    /// Changes one resource, or none, for a causal check.
    pub(super) fn change(&mut self, change: Option<(Resource, f64)>) -> Result<(), Abort> {
        let slowdown = match change {
            Some((Resource::Client, factor)) => Some(Slowdown { cpu: factor, ..Slowdown::NONE }),
            Some((Resource::Connections, factor)) => {
                Some(Slowdown { connections: factor, ..Slowdown::NONE })
            }
            _ => None,
        };
        self.driver.set_slowdown(slowdown.unwrap_or(Slowdown::NONE));
        self.site.change(change.filter(|_| slowdown.is_none()))
    }

    /// Sets the rate of the open loop.
    pub(super) fn offer(&self, rate_per_second: f64) -> Result<(), Abort> {
        self.driver.set_rate(rate_per_second).during("set the rate of the load")
    }

    pub(super) fn phase<T>(
        &mut self,
        kind: PhaseKind,
        users: u32,
        expected: Nanos,
        act: impl FnOnce(&mut Self) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let mut phases = Phases::new(self.log);
        let phase = phases.begin(kind, Some(users), Some(expected), self.observer)?;
        self.mix.phase_began(kind, users);
        self.site.phase_began(kind, users);
        let result = act(self);
        self.site.phase_ended(kind, users);
        phases.end(phase, &result)?;
        result
    }

    /// Lets `length` go by, second by second.
    pub(super) fn pass_seconds(&mut self, length: Nanos) -> Result<(), Abort> {
        self.pass(length, Duration::from_secs(1), |_| {}, |_| true)
    }

    /// Lets at most `length` go by in ticks of `tick_length`, with everything scheduled being carried out; `take` is given each
    /// tick, and ends it by `false`.
    pub(super) fn pass(
        &mut self,
        length: Nanos,
        tick_length: Duration,
        steer: impl FnMut(&Self),
        take: impl FnMut(DriveTick) -> bool,
    ) -> Result<(), Abort> {
        self.flush()?;
        self.advance(length, tick_length, steer, take)
    }

    /// Writes what happened since the last phase, to which it belongs, before the next one counts.
    pub(super) fn flush(&mut self) -> Result<(), Abort> {
        self.write_tick(&self.driver.tick())
    }

    pub(super) fn advance(
        &mut self,
        length: Nanos,
        tick_length: Duration,
        mut steer: impl FnMut(&Self),
        mut take: impl FnMut(DriveTick) -> bool,
    ) -> Result<(), Abort> {
        // Lengths are design time, moments are those of the host.
        let dilation = self.log.dilation;
        let tick_length = dilation.wall_duration(tick_length);
        let began = Instant::now();
        let end = began + dilation.wall_duration(length.into());
        let mut next = began;
        while next < end {
            next = (next + tick_length).min(end);
            let mut outcome = Ok(());
            loop {
                steer(self);
                let due = [self.site.next_due(), self.mix.next_due()];
                let due = due.into_iter().flatten().min().unwrap_or(next);
                let step = next.min(due).min(Instant::now() + Duration::from_millis(200));
                if !interrupt::sleep_until(step) {
                    outcome = Err(Abort::Interrupted);
                    break;
                }
                self.carry_out_due(&mut take)?;
                if Instant::now() >= next || self.driver.has_ended() {
                    break;
                }
            }
            let tick = self.driver.tick();
            self.write_tick(&tick)?;
            self.site.check_health()?;
            if let Some(lost) = self.driver.lost() {
                return Err(Abort::Failed(lost));
            }
            let denied = denial(&tick).map(str::to_string);
            let goes_on = take(tick);
            outcome?;
            // Each further attempt would be refused as well.
            if let Some(denied) = denied {
                return Err(Abort::Failed(format!("the transactions are not allowed: {denied}")));
            }
            if !goes_on || self.driver.has_ended() {
                break;
            }
        }
        Ok(())
    }

    fn write_tick(&mut self, tick: &DriveTick) -> Result<(), Abort> {
        self.measured.cpu_ns = tick.cpu_ns;
        self.measured.ended += tick.types.iter().map(|counts| counts.ended()).sum::<u64>();
        if tick.length() == Nanos::ZERO {
            self.gauge.set(tick);
            return Ok(());
        }
        write_all(self.log, (self.driver, self.gauge), tick)?;
        self.site.write_interval(Interval { begin: tick.begin, end: tick.end })?;
        let seconds = tick.length().as_secs_f64();
        self.observer.notice(&Event::Second {
            headline: tick.headline_rate(),
            counted: tick.shape.headline.counted,
            counted_per_second: tick.headline_count() as f64 / seconds,
            unit: tick.shape.headline.unit,
            users: tick.users.active,
            response_p99: tick.headline_response().quantile(0.99).map(Nanos),
            errors: tick.errors(),
        });
        Ok(())
    }

    /// Carries out what is due. Hands over the ticks that were written while that took long.
    fn carry_out_due(&mut self, take: &mut impl FnMut(DriveTick) -> bool) -> Result<(), Abort> {
        self.mix.carry_out_due(self.driver, self.observer)?;
        let (driver, gauge, log) = (self.driver, self.gauge, self.log);
        let second = log.dilation.wall_duration(Duration::from_secs(1));
        let mut next = Instant::now() + second;
        // The site is busy: what it did is in the tick after.
        let mut meanwhile = || {
            if Instant::now() < next {
                return Ok(());
            }
            next += second;
            let tick = driver.tick();
            let written = write_all(log, (driver, gauge), &tick);
            take(tick);
            written
        };
        self.site.carry_out_due(self.observer, &mut meanwhile)
    }
}

/// What the users of a run have no right to, in the server's words.
pub fn denial(tick: &DriveTick) -> Option<&str> {
    let sample = tick.samples.iter().find(|sample| sample.is_denial)?;
    Some(&sample.message)
}

/// Writes what the load generator did in one tick, and what it did to each of several databases.
fn write_all(
    log: RunLog<'_>,
    (driver, gauge): (&dyn LoadGenerator, &DriverGauge),
    tick: &DriveTick,
) -> Result<(), Abort> {
    gauge.set(tick);
    driver.take_parts(&mut |part| {
        part.gauge.set(part.tick);
        write_tick(log.of(part.database), part.tick)
    })?;
    write_tick(log, tick)
}

/// Writes what the load generator did in one tick.
pub fn write_tick(log: RunLog<'_>, tick: &DriveTick) -> Result<(), Abort> {
    let interval = Interval { begin: tick.begin, end: tick.end };
    let mut recorder = log.recorder.lock();
    for (name, counts) in tick.named() {
        let errors: BTreeMap<String, u64> = counts
            .errors
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| (class.as_str().to_string(), count))
            .collect();
        recorder
            .transactions(
                log.run,
                &TransactionTick {
                    interval,
                    transaction: log.recorded(name),
                    committed: counts.committed,
                    rolled_back: counts.rolled_back,
                    failed: counts.failed,
                    unknown: counts.unknown,
                    errors,
                    retries: counts.retries,
                    response: (&counts.response).into(),
                    service: (&counts.service).into(),
                },
            )
            .during("write the record")?;
    }
    let mut of_driver = vec![(DISPATCH_LAG, &tick.dispatch_lag)];
    let waits = tick.connection_waits();
    if !waits.is_empty() {
        of_driver.push((CONNECTION_WAIT, &waits));
    }
    for (name, histogram) in of_driver {
        recorder
            .histogram(log.run, interval, histogram_scope::DRIVER, &log.recorded(name), histogram)
            .during("write the record")?;
    }
    Ok(())
}
