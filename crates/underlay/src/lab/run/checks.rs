//! The checks of a run's databases, before and after its load: of as many databases at a time as the host has processors.
//!
//! Each database has checks, and perhaps a crash, of its own. They are kept in the order of the study.

use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use tokio::runtime::Runtime;
use underlay_database::Target;
use underlay_record::CheckMoment;

use super::active::ActiveRun;
use super::under_test::UnderTest;
use crate::lab::abort::Abort;
use crate::lab::event::Observer;
use crate::lab::interrupt;
use crate::lab::verification::{Verified, crash_behind, keep, made};
use crate::lab::workload::{Access, Checked, Session};
use crate::stop::Stop;

impl<'a> ActiveRun<'a> {
    /// Checks every database before the load, and begins its session. A request to stop ends it: nothing is lost yet.
    pub(super) fn check_before(
        &self,
        databases: &mut [UnderTest<'a>],
        observer: &mut dyn Observer,
    ) -> Result<Vec<Box<dyn Session + 'a>>, Abort> {
        let begin = |database: &UnderTest<'a>| {
            let target = database.target().with_stop(interrupt::requested);
            (target, database.bench.subject.session())
        };
        let mut begun: Vec<_> = databases.iter().map(begin).collect();
        let users = self.bench.plan.procedure.users_at_once();
        let found = check_all(self.bench.runtime, &mut begun, |session, access| {
            let checks = session.check(access, CheckMoment::Before)?;
            // What is wrong is told first.
            if checks.iter().all(Checked::holds) {
                session.look_before(access, users)?;
            }
            Ok(checks)
        });
        if interrupt::requested() {
            return Err(Abort::Interrupted);
        }
        for (database, checks) in databases.iter_mut().zip(found) {
            if let Verified::Broken(check) =
                keep_checks(database, checks, CheckMoment::Before, false, observer)?
            {
                let of = database.described();
                return Err(Abort::Failed(format!(
                    "the restored database{of} is not consistent: {check}"
                )));
            }
        }
        Ok(begun.into_iter().map(|(_, session)| session).collect())
    }

    /// Checks every database after the load. `by_faults` = what faults did to the data may also keep a server from being asked.
    pub(super) fn check_after(
        &self,
        databases: &mut [UnderTest<'_>],
        sessions: &mut [Box<dyn Session + '_>],
        by_faults: bool,
        observer: &mut dyn Observer,
    ) -> Result<Verified, Abort> {
        // A server that was started again may be elsewhere.
        let targets = databases.iter().map(UnderTest::target);
        let mut of_targets: Vec<_> = targets.zip(sessions).collect();
        let found = check_all(self.bench.runtime, &mut of_targets, |session, access| {
            session.check(access, CheckMoment::After)
        });
        let mut all = Verified::Clean;
        for (database, checks) in databases.iter_mut().zip(found) {
            // Every database is checked, and the first that is wrong is named.
            let verified = keep_checks(database, checks, CheckMoment::After, by_faults, observer)?;
            if let (true, Verified::Broken(check)) = (all == Verified::Clean, verified) {
                all = Verified::Broken(match database.log.database {
                    "" => check,
                    name => format!("{name}: {check}"),
                });
            }
        }
        Ok(all)
    }
}

/// Writes a database's checks to the record. Those that a crash kept from being made say nothing about the data, unless faults
/// may have kept the server from being asked.
fn keep_checks(
    database: &mut UnderTest<'_>,
    checks: Result<Vec<Checked>, Stop>,
    moment: CheckMoment,
    by_faults: bool,
    observer: &mut dyn Observer,
) -> Result<Verified, Abort> {
    let crash = match by_faults {
        true => None,
        false => crash_behind(&checks, &mut database.server)?,
    };
    let checks = made(checks, crash.as_deref())?;
    keep(&checks, (database.log, moment), observer)?;
    Verified::of(&checks, crash.as_deref())
}

/// What `check` finds in each database, in their order. They share the host's processors.
fn check_all<S: Send, F: Send>(
    runtime: &Runtime,
    databases: &mut [(Target, S)],
    check: impl Fn(&mut S, Access<'_>) -> F + Sync,
) -> Vec<F> {
    let processors = available_parallelism().map_or(1, usize::from);
    let at_once = processors.min(databases.len());
    let parallel = processors / at_once.max(1);
    let mut found: Vec<Option<F>> = databases.iter().map(|_| None).collect();
    let waiting = Mutex::new(databases.iter_mut().zip(&mut found));
    // A thread that panics takes the others along when it is joined.
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(((target, session), found)) = next() {
                    *found = Some(check(session, Access { runtime, target, parallel }));
                }
            });
        }
    });
    found.into_iter().map(|found| found.expect("every database is checked")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread::available_parallelism;

    use underlay_database::Target;

    use super::check_all;

    #[test]
    fn databases_are_checked_side_by_side_and_answer_in_their_order() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let processors = available_parallelism().map_or(1, usize::from);
        let target =
            || Target::from_url("postgres://nobody@localhost/nothing").expect("an address");
        let mut databases: Vec<_> = (0..processors * 2).map(|number| (target(), number)).collect();
        let together = Barrier::new(processors);
        let found = check_all(&runtime, &mut databases, |number, access| {
            // Waits for ever where fewer are checked at once.
            together.wait();
            (*number, access.parallel)
        });
        assert_eq!(found, (0..processors * 2).map(|number| (number, 1)).collect::<Vec<_>>());
        let mut alone = [(target(), 0)];
        let parallel = check_all(&runtime, &mut alone, |_, access| access.parallel);
        assert_eq!(parallel, [processors]);
        assert!(check_all(&runtime, &mut [] as &mut [(Target, u8)], |_, _| ()).is_empty());
    }
}
