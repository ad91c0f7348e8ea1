//! The steps of a command in their order: load, run, check, drop. What each does to a workload's tables is the workload's.

use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use underlay_database::run_lock;
use underlay_database::schema_ownership::{Afterwards, WorkloadTables};

use super::command::{Action, Command, given_up};
use super::connection::Sessions;
use super::external::{Dropped, External};
use super::{connection, foreign, page, page_json, recording, rights};
use crate::lab::interrupt;
use crate::lab::workload::{Access, stopped};
use crate::stop::Stop;

pub(super) fn carry_out<S: External>(command: &Command<'_>, mut subject: S) -> Result<(), Stop> {
    let target = connection::target(command)?;
    let runtime =
        Runtime::new().map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
    let access = Access { runtime: &runtime, target: &target, parallel: command.loaders() };
    let done = carry_out_steps(command, access, &mut subject);
    done.map_err(|stop| rights::explain(command, access, stop))
}

fn carry_out_steps<S: External>(
    command: &Command<'_>,
    access: Access<'_>,
    subject: &mut S,
) -> Result<(), Stop> {
    let mut result = Map::new();
    let sessions = Sessions::look(command, access)?;
    result.insert("sessions".to_string(), sessions.json());
    if command.runs() {
        connection::refuse_too_many(command, access)?;
        recording::refuse_existing(command)?;
    }
    // Running a job that makes its table replaces an earlier one.
    let is_made_by_run = command.is_made_by_run();
    if command.common.drop
        || command.common.replace_foreign.is_some()
        || (is_made_by_run && command.runs())
    {
        refuse_while_running(command, access)?;
    }
    let replaces = command.loading.load || (is_made_by_run && command.runs());
    let mut replaced = None;
    if replaces {
        replaced = foreign::replace(command, access, Afterwards::Load)?;
    }
    if command.loading.load {
        if command.common.drop && replaced.is_none() {
            subject
                .drop_population(access)
                .map_err(|stop| given_up(command, Action::Drop, stop))?;
        }
        let loaded =
            subject.load(access, &|_| {}).map_err(|stop| given_up(command, Action::Load, stop))?;
        let (text, members) = subject.describe_load(&loaded);
        command.say(&format!("loaded {text} in {}", page::load_stages(&loaded.report)));
        result.insert("load".to_string(), page_json::load(&loaded.report, members));
    }
    let mut verdict = Ok(());
    if command.runs() {
        if !is_made_by_run {
            adopt(command, access, subject)?;
        }
        let lock = access.runtime.block_on(run_lock::hold(access.target, command.name));
        let _lock = match lock {
            Ok(lock) => Some(lock),
            // A database that does not exist before the run cannot be locked, and need not be.
            Err(_) if is_made_by_run => None,
            Err(error) => return Err(stopped("lock the tables against removal", error)),
        };
        let (run, ended) = subject.run(command, access)?;
        result.insert("run".to_string(), run);
        verdict = ended;
    }
    if command.common.check && may_begin(&mut verdict) {
        adopt(command, access, subject)?;
        let checked = subject.check_alone(command, access);
        let (report, checked) = checked.map_err(|stop| given_up(command, Action::Check, stop))?;
        result.insert("check".to_string(), report);
        verdict = verdict.and(checked);
    }
    if command.common.drop && !command.loading.load && may_begin(&mut verdict) {
        refuse_while_running(command, access)?;
        let mut dropped = "the population".to_string();
        let cleared = match replaced {
            Some(_) => None,
            None => foreign::replace(command, access, Afterwards::Leave)?,
        };
        if cleared.is_some() {
            replaced = cleared;
        } else {
            match subject.drop_population(access) {
                Ok(Dropped::Done(what)) => dropped = what,
                Ok(Dropped::Nothing(stop)) => return Err(stop),
                Err(stop) => return Err(given_up(command, Action::Drop, stop)),
            }
        }
        command.say(&format!("dropped {dropped}"));
        result.insert("dropped".to_string(), Value::Bool(true));
    }
    if let Some(replaced) = replaced {
        result.insert("replaced".to_string(), replaced);
    }
    if command.common.json {
        if command.tables == WorkloadTables::Warehouse {
            result.insert("notice".to_string(), underlay_workload::warehouse::NOTICE.into());
        }
        outln!("{:#}", Value::from(result));
    }
    verdict
}

fn adopt<S: External>(
    command: &Command<'_>,
    access: Access<'_>,
    subject: &mut S,
) -> Result<(), Stop> {
    subject.adopt(command, access).map_err(|stop| given_up(command, Action::Check, stop))
}

/// Refuses to remove tables that another command is driving.
fn refuse_while_running(command: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
    match access.runtime.block_on(run_lock::is_held(access.target, command.name)) {
        Ok(true) => Err(Stop::bad_input(format!(
            "another `underlay drive {}` is running on these tables: wait until it ends, or stop it, before removing \
             them",
            command.name
        ))),
        Ok(false) => Ok(()),
        // What keeps sessions from being opened is reported by what follows.
        Err(_) => Ok(()),
    }
}

/// Whether another step may begin; a user who asked to stop gets no success for what was left out.
fn may_begin(verdict: &mut Result<(), Stop>) -> bool {
    let may_begin = !interrupt::requested();
    if !may_begin && verdict.is_ok() {
        *verdict = Err(Stop::interrupted("stopped by the user"));
    }
    may_begin
}
