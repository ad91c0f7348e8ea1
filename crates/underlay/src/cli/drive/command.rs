//! A drive command, as far as all workloads have it: what it asks for, what is wrong with that, and why a step ended early.
//! It carries nothing out.

use underlay_database::schema_ownership::WorkloadTables;

use super::options::{self, Common, Loading, NOT_LOADED, Problems, THREADS, UserLoad};
use crate::lab::interrupt;
use crate::stop::Stop;

/// A command, as far as all workloads have it.
pub(super) struct Command<'a> {
    pub(super) common: &'a Common,
    pub(super) loading: &'a Loading,
    /// None of a job with an end.
    pub(super) users: Option<&'a UserLoad>,
    pub(super) name: &'static str,
    pub(super) tables: WorkloadTables,
    /// Tables that Underlay did not create are taken as they are.
    pub(super) foreign_tables: bool,
    /// Of those so many tables and ids of each; none = all.
    pub(super) foreign_size: (Option<u32>, Option<u32>),
    /// Users may insert in bulk, for which they need tables of their own.
    pub(super) inserts_in_bulk: bool,
}

/// What a command does with a population, besides running the load.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Load,
    Check,
    Drop,
}

/// Why a step ended: what the user stopped did not fail.
pub(super) fn given_up(command: &Command<'_>, action: Action, stop: Stop) -> Stop {
    if !interrupt::gives_up() {
        return stop;
    }
    let stop = Stop::interrupted("stopped by the user");
    match action {
        Action::Load => stop.with_hint(format!(
            "an incomplete load is removed by `underlay drive {} --drop`",
            command.name
        )),
        Action::Drop => stop.with_hint(
            "the server may still complete a statement that it has begun; repeat the command to remove the rest",
        ),
        Action::Check => stop,
    }
}

impl Command<'_> {
    /// Whether the load runs: also when nothing else is asked for.
    pub(super) fn runs(&self) -> bool {
        let Common { run, check, drop, .. } = *self.common;
        run || !(self.loading.load || check || drop)
    }

    pub(super) fn is_noop(&self) -> bool {
        self.users.is_some_and(|users| users.noop)
    }

    /// Whether a run makes what it needs, instead of a load.
    pub(super) fn is_made_by_run(&self) -> bool {
        self.tables == WorkloadTables::Batch
    }

    pub(super) fn loaders(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.loading.loaders.unwrap_or_else(all).max(1)
    }

    /// A line for people; nothing for programs.
    pub(super) fn say(&self, text: &str) {
        if !self.common.json {
            outln!("{text}");
        }
    }

    /// Notes what is wrong with the options that it knows.
    fn problems(&self, problems: &mut Problems) {
        problems.outside("--loaders", self.loading.loaders, THREADS);
        if let Some(users) = self.users {
            users.problems(self.runs(), problems);
        }
        let of_run = [("--record", self.common.record.is_some())];
        let of_connections = [
            ("--loaders", self.loading.loaders.is_some()),
            ("--password-file", self.common.password_file.is_some()),
            ("--foreign-tables", self.foreign_tables),
        ];
        if self.is_noop() {
            let why = "has no effect with --noop, which drives nothing";
            problems.refuse(&of_connections, why);
            problems.refuse(&of_run, why);
            return;
        }
        if !self.runs() {
            problems.refuse(&of_run, options::NOT_RUN);
        }
        let replaces =
            self.loading.load || self.common.drop || (self.is_made_by_run() && self.runs());
        let replace = [("--replace-foreign", self.common.replace_foreign.is_some() && !replaces)];
        problems.refuse(&replace, "has no effect without --load or --drop (for batch: a run)");
        // What a warehouse's queries ask follows from the seed that it was loaded with.
        let draws = self.loading.load || (self.runs() && self.tables != WorkloadTables::Warehouse);
        let seed = [("--seed", self.common.seed.is_some() && !draws)];
        problems
            .refuse(&seed, "has no effect if nothing is generated: the existing data has its own");
        // TPC-C's checks are made in parallel too.
        let checks = self.tables == WorkloadTables::Tpcc && (self.runs() || self.common.check);
        let loaders = self.loading.loaders.is_some() && !(self.loading.load || checks);
        problems.refuse(&[("--loaders", loaders)], NOT_LOADED);
    }

    /// Refuses what cannot be, and what would have no effect.
    pub(super) fn refuse(mut problems: Problems, command: &Command<'_>) -> Result<(), Stop> {
        command.problems(&mut problems);
        let wrong = problems.0;
        if wrong.is_empty() { Ok(()) } else { Err(Stop::bad_input(wrong.join("\n"))) }
    }
}
