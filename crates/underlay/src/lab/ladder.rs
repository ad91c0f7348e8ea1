//! Driving one run: warm up with rising load, then climb the ladder of virtual users, second by second.
//!
//! Each second everything the load generator did is written to the record, the datastore's latencies
//! with it, and the run's health is looked at: a crashed database, a lost mount or a full volume ends the
//! run with its cause.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use underlay_core::{Bytes, Nanos};
use underlay_database::managed::{Liveness, Server};
use underlay_datastore::{DatastoreError, MountedVolume};
use underlay_driver::DriveTick;
use underlay_host::free_space;
use underlay_record::conventions::{DISPATCH_LAG, histogram_scope};
use underlay_record::{Interval, PhaseKind, RunId, TransactionTick};
use underlay_study::{ProcedurePlan, SearchPlan};
use underlay_telemetry::Collector;

use crate::lab::abort::{Abort, During};
use crate::lab::background::Background;
use crate::lab::event::{Event, Observer};
use crate::lab::faults::{Faults, Surroundings};
use crate::lab::generator::LoadGenerator;
use crate::lab::interrupt;
use crate::lab::mix::MixChanges;
use crate::lab::phases::Phases;
use crate::lab::rate_search;
use crate::lab::recording::SharedRecorder;
use crate::lab::samplers::{DriverGauge, SharedDatastore};
use crate::lab::storage_record;

/// Less free space than this on a volume of the database ends the run: the database would soon stop by
/// itself, with less to learn from.
const FREE_SPACE_MIN: Bytes = Bytes::from_mib(16);

/// Everything the ladder looks at.
pub struct Ladder<'a, 'b> {
    /// Zero of all times.
    pub origin: Instant,
    /// The record and the run in it.
    pub recorder: &'a SharedRecorder,
    /// Which run.
    pub run: RunId,
    /// The load generator, with no user active.
    pub driver: &'a dyn LoadGenerator,
    /// The rate of an open loop when it begins.
    pub first_rate: f64,
    /// For the sampler of the load generator.
    pub gauge: &'a DriverGauge,
    /// The database server.
    pub server: &'a mut Server,
    /// The datastore under it.
    pub datastore: &'a SharedDatastore,
    /// What the study breaks.
    pub faults: &'a mut Faults<'b>,
    /// Changes of the mix.
    pub mix: &'a mut MixChanges<'b>,
    /// What runs beside the users.
    pub background: &'a mut Background<'b>,
    /// Is told of restarted servers.
    pub collector: &'a Collector,
    /// Its volumes.
    pub volumes: &'a [MountedVolume],
    /// Who is told.
    pub observer: &'a mut dyn Observer,
}

/// Users and headline of a rung.
pub type Rung = (u32, f64);

impl Ladder<'_, '_> {
    /// Warms up and climbs. Rungs that were measured are in `rungs` even when the climb ends early.
    pub fn climb(&mut self, procedure: &ProcedurePlan, rungs: &mut Vec<Rung>) -> Result<(), Abort> {
        let top = procedure.users.last().copied().unwrap_or(1);
        self.phase(PhaseKind::Settle, 0, procedure.settle, |ladder| {
            ladder.seconds(procedure.settle).map(|_| ())
        })?;
        self.phase(PhaseKind::WarmUp, top, procedure.warm_up, |ladder| {
            ladder.rise(top, procedure.warm_up).map(|_| ())
        })?;
        for users in &procedure.users {
            self.phase(PhaseKind::RampUp, *users, procedure.ramp_up, |ladder| {
                ladder.driver.set_users(*users);
                ladder.seconds(procedure.ramp_up).map(|_| ())
            })?;
            if let Some(search) = &procedure.search
                && !self.search(search, procedure, *users)?
            {
                continue;
            }
            let headline = self.phase(PhaseKind::Measure, *users, procedure.measure, |ladder| {
                ladder.seconds(procedure.measure)
            })?;
            rungs.push((*users, headline));
        }
        Ok(())
    }

    /// Lets a job of so many sessions run until it is done. What it came to is known when it has been stopped: the window that
    /// it was watched in is longer than the job.
    pub fn wait_for_job(&mut self, sessions: u32, procedure: &ProcedurePlan) -> Result<(), Abort> {
        self.phase(PhaseKind::Settle, 0, procedure.settle, |ladder| {
            ladder.seconds(procedure.settle).map(|_| ())
        })?;
        let expected = procedure.measure;
        self.phase(PhaseKind::Measure, sessions, expected, |ladder| {
            let mut is_begun = false;
            ladder.seconds_with(expected, |ladder| {
                if !std::mem::replace(&mut is_begun, true) {
                    ladder.driver.set_users(sessions);
                }
            })
        })?;
        if !self.driver.has_ended() {
            return Err(Abort::Failed(format!(
                "the job was not done within {expected}; allow it more by procedure.measure, or make it smaller"
            )));
        }
        Ok(())
    }

    /// Searches for the highest rate that meets the target, and offers it. Says whether there is one.
    fn search(
        &mut self,
        search: &SearchPlan,
        procedure: &ProcedurePlan,
        users: u32,
    ) -> Result<bool, Abort> {
        let expected = Nanos(search.settle.0 + search.measure.0);
        let rate = self.phase(PhaseKind::Search, users, expected, |ladder| {
            rate_search::carry_out(ladder, search)
        })?;
        let Some(rate) = rate else { return Ok(false) };
        self.phase(PhaseKind::RampUp, users, procedure.ramp_up, |ladder| {
            ladder.offer(rate)?;
            ladder.seconds(procedure.ramp_up).map(|_| ())
        })?;
        Ok(true)
    }

    /// Sets the rate of the open loop.
    pub(super) fn offer(&self, rate_per_second: f64) -> Result<(), Abort> {
        self.driver.set_rate(rate_per_second).during("set the rate of the load")
    }

    fn phase<T>(
        &mut self,
        kind: PhaseKind,
        users: u32,
        expected: Nanos,
        act: impl FnOnce(&mut Self) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let mut phases = Phases::new(self.recorder, self.run, self.origin);
        let phase = phases.begin(kind, Some(users), Some(expected), self.observer)?;
        self.faults.phase_began(kind, users);
        self.mix.phase_began(kind, users);
        self.background.phase_began(kind, users);
        let result = act(self);
        phases.end(phase, &result)?;
        result
    }

    /// Load rising from one user to `top`, evenly over `length`.
    fn rise(&mut self, top: u32, length: Nanos) -> Result<f64, Abort> {
        let began = Instant::now();
        let mut active = 0;
        self.seconds_with(length, |ladder| {
            let share = began.elapsed().as_secs_f64() / length.as_secs_f64().max(f64::MIN_POSITIVE);
            // The last quarter of the warm-up runs at full load.
            let users = ((f64::from(top) * share / 0.75).ceil() as u32).clamp(1, top);
            if users != active {
                active = users;
                ladder.driver.set_users(users);
            }
        })
    }

    /// Lets `length` go by, second by second; returns the headline over it.
    fn seconds(&mut self, length: Nanos) -> Result<f64, Abort> {
        self.seconds_with(length, |_| {})
    }

    fn seconds_with(&mut self, length: Nanos, steer: impl FnMut(&Self)) -> Result<f64, Abort> {
        let (mut headline, mut counted) = (0u64, Nanos::ZERO);
        self.pass(length, Duration::from_secs(1), steer, |tick| {
            headline += tick.headline_count();
            counted += tick.length();
            true
        })?;
        Ok(self.driver.shape().headline.rate(headline, counted))
    }

    /// Lets at most `length` go by in ticks of `tick_length`, with everything scheduled being carried out; `take` is given each
    /// tick, and ends it by `false`.
    pub(super) fn pass(
        &mut self,
        length: Nanos,
        tick_length: Duration,
        mut steer: impl FnMut(&Self),
        mut take: impl FnMut(DriveTick) -> bool,
    ) -> Result<(), Abort> {
        let began = Instant::now();
        let end = began + Duration::from(length);
        // What happened since the last phase belongs to it: write it before this one counts.
        self.write_tick(&self.driver.tick())?;
        let mut next = began;
        while next < end {
            next = (next + tick_length).min(end);
            loop {
                steer(self);
                let due = [self.faults.next_due(), self.background.next_due(), self.mix.next_due()];
                let due = due.into_iter().flatten().min().unwrap_or(next);
                let step = next.min(due).min(Instant::now() + Duration::from_millis(200));
                if !interrupt::sleep_until(step) {
                    return Err(Abort::Interrupted);
                }
                self.background.carry_out_due(self.observer)?;
                self.mix.carry_out_due(self.driver, self.observer)?;
                self.carry_out_faults(&mut take)?;
                if Instant::now() >= next || self.driver.has_ended() {
                    break;
                }
            }
            let tick = self.driver.tick();
            self.write_tick(&tick)?;
            self.look_at_health()?;
            if !take(tick) || self.driver.has_ended() {
                break;
            }
        }
        Ok(())
    }

    fn write_tick(&mut self, tick: &DriveTick) -> Result<(), Abort> {
        self.gauge.set(tick);
        if tick.length() == Nanos::ZERO {
            return Ok(());
        }
        write_tick(self.recorder, self.run, tick)?;
        let interval = Interval { begin: tick.begin, end: tick.end };
        storage_record::write(self.recorder, self.run, self.datastore, interval, self.origin)?;
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

    /// Stops the work beside the users.
    pub fn stop_background(&mut self) -> Result<(), Abort> {
        self.background.stop(self.observer)
    }

    /// Ends every fault that is still in force.
    pub fn mend_faults(&mut self) -> Result<(), Abort> {
        self.faults.mend_all(&mut Surroundings {
            server: self.server,
            datastore: self.datastore,
            collector: self.collector,
            observer: self.observer,
            meanwhile: &mut || Ok(()),
        })
    }

    /// Carries out the faults that are due. Hands over the ticks that were written while the database was brought back.
    fn carry_out_faults(&mut self, take: &mut impl FnMut(DriveTick) -> bool) -> Result<(), Abort> {
        let Ladder { faults, server, datastore, collector, observer, .. } = self;
        let (driver, gauge, recorder, run) = (self.driver, self.gauge, self.recorder, self.run);
        let mut next = Instant::now() + Duration::from_secs(1);
        // The datastore is busy mounting: what it did is in the tick after.
        let mut meanwhile = || {
            if Instant::now() < next {
                return Ok(());
            }
            next += Duration::from_secs(1);
            let tick = driver.tick();
            gauge.set(&tick);
            let written = write_tick(recorder, run, &tick);
            take(tick);
            written
        };
        faults.carry_out_due(&mut Surroundings {
            server,
            datastore,
            collector,
            observer: &mut **observer,
            meanwhile: &mut meanwhile,
        })
    }

    fn look_at_health(&mut self) -> Result<(), Abort> {
        if self.faults.is_down() {
            return Ok(());
        }
        // The datastore first: when it is gone the database dies of it, and the cause is the former.
        let health = self.datastore.lock().unwrap_or_else(PoisonError::into_inner).health();
        if let Err(error) = health {
            let failure = Abort::failed("the datastore failed", &error);
            return match error {
                DatastoreError::ReadOnly { .. } | DatastoreError::LostMount { .. } => {
                    self.faults.excuse(failure)
                }
                _ => Err(failure),
            };
        }
        if let Liveness::Died(log) =
            self.server.liveness().during("look after the database server")?
        {
            return self.faults.excuse(Abort::Failed(format!(
                "the database server ended by itself: {}",
                log.headline()
            )));
        }
        for volume in self.volumes {
            let free = free_space(&volume.path).during("look at the free space of a volume")?;
            if free < FREE_SPACE_MIN {
                return Err(Abort::Failed(format!(
                    "the volume `{}` is full: {free} of {} left; give it more capacity, or less data",
                    volume.name, volume.capacity
                )));
            }
        }
        Ok(())
    }
}

/// Writes what the load generator did in one tick.
pub fn write_tick(recorder: &SharedRecorder, run: RunId, tick: &DriveTick) -> Result<(), Abort> {
    let interval = Interval { begin: tick.begin, end: tick.end };
    let mut recorder = recorder.lock();
    for (name, counts) in tick.named() {
        let errors: BTreeMap<String, u64> = counts
            .errors
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| (class.as_str().to_string(), count))
            .collect();
        recorder
            .transactions(
                run,
                &TransactionTick {
                    interval,
                    transaction: name.to_string(),
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
    recorder
        .histogram(run, interval, histogram_scope::DRIVER, DISPATCH_LAG, &tick.dispatch_lag)
        .during("write the record")
}
