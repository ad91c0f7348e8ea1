//! The background work of a plan in virtual time: what a scenario has of it, where its files are,
//! when it begins, and what of it is refused.
//!
//! Files are at the end of their volumes, behind the database, which has the same room in all
//! designs of a study. Not here: how the work goes, which the engine model knows.

use std::collections::BTreeSet;
use underlay_core::{Bytes, Nanos};
use underlay_engine::{BackgroundSpec, CopySpec, DatabaseSpec, LoadSpec, VolumeUse, VolumeWork};
use underlay_study::{
    BackgroundPlan, BackgroundWork, DatastoreKind, DesignPlan, FaultPhase, Plan, VolumePlan,
};
use underlay_workload::block::Pace;

/// Files begin at multiples of this.
const ALIGNMENT: u64 = 1 << 20;
/// Work that begins so soon in a phase is at work in all of it.
const AT_ONCE: Nanos = Nanos::from_secs(1);

/// The background work of a design by its position in the plan.
fn of_design(plan: &Plan, position: usize) -> impl Iterator<Item = &BackgroundPlan> {
    plan.background.iter().filter(move |work| work.designs.contains(&position))
}

/// Why the background work of a plan cannot be simulated.
pub(super) fn problems(plan: &Plan, found: &mut BTreeSet<String>) {
    for work in &plan.background {
        let name = &work.name;
        if work.phase == FaultPhase::Settle {
            found.insert(format!(
                "background work `{name}` begins in `settle`, before users do, which is not \
                 simulated"
            ));
        }
        let BackgroundWork::Load { profile, volumes, working_set } = &work.work else { continue };
        let misfits = profile.problems(*working_set).into_iter();
        found.extend(misfits.map(|problem| format!("background work `{name}`: {problem}")));
        let at_once = profile.jobs.iter().any(|job| job.pace == Pace::CLOSED);
        let designs = work.designs.iter().filter_map(|position| plan.designs.get(*position));
        for design in designs.filter(|design| at_once && has_instant(design, volumes)) {
            found.insert(format!(
                "background work `{name}`: on the devices of design `{}`, which have no delay, no \
                 virtual time passes in a closed loop",
                design.name
            ));
        }
    }
}

/// Whether one of the volumes is on a device without delay.
fn has_instant(design: &DesignPlan, volumes: &[String]) -> bool {
    let DatastoreKind::Emulated { devices, .. } = &design.kind else { return false };
    let is_named = |volume: &&VolumePlan| volumes.contains(&volume.name);
    let mut devices = design.volumes.iter().filter(is_named).filter_map(|volume| {
        let is_it = |(name, _): &&(String, _)| Some(name) == volume.device.as_ref();
        devices.iter().find(is_it).or(devices.first())
    });
    devices.any(|(_, profile)| profile.is_instant())
}

/// A file of background work on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WorkFile<'a> {
    work: &'a str,
    offset: Bytes,
    length: Bytes,
}

/// The files on a volume in a design, from its end downwards.
fn files<'a>(plan: &'a Plan, position: usize, volume: &VolumePlan) -> Vec<WorkFile<'a>> {
    let mut end = volume.capacity.0;
    let mut files = Vec::new();
    for work in of_design(plan, position) {
        let of_work = work.work.space();
        for (_, length) in of_work.into_iter().filter(|(name, _)| *name == volume.name) {
            end = end.saturating_sub(length.0) / ALIGNMENT * ALIGNMENT;
            files.push(WorkFile { work: &work.name, offset: Bytes(end), length });
        }
    }
    files
}

/// What a volume has in front of the files of background work, in the design that has most of them.
pub(super) fn room(plan: &Plan, volume: &VolumePlan) -> Bytes {
    let first = |position: usize| files(plan, position, volume).last().map(|file| file.offset);
    (0..plan.designs.len()).filter_map(first).min().unwrap_or(volume.capacity)
}

/// The background work of a design beside its databases.
pub(super) fn background(
    plan: &Plan,
    design: &DesignPlan,
    databases: &[DatabaseSpec],
) -> Vec<BackgroundSpec> {
    let position = plan.designs.iter().position(|it| it.name == design.name);
    let Some(position) = position else { return Vec::new() };
    let works = of_design(plan, position);
    works.map(|work| Mapping { plan, design, position, databases, work }.spec()).collect()
}

/// A piece of background work on its way.
struct Mapping<'a> {
    plan: &'a Plan,
    design: &'a DesignPlan,
    position: usize,
    databases: &'a [DatabaseSpec],
    work: &'a BackgroundPlan,
}

impl Mapping<'_> {
    fn spec(&self) -> BackgroundSpec {
        let (first, work) = match &self.work.work {
            BackgroundWork::Copy(copy) => {
                let work = VolumeWork::Copy(CopySpec {
                    from: self.whole(&copy.from),
                    to: copy.to.as_ref().map(|volume| self.file(volume)),
                    block_bytes: copy.block_size.0 as u32,
                    queue_depth: copy.queue_depth,
                    bytes_per_second: copy.bytes_per_second,
                });
                (Some(&copy.from), work)
            }
            BackgroundWork::Load { profile, volumes, .. } => {
                let on_volume = |volume: &String| {
                    let place = self.file(volume);
                    profile.jobs.iter().map(move |job| LoadSpec { job: job.clone(), place })
                };
                let loads = volumes.iter().flat_map(on_volume).collect();
                (volumes.first(), VolumeWork::Loads(loads))
            }
        };
        // It runs on the machine of the database whose volume it uses, as its requests do.
        let beside = first.and_then(|volume| self.owner(volume)).or(self.databases.first());
        BackgroundSpec {
            name: self.work.name.clone(),
            host: beside.map_or(0, |database| database.host),
            cpu_per_io: beside.map_or(Nanos::ZERO, |database| database.demands.cpu_per_io),
            work,
        }
    }

    /// The database that a volume is of: `oltp-1-data` is of `oltp-1`.
    fn owner(&self, volume: &str) -> Option<&DatabaseSpec> {
        let name = volume.rsplit_once('-').map_or("", |(database, _)| database);
        self.databases.iter().find(|database| database.name == name)
    }

    fn volume(&self, name: &str) -> (usize, &VolumePlan) {
        let mut volumes = self.design.volumes.iter().enumerate();
        let found = volumes.find(|(_, volume)| volume.name == name);
        found.expect("the plan has background work only in designs with its volumes")
    }

    fn whole(&self, name: &str) -> VolumeUse {
        let (volume, VolumePlan { capacity, .. }) = self.volume(name);
        VolumeUse { volume, offset: Bytes::ZERO, length: *capacity }
    }

    /// Its file on a volume.
    fn file(&self, name: &str) -> VolumeUse {
        let (volume, plan) = self.volume(name);
        let mut files = files(self.plan, self.position, plan).into_iter();
        let file = files.find(|file| file.work == self.work.name);
        let file = file.expect("work has a file on each volume that it writes to");
        VolumeUse { volume, offset: file.offset, length: file.length }
    }
}

/// When the background work of a design begins.
#[derive(Clone, Debug, Default)]
pub struct BackgroundSchedule<'a>(Vec<Entry<'a>>);

#[derive(Clone, Debug)]
struct Entry<'a> {
    plan: &'a BackgroundPlan,
    /// When it begins, once its phase has begun.
    begins: Option<Nanos>,
}

/// A piece of background work that begins in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    /// Which, by its number in the scenario.
    pub(super) number: usize,
    /// Since the phase began.
    pub(super) after: Nanos,
    /// For how long at most.
    pub(super) lasts: Option<Nanos>,
}

impl BackgroundSchedule<'_> {
    /// That of a design, by its position in the plan.
    pub fn of(plan: &Plan, position: usize) -> BackgroundSchedule<'_> {
        let works = of_design(plan, position);
        BackgroundSchedule(works.map(|plan| Entry { plan, begins: None }).collect())
    }

    /// What begins in a phase that began at `now`. Phases of a rung come once per rung; work begins
    /// in the first one that it is meant for.
    pub(super) fn phase_began(
        &mut self,
        phase: FaultPhase,
        users: u32,
        now: Nanos,
    ) -> Vec<Beginning> {
        let mut beginnings = Vec::new();
        for (number, Entry { plan, begins }) in self.0.iter_mut().enumerate() {
            let is_meant = plan.phase == phase && plan.users.is_none_or(|rung| rung == users);
            if is_meant && begins.is_none() {
                *begins = Some(now + plan.at);
                beginnings.push(Beginning { number, after: plan.at, lasts: plan.lasts });
            }
        }
        beginnings
    }

    /// Whether work begins or is stopped by the clock some time after `now`: what is measured then
    /// depends on how long the phase is.
    pub(super) fn is_timed(&self, now: Nanos) -> bool {
        self.0.iter().any(|Entry { plan, begins }| {
            let Some(begins) = *begins else { return false };
            let ends = plan.lasts.map(|lasts| begins + lasts);
            begins > now + AT_ONCE || ends.is_some_and(|ends| ends > now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapping::{Assumptions, scenario};
    use super::super::tests::plan;
    use super::{BackgroundSchedule, background, problems, room};
    use std::collections::BTreeSet;
    use underlay_core::{Bytes, Nanos};
    use underlay_engine::{VolumeUse, VolumeWork};
    use underlay_study::{
        BackgroundPlan, BackgroundWork, CopyPlan, FaultPhase, Plan, find_io_profile,
    };

    fn copy() -> BackgroundPlan {
        BackgroundPlan {
            name: "copy".to_string(),
            work: BackgroundWork::Copy(CopyPlan {
                from: "data".to_string(),
                to: Some("backup".to_string()),
                space: Bytes::from_mib(64),
                block_size: Bytes::from_mib(1),
                queue_depth: 4,
                bytes_per_second: Some(1_000_000),
            }),
            at: Nanos::from_secs(1),
            phase: FaultPhase::Measure,
            users: Some(8),
            lasts: None,
            designs: vec![0],
            line: 1,
        }
    }

    fn load(profile: &str) -> BackgroundPlan {
        let profile = Box::new(find_io_profile(profile).expect("built in").clone());
        let volumes = ["backup", "data"].map(str::to_string).to_vec();
        let working_set = Bytes(Bytes::from_mib(32).0 + 4096);
        let work = BackgroundWork::Load { profile, volumes, working_set };
        BackgroundPlan { name: "load".to_string(), work, phase: FaultPhase::WarmUp, ..copy() }
    }

    fn with(background: Vec<BackgroundPlan>) -> Plan {
        Plan { background, ..plan("kingston-nvme") }
    }

    #[test]
    fn files_are_behind_the_database_and_do_not_overlap() {
        let plan = with(vec![copy(), load("sql-80-20")]);
        let design = &plan.designs[0];
        let made = scenario(&plan, design, 8, &Assumptions::defaults(2)).expect("a scenario");
        let works = background(&plan, design, &made.databases);
        assert_eq!(works, made.background);
        let VolumeWork::Copy(copy) = &works[0].work else { panic!("{works:?}") };
        let whole = VolumeUse { volume: 0, offset: Bytes::ZERO, length: Bytes::from_gib(2) };
        assert_eq!(copy.from, whole);
        let to = copy.to.expect("a file");
        assert_eq!((to.offset, to.length), (Bytes::from_mib(1024 - 64), Bytes::from_mib(64)));
        let VolumeWork::Loads(loads) = &works[1].work else { panic!("{works:?}") };
        let [on_backup, on_data] = [&loads[0].place, &loads.last().expect("two").place];
        // The next boundary below.
        assert_eq!((on_backup.volume, on_backup.offset), (to.volume, Bytes::from_mib(960 - 33)));
        assert_eq!((on_data.volume, on_data.offset), (0, Bytes::from_mib(2048 - 33)));
        assert_eq!(made.databases[0].data.length, on_data.offset);
        // A design without the work has the same room, and so the same places of rows.
        let mut other = plan.clone();
        other.designs.push(other.designs[0].clone());
        other.designs[1].name = "undisturbed".to_string();
        let undisturbed = &other.designs[1];
        assert_eq!(room(&other, &undisturbed.volumes[0]), on_data.offset);
        assert!(background(&other, undisturbed, &made.databases).is_empty());
    }

    #[test]
    fn what_begins_before_the_users_or_takes_no_time_is_refused() {
        let reasons = |plan: &Plan| {
            let mut found = BTreeSet::new();
            problems(plan, &mut found);
            found.into_iter().collect::<Vec<_>>().join("; ")
        };
        assert_eq!(reasons(&with(vec![copy(), load("sql-80-20")])), "");
        let early = BackgroundPlan { phase: FaultPhase::Settle, ..copy() };
        assert!(reasons(&with(vec![early])).contains("begins in `settle`"));
        let instant = |work| Plan { background: vec![work], ..plan("null") };
        assert!(reasons(&instant(load("sql-80-20"))).contains("which have no delay"));
        assert_eq!(reasons(&instant(copy())), "", "a copy has an end");
    }

    #[test]
    fn work_begins_once_in_its_phase_and_moments_keep_a_phase_at_its_length() {
        let second = Nanos::from_secs;
        let timed = BackgroundPlan { lasts: Some(second(9)), at: Nanos::ZERO, ..copy() };
        let late = BackgroundPlan { at: second(30), ..copy() };
        let plan = with(vec![copy(), timed, late]);
        let mut schedule = BackgroundSchedule::of(&plan, 0);
        assert!(schedule.phase_began(FaultPhase::Measure, 4, second(5)).is_empty());
        assert!(!schedule.is_timed(second(5)));
        let begun = schedule.phase_began(FaultPhase::Measure, 8, second(20));
        let [first, timed, late] = begun[..] else { panic!("{begun:?}") };
        assert_eq!((first.number, first.after, first.lasts), (0, second(1), None));
        assert_eq!((timed.after, timed.lasts), (Nanos::ZERO, Some(second(9))));
        assert_eq!(late.after, second(30));
        assert!(schedule.phase_began(FaultPhase::Measure, 8, second(40)).is_empty());
        // Until the last one has begun.
        assert!(schedule.is_timed(second(20)) && schedule.is_timed(second(48)));
        assert!(!schedule.is_timed(second(49)));
        let mut first = BackgroundSchedule::of(&plan, 0);
        first.0.truncate(2);
        first.phase_began(FaultPhase::Measure, 8, second(20));
        assert!(first.is_timed(second(28)) && !first.is_timed(second(29)));
        assert!(BackgroundSchedule::of(&plan, 1).0.is_empty());
    }
}
