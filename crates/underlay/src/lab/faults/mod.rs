//! The faults that a study schedules, carried out in a run: injected when they are due, repaired at their end, the database
//! restarted where it went down, and the verdict afterwards.
//!
//! When a fault is due says [`Schedule`]. In reading order: what a design promises ([`promise`]), how a fault is injected
//! ([`injection`]), how the database is restarted ([`service`]), and here what ties them together.
//!
//! A run with faults continues when the database goes down: that is what such a study measures. The database is restarted
//! once every fault is repaired, as its operator would do, and the record has how long that took. Before the data is
//! checked, everything is repaired and the database is restarted from what is really stored.

mod injection;
mod promise;
mod service;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use underlay_core::{Nanos, RootSeed};
use underlay_record::conventions::{document, event, finding};
use underlay_record::{PhaseKind, Severity};
use underlay_study::{DesignPlan, FaultAction, FaultPlan, Plan, RunPlan};
use underlay_telemetry::Collector;

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::faults::promise::Promise;
use crate::lab::faults::service::restore;
use crate::lab::resync;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;
use crate::lab::schedule::{Act, Schedule};
use crate::lab::verification::Verified;

pub use crate::lab::faults::service::Serving;

/// The faults of one run.
pub struct Faults<'a> {
    schedule: Schedule<&'a FaultPlan>,
    promise: Promise,
    design: &'a DesignPlan,
    log: RunLog<'a>,
    seed: RootSeed,
    happened: Vec<Happened>,
    down: Option<Down>,
    outages: Vec<Outage>,
    lost: Option<String>,
}

/// A fault that happened.
struct Happened {
    number: usize,
    at: Nanos,
    mended: Option<Nanos>,
    impaired: usize,
}

/// The database is not serving.
struct Down {
    since: Nanos,
    reason: String,
}

/// The database did not serve, and was brought back.
struct Outage {
    since: Nanos,
    until: Nanos,
    reason: String,
}

/// What faults happen to, while load runs.
pub struct Surroundings<'s> {
    /// The database servers.
    pub servers: Vec<Serving<'s>>,
    /// The datastore under them.
    pub datastore: &'s SharedDatastore,
    /// Is told where the server's processes are after a restart.
    pub collector: &'s Collector,
    /// Who is told.
    pub observer: &'s mut dyn Observer,
    /// Called now and then while the caller would otherwise wait for the database to come back.
    pub meanwhile: &'s mut dyn FnMut() -> Result<(), Abort>,
}

impl Surroundings<'_> {
    fn kill_servers(&mut self) -> Result<(), Abort> {
        let mut servers = self.servers.iter_mut();
        servers.try_for_each(|it| it.server.kill().during("end the database server"))
    }
}

impl<'a> Faults<'a> {
    /// The faults that `plan` schedules for a run.
    pub fn new(plan: &'a Plan, scheduled: RunPlan, log: RunLog<'a>) -> Faults<'a> {
        let design = &plan.designs[scheduled.design];
        Faults {
            schedule: Schedule::new(&plan.faults, scheduled.design, |fault| fault),
            promise: Promise::of(design),
            design,
            log,
            // Every repeat meets other rot, the designs of a repeat the same.
            seed: plan.seed.child("faults", u64::from(scheduled.repeat)),
            happened: Vec::new(),
            down: None,
            outages: Vec::new(),
            lost: None,
        }
    }

    /// Says that a phase of the ladder began.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32) {
        let now = self.log.now();
        self.schedule.phase_began(kind, users, now);
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Instant> {
        self.schedule.next_due().map(|at| self.log.instant(at))
    }

    /// Whether anything has happened yet.
    pub fn have_happened(&self) -> bool {
        !self.happened.is_empty()
    }

    /// Whether the database is down as expected.
    pub fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// Takes a failure of the database for what the faults did to it. It is an error where nothing was broken.
    pub fn excuse(&mut self, failure: Abort) -> Result<(), Abort> {
        match failure {
            Abort::Failed(reason) if self.have_happened() => {
                self.goes_down(reason);
                Ok(())
            }
            failure => Err(failure),
        }
    }

    /// Carries out what is due, and brings the database back when nothing is broken any more.
    pub fn carry_out_due(&mut self, around: &mut Surroundings<'_>) -> Result<(), Abort> {
        while let Some(act) = self.schedule.due(self.log.now()) {
            match act {
                Act::Begin(number) => self.happen(number, around)?,
                Act::End(number) => self.mend(number, around)?,
            }
        }
        self.bring_back(around)
    }

    /// Ends every fault that is still in force: the load is over, or is given up. Goes on where something cannot be mended,
    /// and returns the first such failure.
    pub fn mend_all(&mut self, around: &mut Surroundings<'_>) -> Result<(), Abort> {
        let mut outcome = Ok(());
        for number in self.schedule.in_force() {
            outcome = outcome.and(self.mend(number, around));
        }
        outcome
    }

    /// Restarts the database from what is stored, after the load and with all faults mended, so that the checks see
    /// nothing that only memory holds. A database that does not come back is lost, which is a result and no error.
    pub fn restart_for_checks(
        &mut self,
        servers: &mut [Serving<'_>],
        datastore: &SharedDatastore,
    ) -> Result<(), Abort> {
        let since = self.log.now();
        match restore(servers, datastore) {
            Ok(()) => {
                if let Some(Down { since, reason }) = self.down.take() {
                    self.outages.push(Outage { since, until: self.log.now(), reason });
                }
                let data = json!({ "until_ns": self.log.now().0 });
                self.log.event(
                    event::RECOVERY,
                    since,
                    "the database was restarted for the checks",
                    data,
                )
            }
            Err(reason) => {
                self.lost =
                    Some(format!("the database did not recover after the faults: {reason}"));
                Ok(())
            }
        }
    }

    /// Why there is nothing left to check; `None` = the database serves.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Writes what happened and what it means, once the data was checked.
    pub fn conclude(
        &self,
        verified: Option<&Verified>,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        if self.schedule.is_empty() {
            return Ok(());
        }
        for number in self.schedule.outstanding() {
            let text = format!(
                "never triggered: {}; the load ended first",
                self.schedule.item(number).action.described()
            );
            self.log.find(Severity::Warning, finding::FAULT_DID_NOT_HAPPEN, &text, observer)?;
        }
        if !self.have_happened() {
            return Ok(());
        }
        let (verdict, severity, code, text) = self.judge(verified);
        self.log.find(severity, code, &text, observer)?;
        let content = json!({
            "verdict": verdict,
            "tolerated": self.promise.tolerated(),
            "failures_at_once": self.promise.at_once(),
            "promise_exceeded_by": self.promise.exceeded_by(),
            "faults": self.happened.iter().map(|it| self.described(it)).collect::<Vec<_>>(),
            "database_down": self.outages.iter().map(Outage::described).collect::<Vec<_>>(),
        });
        self.log.document(document::FAULTS, &content)
    }

    /// The verdict in a word, how grave it is, its code, and its sentence.
    fn judge(&self, verified: Option<&Verified>) -> (&'static str, Severity, &'static str, String) {
        let (tolerated, at_once) = (self.promise.tolerated(), self.promise.at_once());
        let exceeded = self.promise.exceeded_by();
        let promise = match exceeded {
            // Slowness and a power cut are no failures that redundancy would have to survive.
            None if at_once == 0 => "within what the design promises".to_string(),
            None => format!(
                "within what the design promises ({at_once} of {tolerated} tolerated failures at once)"
            ),
            Some(action) => format!(
                "beyond what the design promises ({tolerated} failures tolerated, {at_once} at once, when {action})"
            ),
        };
        if let Some(Verified::Broken(check)) = verified {
            let severity = Severity::Invalid;
            let code = finding::FAULT_LOST_DATA;
            return (
                "lost",
                severity,
                code,
                format!("data was lost because of the faults, {promise}: {check}"),
            );
        }
        let down: u64 = self.outages.iter().map(|outage| (outage.until - outage.since).0).sum();
        if down > 0 {
            let text = format!(
                "nothing acknowledged is lost, but the database was down for {} and had to be started again ({}); {promise}",
                Nanos(down),
                self.outages[0].reason
            );
            return ("down", Severity::Warning, finding::FAULT_TOOK_DATABASE_DOWN, text);
        }
        let faults = match self.happened.len() {
            1 => "a fault".to_string(),
            count => format!("{count} faults"),
        };
        let text = format!(
            "{faults} under load, {promise}: the database continued to serve, and nothing acknowledged is lost"
        );
        ("survived", Severity::Information, finding::FAULTS_SURVIVED, text)
    }

    fn happen(&mut self, number: usize, around: &mut Surroundings<'_>) -> Result<(), Abort> {
        let action = self.schedule.item(number).action.clone();
        let impaired = resync::impaired(around.datastore).during("look at the components")?;
        let at = self.log.now();
        self.promise.note(&action, at, impaired);
        let seed = self.seed.child("fault", number as u64);
        injection::happen(&action, self.design, around.datastore, seed)
            .during(&format!("carry out that {}", action.described()))?;
        if action == FaultAction::PowerCut {
            // A host that loses its power takes the server with it.
            around.kill_servers()?;
            self.goes_down("the power was cut".to_string());
        }
        let until = self.schedule.begun(number, at).filter(|_| action.kind().can_last());
        if !action.kind().can_last() {
            self.schedule.is_over(number);
        }
        self.happened.push(Happened { number, at, mended: None, impaired });
        let plan = self.schedule.item(number);
        let data = json!({
            "number": number + 1,
            "kind": action.kind().as_str(),
            "target": action.target(),
            "phase": plan.phase.as_str(),
            "users": plan.users,
            "planned_ns": plan.at.0,
            "took_ns": (self.log.now() - at).0,
            "until_ns": until.map(|until| until.0),
            "impaired_components": impaired,
        });
        self.report(event::FAULT, at, &action.described(), data, around.observer)
    }

    fn mend(&mut self, number: usize, around: &mut Surroundings<'_>) -> Result<(), Abort> {
        let action = self.schedule.item(number).action.clone();
        self.schedule.is_over(number);
        let at = self.log.now();
        if action == FaultAction::PowerCut {
            // Volumes are mounted again. No process may have files on them open: the server died in
            // the power cut.
            around.kill_servers()?;
        }
        let mended = injection::mend(&action, self.design, around.datastore);
        if action == FaultAction::PowerCut
            && let Err(error) = mended
        {
            // A file system that cannot be mounted after a power cut is what the study wanted to know.
            self.lost = Some(format!("the volumes did not recover after the power cut: {error}"));
            return Err(Abort::failed("the volumes did not recover after the power cut", &error));
        }
        mended.during(&format!("repair the faults, so that {}", words(&action)))?;
        if let Some(happened) = self.happened.iter_mut().find(|it| it.number == number) {
            happened.mended = Some(at);
        }
        let data = json!({ "number": number + 1, "kind": action.kind().as_str() });
        self.report(event::REPAIR, at, &words(&action), data, around.observer)
    }

    /// Starts a database that went down, once nothing is broken.
    fn bring_back(&mut self, around: &mut Surroundings<'_>) -> Result<(), Abort> {
        if self.down.is_none() || !self.schedule.in_force().is_empty() {
            return Ok(());
        }
        let began = self.log.now();
        let (servers, datastore) = (&mut around.servers, around.datastore);
        let mut written = Ok(());
        let restored = std::thread::scope(|scope| {
            let worker = scope.spawn(move || restore(servers, datastore));
            while !worker.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
                written =
                    std::mem::replace(&mut written, Ok(())).and_then(|()| (around.meanwhile)());
            }
            worker.join().unwrap_or_else(|_| Err("starting it panicked".to_string()))
        });
        written?;
        let Some(Down { since, reason }) = self.down.take() else { return Ok(()) };
        if let Err(cause) = restored {
            let text = format!("the database did not recover after the faults: {cause}");
            self.lost = Some(text.clone());
            return Err(Abort::Failed(text));
        }
        for serving in &around.servers {
            if let Some(pid) = serving.server.pid() {
                around.collector.set_process(&serving.process, pid);
            }
        }
        let until = self.log.now();
        let text = format!("the database was started again: {reason}");
        let data = json!({ "until_ns": until.0, "down_since_ns": since.0 });
        self.outages.push(Outage { since, until, reason });
        self.report(event::RECOVERY, began, &text, data, around.observer)
    }

    fn goes_down(&mut self, reason: String) {
        if self.down.is_none() {
            self.down = Some(Down { since: self.log.now(), reason });
        }
    }

    fn described(&self, happened: &Happened) -> Value {
        let plan = self.schedule.item(happened.number);
        json!({
            "number": happened.number + 1,
            "kind": plan.action.kind().as_str(),
            "target": plan.action.target(),
            "text": plan.action.described(),
            "at_ns": happened.at.0,
            "mended_ns": happened.mended.map(|at| at.0),
            "impaired_components_before": happened.impaired,
        })
    }

    fn report(
        &self,
        kind: &str,
        at: Nanos,
        text: &str,
        data: Value,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        observer.notice(&Event::Happened { text });
        self.log.event(kind, at, text, data)
    }
}

impl Outage {
    fn described(&self) -> Value {
        json!({ "since_ns": self.since.0, "until_ns": self.until.0, "reason": self.reason })
    }
}

fn words(action: &FaultAction) -> String {
    action.mended().unwrap_or_else(|| action.described())
}
