//! One simulated run: the cluster, its data, the reference, and the requests in flight.

use super::crash_points::{CrashPoint, CrashingIntents, CrashingStores};
use super::reference::{Expectation, Reference, SECTOR, sector_bytes};
use super::topology::{self, Power};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_datastore::data_plane::{DataPlane, Delivered, Finding};
use underlay_model::cluster::{
    Cluster, ClusterEvent, ClusterSpec, ClusterState, ComponentState, DeviceId, HostId, IoFailure,
    Outcome, Policy, SetKind, VolumeFinished, VolumeId,
};
use underlay_model::{Operation, Request, RequestId};

/// No request may take longer, whatever happens.
const HANG: Nanos = Nanos::from_secs(20);

/// What is hit when the program that drives the cluster is killed, or all hosts lose power and have it again at once. Nothing is
/// lost by that; but replicas may differ then, and until they have been copied from one of them no promise holds for mirrors.
pub const INTERRUPTED: &str = "all at once";

/// A volume with its reference.
pub struct Subject {
    pub id: VolumeId,
    pub bytes: u64,
    pub reference: Reference,
    /// The weakest promise since the cluster was last healthy: a policy change promises the lesser of both.
    pub promise: u8,
    pub wanted: Policy,
    /// Fault domains in which something may be wrong that never heals by itself: bit rot, a device that fails now
    /// and then.
    pub scars: BTreeSet<String>,
    /// Whether scars and failures together have exceeded the promise: blocks may be gone for good, and with them the
    /// redundancy of whatever shares a row with them.
    pub damaged: bool,
}

/// A request in flight.
pub struct Flight {
    pub subject: usize,
    pub request: Request,
    submitted: Nanos,
    /// What a write stores.
    pub write: u64,
    expectation: Option<Expectation>,
    /// Whether an error is excused: there were more faults than promised during its flight.
    pub excused: bool,
    /// Whether nothing was known to have failed when it was submitted.
    calm: bool,
}

/// One run.
pub struct World {
    pub random: Pcg64,
    pub power: Power,
    pub cluster: Cluster,
    pub spec: ClusterSpec,
    pub data: DataPlane<CrashingStores>,
    /// When the program that drives the cluster dies, for kills in the midst of a command.
    pub crash_point: CrashPoint,
    /// What it noted before it began.
    pub intents: CrashingIntents,
    pub subjects: Vec<Subject>,
    pub now: Nanos,
    pub flights: BTreeMap<u64, Flight>,
    next: u64,
    succeeded: HashSet<u64>,
    /// Fault domains hit since everything was last healthy, and [`INTERRUPTED`].
    pub hit: BTreeSet<String>,
    /// Whether a device was replaced by an empty one since everything was last healthy.
    pub replaced: bool,
    /// Whether nothing is away any more and nothing was replaced: then no block may be lost, however much has failed before.
    pub all_there: bool,
    pub domains: Vec<String>,
    pub last_fault: Nanos,
    pub down: BTreeSet<HostId>,
    /// Stuck devices that may not have been noticed yet.
    pub stuck: BTreeSet<DeviceId>,
    /// Whether volatile writes may have been lost beyond the promise.
    pub lost_volatile: bool,
    pub trace: bool,
    /// What is stored for a restart.
    pub memory: Option<ClusterState>,
    /// Whether the program that drives the cluster may be killed.
    pub kills: bool,
    /// It is killed after so many more steps: data commands, answers, storing the state.
    pub killed_after: Option<u32>,
    events: Vec<ClusterEvent>,
    /// Draws when devices join; none = never.
    pub growth: Option<Pcg64>,
    /// Devices that joined.
    pub joined: u32,
}

impl World {
    /// Builds the cluster and the volumes of a seed.
    pub fn new(seed: u64) -> World {
        let mut random = RootSeed(seed).stream("simulation", 0);
        let power = if random.random_range(0..4) == 0 { Power::Volatile } else { Power::Protected };
        let spec = topology::cluster(&mut random, power);
        let domains = spec
            .hosts
            .iter()
            .map(|host| host.fault_domain.clone().unwrap_or_else(|| format!("host {}", host.name)))
            .collect();
        let trace = std::env::var("UNDERLAY_TRACE").is_ok();
        if trace {
            println!("{spec:#?}");
        }
        let cluster =
            Cluster::new(spec.clone(), RootSeed(seed)).expect("the specification is valid");
        let crash_point = CrashPoint::default();
        let intents = CrashingIntents::new(crash_point.clone());
        let mut data = DataPlane::new(CrashingStores { crash_point: crash_point.clone() });
        data.note_intents(Box::new(intents.clone()));
        let mut world = World {
            random,
            power,
            cluster,
            spec,
            data,
            crash_point,
            intents,
            subjects: Vec::new(),
            now: Nanos::ZERO,
            flights: BTreeMap::new(),
            next: 1,
            succeeded: HashSet::new(),
            hit: BTreeSet::new(),
            replaced: false,
            all_there: false,
            domains,
            last_fault: Nanos::ZERO,
            down: BTreeSet::new(),
            stuck: BTreeSet::new(),
            lost_volatile: false,
            trace,
            memory: None,
            kills: seed.is_multiple_of(2),
            killed_after: None,
            events: Vec::new(),
            growth: None,
            joined: 0,
        };
        world.cluster.remember_changes();
        world.create_volumes();
        world
    }

    fn create_volumes(&mut self) {
        for index in 0..self.random.random_range(1..=3) {
            let policy = topology::policy(&mut self.random);
            let bytes = self.random.random_range(1..=300u64) * 4096;
            let name = format!("v{index}");
            let created = self.cluster.create_volume(self.now, &name, Bytes(bytes), policy);
            if self.trace {
                println!("{name}: {bytes} bytes, {policy:?}: {created:?}");
            }
            if let Ok(id) = created {
                self.subjects.push(Subject {
                    id,
                    bytes,
                    reference: Reference::new(bytes),
                    promise: policy.failures_to_tolerate,
                    wanted: policy,
                    scars: BTreeSet::new(),
                    damaged: false,
                });
            }
        }
        self.collect();
    }

    /// The whole run; returns how many devices joined.
    pub fn run(mut self) -> u32 {
        if self.subjects.is_empty() {
            return 0;
        }
        let steps = self.random.random_range(100..700);
        let pace = [20, 200, 2_000][self.random.random_range(0..3)];
        let faultiness = [0, 10, 40, 120][self.random.random_range(0..4)];
        for _ in 0..steps {
            let gap = Nanos::from_micros(self.random.random_range(0..pace));
            self.pass(gap);
            if self.random.random_range(0..1000) < faultiness {
                self.fault();
            } else if self.random.random_range(0..400) == 0 {
                self.change_policy();
            } else {
                self.request();
            }
            self.grow();
            self.look_at_health();
        }
        self.heal_and_verify();
        self.joined
    }

    /// Lets virtual time pass.
    pub fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        while let Some(at) = self.cluster.next_wakeup().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.collect();
        }
        self.now = end;
        self.collect();
        let oldest = self.flights.values().map(|flight| flight.submitted).min();
        if let Some(submitted) = oldest {
            assert!(self.now.saturating_sub(submitted) < HANG, "a request hangs");
        }
    }

    /// Takes what happened and carries it out.
    pub fn collect(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.cluster.advance(self.now, &mut events);
        for event in events.drain(..) {
            match self.killed_after {
                Some(0) => break,
                Some(left) => self.killed_after = Some(left - 1),
                None => {}
            }
            match event {
                ClusterEvent::Data(command) => {
                    if self.trace && std::env::var("UNDERLAY_TRACE").is_ok_and(|v| v == "data") {
                        println!("  {command:?}");
                    }
                    self.data.execute(&command);
                    if self.crash_point.is_reached() {
                        self.killed_after = Some(0);
                        break;
                    }
                }
                ClusterEvent::StateChanged(state) => self.memory = Some(*state),
                ClusterEvent::Finished(finished) => self.finished(&finished),
                ClusterEvent::Notice { at, notice } => {
                    if self.trace {
                        println!("{at}: {notice:?}");
                    }
                }
            }
        }
        self.events = events;
        self.look_at_findings();
        if self.killed_after == Some(0) {
            self.restart();
        }
    }

    fn look_at_findings(&mut self) {
        for finding in self.data.take_findings() {
            if self.trace {
                println!("  found {finding:?}");
            }
            if let Finding::Repaired { .. } = finding {
                assert!(self.any_scars(), "nothing was broken, yet {finding:?}");
            }
        }
    }

    /// Whether more failed than a volume's policy promises to survive.
    pub fn beyond_promise(&self, subject: usize) -> bool {
        let subject = &self.subjects[subject];
        let hit = self.hit.union(&subject.scars).filter(|hit| *hit != INTERRUPTED).count();
        let promise = usize::from(subject.promise);
        match self.is_mirrored(subject.id) && self.hit.contains(INTERRUPTED) {
            true => true,
            false => hit > promise,
        }
    }

    fn is_mirrored(&self, volume: VolumeId) -> bool {
        let geometry = self.cluster.geometry(volume).expect("exists");
        matches!(geometry.kind, SetKind::Mirror { .. })
    }

    /// The program was killed, or all hosts were without power for a moment.
    pub fn interrupted(&mut self) {
        self.hit.insert(INTERRUPTED.to_string());
        self.last_fault = self.now;
        self.reckon();
    }

    /// Whether something may be wrong that never heals by itself.
    pub fn any_scars(&self) -> bool {
        self.subjects.iter().any(|subject| !subject.scars.is_empty())
    }

    /// After more has failed, or less is promised: excuses what is in flight, and notes what may be gone for good.
    pub fn reckon(&mut self) {
        let beyond: Vec<bool> =
            (0..self.subjects.len()).map(|subject| self.beyond_promise(subject)).collect();
        for flight in self.flights.values_mut() {
            flight.excused |= beyond[flight.subject];
        }
        for (subject, beyond) in self.subjects.iter_mut().zip(beyond) {
            subject.damaged |= beyond && !subject.scars.is_empty();
            if subject.damaged && !self.hit.is_empty() {
                subject.reference.destroyed(self.now);
            }
        }
    }

    /// Reads in flight may return what a loss of volatile writes has brought back.
    pub fn widen_expectations(&mut self, subject: usize) {
        let reference = &self.subjects[subject].reference;
        for flight in self.flights.values_mut().filter(|flight| flight.subject == subject) {
            if let Some(expectation) = &mut flight.expectation {
                expectation.lost_volatile(reference, sectors(&flight.request));
            }
        }
    }

    fn request(&mut self) {
        let subject = self.random.random_range(0..self.subjects.len());
        let blocks = self.subjects[subject].bytes / 4096;
        // A hot spot of a few blocks makes requests overlap.
        let first = match self.random.random_range(0..3) {
            0 => self.random.random_range(0..blocks.min(8)),
            _ => self.random.random_range(0..blocks),
        };
        let longest = if self.random.random_range(0..10) == 0 { 64 } else { 8 };
        let count = self.random.random_range(1..=longest.min(blocks - first));
        let (offset, length) = (first * 4096, (count * 4096) as u32);
        let request = match self.random.random_range(0..20) {
            0..8 => Request::read(offset, length),
            8..17 => Request::write(offset, length),
            17 => Request { force_unit_access: true, ..Request::write(offset, length) },
            18 => Request::discard(offset, length),
            _ => Request::flush(),
        };
        self.submit(subject, request);
    }

    /// Submits a write of a few blocks, and now and then a flush.
    pub fn rewrite(&mut self) {
        let subject = self.random.random_range(0..self.subjects.len());
        let blocks = self.subjects[subject].bytes / 4096;
        let first = self.random.random_range(0..blocks);
        let count = self.random.random_range(1..=4.min(blocks - first));
        let request = match self.random.random_range(0..8) {
            0 => Request::flush(),
            _ => Request::write(first * 4096, (count * 4096) as u32),
        };
        self.submit(subject, request);
    }

    /// Submits a request and notes it in the reference.
    pub fn submit(&mut self, subject: usize, request: Request) {
        let id = self.next;
        if self.trace {
            let first = request.offset_bytes / SECTOR as u64;
            let count = request.length_bytes as usize / SECTOR;
            println!(
                "{}: {id}: {}{} v{subject} {first}+{count}",
                self.now,
                request.operation.as_str(),
                if request.force_unit_access { " (durable)" } else { "" },
            );
        }
        self.next += 1;
        let sectors = sectors(&request);
        let length = request.length_bytes as usize;
        let mut expectation = None;
        match request.operation {
            Operation::Write | Operation::Discard => {
                let content = if request.operation == Operation::Write { id } else { 0 };
                let reference = &mut self.subjects[subject].reference;
                reference.submitted(id, content, self.now, sectors.clone());
                let mut bytes = Vec::with_capacity(length);
                for sector in sectors.clone() {
                    bytes.extend(sector_bytes(content, sector as u64));
                }
                self.data.stage_write(RequestId(id), bytes);
                for other in self.flights.values_mut().filter(|other| other.subject == subject) {
                    let first = (other.request.offset_bytes as usize) / SECTOR;
                    if let Some(expectation) = &mut other.expectation {
                        expectation.add(content, first, &sectors);
                    }
                }
            }
            Operation::Read => {
                expectation = Some(self.subjects[subject].reference.expect(sectors));
                self.data.stage_read(RequestId(id), vec![0xAA; length]);
            }
            Operation::Flush => {}
        }
        let excused = self.beyond_promise(subject);
        self.flights.insert(
            id,
            Flight {
                subject,
                request,
                submitted: self.now,
                write: id,
                expectation,
                excused,
                calm: self.hit.is_empty(),
            },
        );
        let volume = self.subjects[subject].id;
        self.cluster.submit(self.now, volume, &request, RequestId(id));
        self.collect();
    }

    fn finished(&mut self, finished: &VolumeFinished) {
        let flight = self.flights.remove(&finished.request.0).expect("finished once");
        let delivered = self.data.finish(finished.request);
        let unreadable = matches!(delivered, Some(Delivered::Unreadable(_)));
        let ok = finished.outcome == Outcome::Ok && !unreadable;
        if self.trace {
            let readable = if unreadable { ", unreadable" } else { "" };
            println!("{}: {} ended {:?}{readable}", self.now, flight.write, finished.outcome);
        }
        let excused = (flight.excused || self.beyond_promise(flight.subject)) && !self.all_there;
        let full = finished.outcome == Outcome::Error(IoFailure::NoSpace);
        // Reported whenever the next flush comes, however healthy the cluster is by then.
        let told_of_loss = finished.outcome == Outcome::Error(IoFailure::UnflushedLost)
            && self.lost_volatile
            && flight.request.operation != Operation::Read;
        let subject = &mut self.subjects[flight.subject];
        let destroyed = unreadable && subject.reference.may_be_destroyed(sectors(&flight.request));
        assert!(
            ok || excused || full || told_of_loss || destroyed,
            "{:?} failed within the promise: {:?}, hit {:?}",
            flight.request,
            finished.outcome,
            self.hit
        );
        assert!(finished.at >= flight.submitted && finished.at <= self.now);
        let sectors = sectors(&flight.request);
        let durable = self.power == Power::Protected || flight.request.force_unit_access;
        // While something is missing, even a block that is written may be destroyed at once by scars of its row.
        if ok && !excused && flight.calm && self.hit.is_empty() {
            subject.reference.intact(flight.submitted, sectors.clone());
        }
        match (flight.request.operation, ok) {
            (Operation::Write | Operation::Discard, true) => {
                self.succeeded.insert(flight.write);
                subject.reference.succeeded(flight.write, self.now, sectors, durable);
            }
            (Operation::Write | Operation::Discard, false) => {
                subject.reference.failed(flight.write, self.now, sectors);
            }
            (Operation::Flush, true) => {
                let succeeded = &self.succeeded;
                subject
                    .reference
                    .flushed(flight.submitted, |write| write == 0 || succeeded.contains(&write));
            }
            (Operation::Read, true) => {
                let Some(Delivered::Bytes(bytes)) = delivered else { panic!("no bytes") };
                let expectation = flight.expectation.expect("reads expect something");
                let first = flight.request.offset_bytes as usize / SECTOR;
                let durable = self.power == Power::Protected;
                let checked = subject.reference.check(&expectation, first, &bytes, durable);
                if let Err(wrong) = checked {
                    panic!(
                        "volume {:?}, {:?} at {}: {wrong}",
                        subject.id, flight.request, self.now
                    );
                }
            }
            (Operation::Flush | Operation::Read, false) => {}
        }
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    fn change_policy(&mut self) {
        let subject = self.random.random_range(0..self.subjects.len());
        let policy = topology::policy(&mut self.random);
        let changed = self.cluster.set_policy(self.now, self.subjects[subject].id, policy);
        if self.trace {
            println!("{}: v{subject} to {policy:?}: {changed:?}", self.now);
        }
        if changed.is_ok() {
            let state = &mut self.subjects[subject];
            state.promise = state.promise.min(policy.failures_to_tolerate);
            state.wanted = policy;
            self.reckon();
        }
        self.collect();
    }

    /// Whether every component of every volume is active.
    pub fn all_active(&self) -> bool {
        self.subjects.iter().all(|subject| {
            let status = self.cluster.volume_status(subject.id).expect("exists");
            status.components.iter().all(|component| component.state == ComponentState::Active)
        })
    }

    /// A healthy cluster forgets the faults it has survived.
    fn look_at_health(&mut self) {
        // What was in flight at a fault may still be missed by a component.
        let settled = self.flights.values().all(|flight| flight.submitted > self.last_fault);
        let healthy = settled
            && self.down.is_empty()
            && self.stuck.is_empty()
            && self.cluster.devices().all(|device| !device.failed)
            && self.all_active();
        if healthy && !self.hit.is_empty() {
            self.hit.clear();
            self.replaced = false;
            for subject in &mut self.subjects {
                let policy = self.cluster.volume_status(subject.id).expect("exists").policy;
                subject.promise =
                    policy.failures_to_tolerate.min(subject.wanted.failures_to_tolerate);
            }
        }
    }
}

pub fn sectors(request: &Request) -> std::ops::Range<usize> {
    let first = request.offset_bytes as usize / SECTOR;
    first..first + request.length_bytes as usize / SECTOR
}
