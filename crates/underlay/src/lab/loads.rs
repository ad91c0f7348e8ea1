//! The loads of several databases as one: they begin, rise and are measured together, and what they did adds up.
//!
//! Jobs of databases that have no users begin with the users of the others. Their results are counted for each of them and
//! are in no total: it is another quantity.

use std::cell::{Cell, RefCell};

use underlay_core::Nanos;
use underlay_driver::{
    Delivery, DeliveryVerdict, DriveError, DriveSummary, DriveTick, Mix, Slowdown,
};
use underlay_workload::transactional::Shape;

use crate::lab::abort::Abort;
use crate::lab::generator::{LoadGenerator, Part};
use crate::lab::samplers::DriverGauge;

/// The loads of all databases of a run. At least one has users, and all that have users have the same kind of workload.
pub struct Loads<'a> {
    loads: Vec<Load<'a>>,
    /// Counts of ticks that were not taken yet: position of the load, and its part.
    parts: RefCell<Vec<(usize, DriveTick)>>,
}

/// The load of one of them.
pub struct Load<'a> {
    /// Name of the database.
    pub database: &'a str,
    /// What loads it.
    pub generator: &'a dyn LoadGenerator,
    /// Whether that is a job, which ends by itself.
    pub is_job: bool,
    /// When a tick first found that the job was done.
    pub ended: Cell<Option<Nanos>>,
    /// For the sampler of its load generator.
    pub gauge: DriverGauge,
}

impl<'a> Loads<'a> {
    /// These loads, of which there is at least one.
    pub fn new(loads: Vec<Load<'a>>) -> Loads<'a> {
        Loads { loads, parts: RefCell::default() }
    }

    /// Each of them.
    pub fn each_load(&self) -> impl Iterator<Item = &Load<'a>> {
        self.loads.iter()
    }

    fn users(&self) -> impl Iterator<Item = &'a dyn LoadGenerator> {
        self.loads.iter().filter(|load| !load.is_job).map(|load| load.generator)
    }

    fn jobs(&self) -> impl Iterator<Item = &Load<'a>> {
        self.loads.iter().filter(|load| load.is_job)
    }
}

impl LoadGenerator for Loads<'_> {
    fn shape(&self) -> &'static Shape {
        let mut users = self.users();
        users.next().map_or_else(|| self.loads[0].generator.shape(), |users| users.shape())
    }

    fn tick(&self) -> DriveTick {
        let mut ticks: Vec<DriveTick> =
            self.loads.iter().map(|load| load.generator.tick()).collect();
        align(ticks.iter_mut());
        let loads = self.loads.iter().zip(&ticks);
        let total = total(loads.filter(|(load, _)| !load.is_job).map(|(_, tick)| tick));
        for job in self.jobs().filter(|job| job.ended.get().is_none()) {
            job.ended.set(job.generator.has_ended().then_some(total.end));
        }
        self.parts.borrow_mut().extend(ticks.into_iter().enumerate());
        total
    }

    fn set_users(&self, users: u32) {
        self.users().for_each(|load| load.set_users(users));
        if users > 0 {
            self.jobs().for_each(|job| job.generator.set_users(users));
        }
    }

    fn set_rate(&self, rate_per_second: f64) -> Result<(), DriveError> {
        self.users().try_for_each(|load| load.set_rate(rate_per_second))
    }

    fn set_mix(&self, mix: Mix) -> Result<(), DriveError> {
        self.users().try_for_each(|load| load.set_mix(mix.clone()))
    }

    fn set_slowdown(&self, slowdown: Slowdown) {
        self.users().for_each(|load| load.set_slowdown(slowdown));
    }

    fn has_ended(&self) -> bool {
        self.users().all(|load| load.has_ended())
    }

    fn take_parts(&self, take: &mut dyn FnMut(Part<'_>) -> Result<(), Abort>) -> Result<(), Abort> {
        let parts = std::mem::take(&mut *self.parts.borrow_mut());
        for (position, tick) in parts.iter().filter(|(_, tick)| tick.length() > Nanos::ZERO) {
            let Load { database, gauge, .. } = &self.loads[*position];
            take(Part { database, gauge, tick })?;
        }
        Ok(())
    }

    fn lost(&self) -> Option<String> {
        let lost = |load: &Load<'_>| Some(format!("{}: {}", load.database, load.generator.lost()?));
        self.loads.iter().find_map(lost)
    }
}

/// Generators are asked one after the other. Their counts are those of one tick, so that they add up to its total.
fn align<'t>(ticks: impl Iterator<Item = &'t mut DriveTick>) {
    let mut first = None;
    for tick in ticks {
        (tick.begin, tick.end) = *first.get_or_insert((tick.begin, tick.end));
    }
}

/// What all databases did within one tick.
fn total<'t>(ticks: impl IntoIterator<Item = &'t DriveTick>) -> DriveTick {
    let mut ticks = ticks.into_iter();
    let mut total = ticks.next().cloned().unwrap_or_default();
    ticks.for_each(|tick| total.add_beside(tick));
    total
}

/// What the load generators of all databases that have users know, as one: `is_job` says which have not. The last ticks are made to
/// be of the same time, as all before.
pub fn total_of(summaries: &mut [DriveSummary<()>], is_job: &[bool]) -> DriveSummary<()> {
    align(summaries.iter_mut().map(|summary| &mut summary.last_tick));
    let of_users = summaries.iter().zip(is_job).filter(|(_, is_job)| !**is_job);
    let summaries: Vec<&DriveSummary<()>> = of_users.map(|(summary, _)| summary).collect();
    let mut outages: Vec<_> = summaries.iter().flat_map(|it| it.outages.clone()).collect();
    outages.sort_by_key(|outage| outage.first_error);
    let commits = summaries.first().map(|first| &first.commits[..]).unwrap_or_default();
    let is_of_all =
        |commit: &&(&'static str, _)| summaries.iter().all(|it| it.commits.contains(commit));
    DriveSummary {
        last_tick: total(summaries.iter().map(|summary| &summary.last_tick)),
        totals: total(summaries.iter().map(|summary| &summary.totals)),
        accounting: (),
        outages,
        // A silence of one database is none of all of them.
        longest_silence: None,
        commits_unknown: summaries.iter().map(|summary| summary.commits_unknown).sum(),
        delivery: delivered(&summaries),
        commits: commits.iter().filter(is_of_all).copied().collect(),
    }
}

/// What was delivered of what all databases were asked; not delivered if one of them was not.
fn delivered(summaries: &[&DriveSummary<()>]) -> Option<Delivery> {
    let each: Vec<Delivery> = summaries.iter().filter_map(|summary| summary.delivery).collect();
    let sum = |of: fn(&Delivery) -> u64| each.iter().map(of).sum::<u64>();
    let (requested, completed) = (sum(|it| it.requested), sum(|it| it.completed));
    let missed = each.iter().map(|it| it.shortfall * it.requested as f64).sum::<f64>();
    let verdict = each.iter().map(|it| it.verdict).find(|it| *it != DeliveryVerdict::Delivered);
    (!each.is_empty()).then(|| Delivery {
        requested,
        completed,
        overflowed: sum(|it| it.overflowed),
        queued: sum(|it| it.queued),
        shortfall: missed / requested.max(1) as f64,
        verdict: verdict.unwrap_or(DeliveryVerdict::Delivered),
    })
}

#[cfg(test)]
mod tests {
    use super::{Load, Loads};
    use crate::lab::generator::LoadGenerator;
    use crate::lab::samplers::DriverGauge;
    use std::cell::Cell;
    use underlay_core::Nanos;
    use underlay_driver::{DriveError, DriveTick, Mix, Slowdown};
    use underlay_workload::transactional::Shape;

    /// Completes one transaction of the first type per user and tick.
    #[derive(Default)]
    struct Users {
        active: Cell<u32>,
        last: Cell<u64>,
        is_done: Cell<bool>,
    }

    impl LoadGenerator for Users {
        fn shape(&self) -> &'static Shape {
            &underlay_workload::tpcc::SHAPE
        }

        fn tick(&self) -> DriveTick {
            let begin = self.last.get();
            self.last.set(begin + 1000 + u64::from(self.active.get()));
            let mut tick = DriveTick::empty(self.shape(), Nanos(begin), Nanos(self.last.get()));
            tick.users.active = self.active.get();
            tick.types[0].committed = u64::from(self.active.get());
            tick.types[0].response.record_n(100, u64::from(self.active.get()));
            tick
        }

        fn set_users(&self, users: u32) {
            self.active.set(users);
        }

        fn set_rate(&self, _: f64) -> Result<(), DriveError> {
            Ok(())
        }

        fn set_mix(&self, _: Mix) -> Result<(), DriveError> {
            Ok(())
        }

        fn set_slowdown(&self, _: Slowdown) {}

        fn has_ended(&self) -> bool {
            self.is_done.get()
        }
    }

    fn load<'a>(database: &'a str, generator: &'a Users, is_job: bool) -> Load<'a> {
        let (ended, gauge) = (Cell::default(), DriverGauge::default());
        Load { database, generator, is_job, ended, gauge }
    }

    #[test]
    fn a_job_begins_with_the_users_and_is_in_no_total() {
        let (users, job) = (Users::default(), Users::default());
        let loads = Loads::new(vec![load("job", &job, true), load("a", &users, false)]);
        loads.set_users(0);
        assert_eq!(job.active.get(), 0);
        loads.set_users(4);
        job.active.set(7);
        let total = loads.tick();
        assert_eq!((total.types[0].committed, total.users.active), (4, 4));
        let mut parts = Vec::new();
        let mut take = |part: super::Part<'_>| {
            parts.push((part.database.to_string(), part.tick.types[0].committed));
            Ok(())
        };
        loads.take_parts(&mut take).expect("nothing fails");
        assert_eq!(parts, [("job".to_string(), 7), ("a".to_string(), 4)]);
        // Its end is known, and ends no load.
        assert!(loads.each_load().all(|load| load.ended.get().is_none()));
        job.is_done.set(true);
        let end = loads.tick().end;
        assert!(!loads.has_ended());
        assert_eq!(loads.each_load().map(|load| load.ended.get()).next(), Some(Some(end)));
        // The users leave, and the job stays.
        loads.set_users(0);
        assert_eq!((users.active.get(), job.active.get()), (0, 7));
    }

    #[test]
    fn what_each_database_did_adds_up_to_the_total() {
        let (first, second) = (Users::default(), Users::default());
        let loads = Loads::new(vec![load("a", &first, false), load("b", &second, false)]);
        loads.set_users(3);
        second.set_users(5);
        let total = loads.tick();
        assert_eq!((total.types[0].committed, total.users.active), (8, 8));
        assert_eq!(total.types[0].response.count(), 8);
        let mut parts = Vec::new();
        let mut take = |part: super::Part<'_>| {
            assert_eq!((part.tick.begin, part.tick.end), (total.begin, total.end));
            parts.push((part.database.to_string(), part.tick.types[0].committed));
            Ok(())
        };
        loads.take_parts(&mut take).expect("nothing fails");
        loads.take_parts(&mut take).expect("they were taken");
        assert_eq!(parts, [("a".to_string(), 3), ("b".to_string(), 5)]);
    }
}
