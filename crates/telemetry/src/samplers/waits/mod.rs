//! What the sessions of a database server are doing, sampled 10 to 100 times per second.
//!
//! * **Reads** `pg_stat_get_activity(NULL)` grouped by state and wait event; while a session waits on a
//!   lock also `pg_blocking_pids`, a few times per second, to the root of each chain.
//! * **Emits** one [`Item::Waits`] per tick with counts per key, and a source with its own cost.
//! * **Costs** at 20 Hz and 64 sessions about 0.25 % of a core here and 0.55 % in the server.
//! * **Needs** a login; `pg_read_all_stats` to see sessions of other roles.
//!
//! On MariaDB it reads `information_schema.processlist`, the lock waits of `innodb_trx` and, while a session waits,
//! `innodb_lock_waits`, at most nine times per second, and `events_waits_current` where the performance schema keeps
//! it: see `mariadb`.
//!
//! On PostgreSQL it connects to the maintenance database of the server if it may, so that its transactions are not
//! among those that `pg_stat_database` counts for the observed one.
//!
//! Of a server on this host each session's thread is looked at, too: whether it runs or could, sleeps, or sleeps in
//! I/O. Waits for the log and for pages are followed to the session that writes or reads (`root`), those for locks
//! to the holder (`chain`).
//!
//! Counts over samples is the mean number of sessions in a state, and the sum over all keys is the
//! number of sessions: a time budget that must close. While there are more than 128 sessions the rate
//! falls to 10 Hz: a sample of many sessions costs the server more and says more. A sample is a moment: what starts and ends
//! between two samples is seen in proportion to its time, not missed. No query text is asked for.

mod chain;
mod mariadb;
mod mariadb_event;
mod query;
mod root;
mod sample;
mod tally;
mod threads;

use crate::announcer::Announcer;
use crate::common::{Common, SinkClosed, send};
use crate::declare::{SamplerDoc, SeriesDoc};
use crate::item::Item;
use crate::mariadb_session::MariadbSession;
use crate::schedule::Schedule;
use crate::source::{SampleError, SourceInfo, Status};
use crate::sql_session::SqlSession;
use crate::stop::Wakeup;
use crate::targets::SamplingRates;
use crate::tier::Account;
use query::Statements;
use sample::{Sample, is_client, with_doing};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tally::Tally;
use threads::Threads;
use underlay_core::Nanos;
use underlay_core::series::Layer;
use underlay_database::{Engine, Target};

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "waits",
    layer: Layer::Database,
    reads: "/proc/<thread>/{stat,schedstat} of the sessions of a server on this host. On PostgreSQL pg_stat_get_activity(NULL), and pg_blocking_pids for sessions that wait on a lock. On MariaDB information_schema.processlist, innodb_trx, innodb_lock_waits and, where the performance schema keeps it, events_waits_current",
    costs: "at 20 Hz and 64 sessions 0.25 % of a core here, as much for the states of threads, and 0.55 % in the server. While locks are followed 0.4 % and 0.9 %. With 1,000 sessions at 10 Hz 0.2 % and 2.8 %",
    needs: "a login to the server; pg_read_all_stats to see sessions of other roles",
    traps: &[
        "a session without a wait event is on a CPU or waiting for one: compare with <process>.run_queue",
        "a session that is idle with ClientRead may wait for a load driver that is short of CPU",
        "a wait on Lock hides what the holder does: see the holders, found by following the chain",
        "the letter after a state (`active/R`) is the state of the session's thread, which is read from the kernel \
         just afterwards: R running or runnable, D asleep in I/O, S asleep; a wait of a thread in R has ended",
        "who a session waits for, at the log or a page, is decided within one sample. It is a session that writes the \
         log or reads a page; if there is none, one that is running or runnable",
        "a holder shown as `idle` had released its lock between the two parts of one query; `unknown` had ended",
        "on MariaDB without performance_schema=ON and performance_schema_consumer_events_waits_current=ON only the state of a session's thread is known. A thread asleep in I/O waits for the file of its system call: a log file means the log, any other its data. Waiting for latches looks like running. The scheduler's counters still show such sleep, without a name",
        "MariaDB is asked nine times per second at most: InnoDB renews its list of transactions only when it was not asked for 100 ms",
        "on MySQL lock chains are not followed",
        "at most 64 waiters are followed per sample: use shares of holders, not their number",
    ],
    series: &[
        SeriesDoc::counter("samples", "samples", "samples of all sessions"),
        SeriesDoc::counter("samples.time", "ns", "wall time of these samples"),
        SeriesDoc::counter("samples.failed", "samples", "samples that got no answer"),
        SeriesDoc::counter(
            "holders",
            "samples",
            "times that locks were followed, also when no session waited",
        ),
        SeriesDoc::counter("holders.time", "ns", "wall time of sampling lock chains"),
        SeriesDoc::gauge("sessions", "sessions", "client sessions in the latest sample"),
        SeriesDoc::counter(
            "sessions.on_cpu",
            "ns",
            "CPU time of the sessions' threads, of a server on this host; missing with more than 512 sessions",
        ),
    ],
};

/// Number of sessions above which a sample is dear enough to be taken less often.
const CROWD: f64 = 128.0;

const RATE_RANGE: std::ops::RangeInclusive<u32> = 10..=100;

/// The sampler, which brings its own loop because it is faster than a tick.
pub(crate) struct Waits {
    /// Of the source.
    name: String,
    status: Status,
    session: Option<Session>,
    period: Duration,
    /// Periods per sample while there are many sessions.
    crowded_stride: u32,
    /// Periods from one following of locks to the next.
    holders_every: u32,
    periods_since_sample: u32,
    periods_since_holders: u32,
    statements: Option<(u64, Statements)>,
    /// What a MariaDB knows, by connection.
    knows: Option<(u64, mariadb::Knows)>,
    tally: Tally,
    /// The threads of the sessions, of a server on this host.
    threads: Option<Threads>,
    /// Those of the latest sample, ascending.
    seen: Vec<i32>,
    costs: Costs,
}

/// How the sessions are asked about.
enum Session {
    Postgres(Box<SqlSession>),
    Mariadb(Box<MariadbSession>),
}

impl Session {
    fn with(target: &Target) -> std::io::Result<Session> {
        Ok(match target.engine {
            Engine::Postgresql => Session::Postgres(Box::new(SqlSession::aside(target)?)),
            Engine::Mariadb => Session::Mariadb(Box::new(MariadbSession::new(target)?)),
        })
    }
}

/// The cumulative values of the source.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    samples: u64,
    samples_time_ns: u64,
    failed: u64,
    holders: u64,
    holders_time_ns: u64,
    sessions: f64,
}

impl Waits {
    /// A sampler of this server's sessions.
    pub(crate) fn new(target: Option<&Target>, rates: &SamplingRates) -> Waits {
        let rate = rates.waits_per_second.clamp(*RATE_RANGE.start(), *RATE_RANGE.end());
        let mut period = Duration::from_secs(1) / rate;
        if target.is_some_and(|target| target.engine == Engine::Mariadb) {
            period = period.max(mariadb::PERIOD_MIN);
        }
        let rate = (1.0 / period.as_secs_f64()) as u32;
        let holders_every = rate / rates.holders_per_second.clamp(1, rate);
        let (status, session) = match target.map(Session::with) {
            Some(Ok(session)) => (Status::Absent("not connected yet".to_string()), Some(session)),
            Some(Err(error)) => {
                (Status::Absent(format!("could not make a runtime: {error}")), None)
            }
            None => (Status::Absent("no database to observe was configured".to_string()), None),
        };
        Waits {
            name: DOC.name.to_string(),
            status,
            session,
            period,
            crowded_stride: (rate / RATE_RANGE.start()).max(1),
            holders_every,
            // Due at once.
            periods_since_sample: u32::MAX,
            periods_since_holders: u32::MAX,
            statements: None,
            knows: None,
            tally: Tally::default(),
            threads: target.and_then(|target| Threads::of(target, &rates.roots.proc)),
            seen: Vec::new(),
            costs: Costs::default(),
        }
    }

    /// A sampler of the sessions of one of several databases.
    pub(crate) fn of_database(name: &str, target: &Target, rates: &SamplingRates) -> Waits {
        Waits { name: format!("{name}/{}", DOC.name), ..Waits::new(Some(target), rates) }
    }

    /// The body of the thread: samples until it is stopped or the receiver is gone.
    pub(crate) fn run(mut self, number: usize, common: &Common, account: &Account) {
        // The receiver going away is a regular end.
        let _ended = self.sample_until_stopped(number, common, account);
    }

    fn sample_until_stopped(
        &mut self,
        number: usize,
        common: &Common,
        account: &Account,
    ) -> Result<(), SinkClosed> {
        let mut announcer = Announcer::new(number);
        self.announce(&mut announcer, common)?;
        if self.session.is_none() {
            return Ok(());
        }
        let mut samples = Schedule::starting_at(self.period, common.origin.elapsed());
        let mut ticks = Schedule::starting_at(common.interval, common.origin.elapsed());
        loop {
            while ticks.due() <= samples.due() {
                if common.stop.sleep_until(common.origin + ticks.due()) == Wakeup::Stopped {
                    return Ok(());
                }
                self.tick(&announcer, common)?;
                ticks.taken(common.origin.elapsed());
            }
            if common.stop.sleep_until(common.origin + samples.due()) == Wakeup::Stopped {
                return Ok(());
            }
            if self.skips() {
                samples.taken(common.origin.elapsed());
                continue;
            }
            let begin = Instant::now();
            let outcome = self.sample(common);
            samples.taken(common.origin.elapsed());
            account.settle(begin.elapsed(), samples.missed());
            self.announce(&mut announcer, common)?;
            announcer.outcome(common, &self.status, &outcome)?;
        }
    }

    /// Whether this period passes without a sample, because there are many sessions.
    fn skips(&mut self) -> bool {
        self.periods_since_sample = self.periods_since_sample.saturating_add(1);
        self.periods_since_holders = self.periods_since_holders.saturating_add(1);
        let stride = if self.costs.sessions > CROWD { self.crowded_stride } else { 1 };
        let skips = self.periods_since_sample < stride;
        if !skips {
            self.periods_since_sample = 0;
        }
        skips
    }

    fn announce(&self, announcer: &mut Announcer, common: &Common) -> Result<(), SinkClosed> {
        let info = || SourceInfo {
            name: self.name.clone(),
            layer: DOC.layer,
            status: self.status.clone(),
            series: DOC.series.iter().map(SeriesDoc::spec).collect(),
        };
        announcer.source(common, info, &self.status, DOC.series.len()).map(drop)
    }

    /// Hands over what was counted since the last tick, and the cumulative costs.
    fn tick(&mut self, announcer: &Announcer, common: &Common) -> Result<(), SinkClosed> {
        if let Some(waits) = self.tally.take() {
            send(common, waits)?;
        }
        if matches!(self.status, Status::Absent(_)) {
            return Ok(());
        }
        let on_cpu = self.threads.as_mut().map_or(f64::NAN, |threads| {
            threads.keep(&self.seen);
            let on_cpu = threads.on_cpu_ns() as f64;
            if Threads::follows_all(self.seen.len()) { on_cpu } else { f64::NAN }
        });
        let costs = &self.costs;
        let values = vec![
            costs.samples as f64,
            costs.samples_time_ns as f64,
            costs.failed as f64,
            costs.holders as f64,
            costs.holders_time_ns as f64,
            costs.sessions,
            on_cpu,
        ];
        let now = common.now();
        send(common, Item::Tick { source: announcer.number(), begin: now, end: now, values })
    }

    /// One sample; reconnects if necessary.
    fn sample(&mut self, common: &Common) -> Result<(), SampleError> {
        let outcome = self.look(common);
        if let Err(error) = &outcome {
            self.costs.failed += 1;
            self.costs.sessions = f64::NAN;
            self.status.still_absent_because(error);
        }
        outcome
    }

    fn look(&mut self, common: &Common) -> Result<(), SampleError> {
        match &mut self.session {
            None => Err(SampleError::Absent("there is no session".to_string())),
            Some(Session::Postgres(_)) => self.look_at_postgres(common),
            Some(Session::Mariadb(_)) => self.look_at_mariadb(common),
        }
    }

    fn look_at_mariadb(&mut self, common: &Common) -> Result<(), SampleError> {
        let Some(Session::Mariadb(session)) = &mut self.session else { return Ok(()) };
        let generation = session.connected()?;
        let known = self.knows.as_ref().filter(|(of, _)| *of == generation);
        let knows = match known {
            Some((_, knows)) => knows.clone(),
            None => {
                let knows = session.run(async |conn| mariadb::introduce(conn).await)?;
                self.knows = Some((generation, knows.clone()));
                self.status = if knows.gaps.is_empty() {
                    Status::Available
                } else {
                    Status::Degraded(knows.gaps.clone())
                };
                knows
            }
        };
        let begin = common.now();
        let mut sample = session.run(async |conn| mariadb::counts(conn, &knows).await)?;
        look_at_threads(&mut self.threads, &mut sample);
        mariadb::name_io(&mut sample, |thread| self.threads.as_ref()?.file_call(thread));
        let end = common.now();
        let someone_waits = sample.iter().any(|session| session.key.class == chain::LOCK);
        let mut holders = Vec::new();
        let is_due = self.periods_since_holders >= self.holders_every;
        if is_due && someone_waits && knows.blockers {
            let (mut links, waiters, threads) =
                session.run(async |conn| mariadb::chains(conn, &knows).await)?;
            self.look_at_holders(&mut links, |connection| threads.get(&connection).copied());
            holders = chain::roots(&links, &waiters);
        }
        self.count(begin, end, sample);
        if is_due {
            self.periods_since_holders = 0;
            self.followed(end, common.now(), holders);
        }
        Ok(())
    }

    fn look_at_postgres(&mut self, common: &Common) -> Result<(), SampleError> {
        let Some(Session::Postgres(session)) = &mut self.session else { return Ok(()) };
        let generation = session.connected()?;
        let known = self.statements.as_ref().filter(|(of, _)| *of == generation);
        let statements = match known {
            Some((_, statements)) => statements.clone(),
            None => {
                let (statements, sees_everything) = session.run(query::introduce)?;
                self.statements = Some((generation, statements.clone()));
                self.status = query::judge(sees_everything);
                statements
            }
        };
        let begin = common.now();
        let mut sample = session.run(async |client| query::counts(client, &statements).await)?;
        look_at_threads(&mut self.threads, &mut sample);
        let end = common.now();
        let waits = |key| is_client(key) && key.class == chain::LOCK;
        let someone_waits = sample.iter().any(|session| waits(&session.key));
        self.count(begin, end, sample);
        if self.periods_since_holders >= self.holders_every {
            self.periods_since_holders = 0;
            self.follow(common, &statements, someone_waits)?;
        }
        Ok(())
    }

    /// Counts one sample.
    fn count(&mut self, begin: Nanos, end: Nanos, sample: Sample) {
        let clients = || sample.iter().filter(|session| is_client(&session.key));
        self.costs.sessions = clients().count() as f64;
        self.seen = clients().map(|session| session.thread).collect();
        self.seen.sort_unstable();
        let roots = root::find(&sample);
        self.costs.samples += 1;
        self.costs.samples_time_ns += end.saturating_sub(begin).0;
        self.tally.add(begin, end, sample);
        self.tally.add_roots(roots);
    }

    /// Adds to the states of those in lock chains what their threads are doing.
    fn look_at_holders(
        &mut self,
        links: &mut BTreeMap<i32, chain::Link>,
        thread: impl Fn(i32) -> Option<i32>,
    ) {
        let Some(threads) = &mut self.threads else { return };
        for (session, link) in links {
            let doing = thread(*session).and_then(|thread| threads.doing(thread));
            link.key = with_doing(std::mem::take(&mut link.key), doing);
        }
    }

    /// Follows the lock chains of this moment; costs the server nothing when no session waits.
    fn follow(
        &mut self,
        common: &Common,
        statements: &Statements,
        someone_waits: bool,
    ) -> Result<(), SampleError> {
        let begin = common.now();
        let mut holders = Vec::new();
        if let (true, Some(Session::Postgres(session))) = (someone_waits, &mut self.session) {
            let (mut links, waiters) =
                session.run(async |client| query::chains(client, statements).await)?;
            self.look_at_holders(&mut links, Some);
            holders = chain::roots(&links, &waiters);
        }
        self.followed(begin, common.now(), holders);
        Ok(())
    }

    /// Counts one following of locks.
    fn followed(&mut self, begin: Nanos, end: Nanos, holders: Vec<chain::ChainRoot>) {
        self.costs.holders += 1;
        self.costs.holders_time_ns += end.saturating_sub(begin).0;
        self.tally.add_holders(begin, end, holders);
    }
}

/// Adds to each session what its thread is doing.
fn look_at_threads(threads: &mut Option<Threads>, sample: &mut Sample) {
    let Some(threads) = threads else { return };
    for session in sample {
        session.doing = threads.doing(session.thread);
    }
}

#[cfg(test)]
mod tests {
    use super::{DOC, Waits};
    use crate::source::Status;
    use crate::targets::SamplingRates;
    use std::time::Duration;

    #[test]
    fn the_rate_is_clamped_and_holders_are_a_share_of_it() {
        let rate = |waits_per_second, holders_per_second| {
            let rates = SamplingRates {
                waits_per_second,
                holders_per_second,
                ..SamplingRates::every(Duration::from_secs(1))
            };
            let waits = Waits::new(None, &rates);
            assert!(matches!(waits.status, Status::Absent(_)));
            (waits.period, waits.holders_every)
        };
        assert_eq!(rate(20, 5), (Duration::from_millis(50), 4));
        assert_eq!(rate(1, 5), (Duration::from_millis(100), 2));
        assert_eq!(rate(1000, 0), (Duration::from_millis(10), 100));
        assert_eq!(rate(10, 100), (Duration::from_millis(100), 1));
        assert_eq!(DOC.series.len(), 7);
    }

    #[test]
    fn a_crowd_is_sampled_ten_times_per_second() {
        let mut waits = Waits::new(None, &SamplingRates::every(Duration::from_secs(1)));
        let mut taken_in_a_second = |sessions| {
            waits.costs.sessions = sessions;
            (0..20).filter(|_| !waits.skips()).count()
        };
        assert_eq!(taken_in_a_second(128.0), 20);
        assert_eq!(taken_in_a_second(129.0), 10);
        assert_eq!(taken_in_a_second(f64::NAN), 20, "a lost server is looked for at full rate");
    }
}
