//! Offering the load: a measured window with weights changed on the way, or a search for the highest rate
//! that meets a latency target.

use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_driver::{
    ConnectTick, DriveTick, Driver, Found, Mix, Objective, RateSearch, SearchSpec, Step, StepTaken,
    Weights, judge,
};
use underlay_workload::transactional::{RunAccounting, Shape};

use super::{Arguments, RETURN_LIMIT, Reading, Subject, Workload};
use crate::lab::interrupt;
use crate::lab::rate_search::describe;
use crate::stop::{Stop, chain};

/// How near the highest rate that holds and the lowest that fails come.
const RESOLUTION: f64 = 1.05;
/// The rate while queues empty.
const RESTING_RATE: f64 = 0.1;
/// The queues of a rate that was far too high may take this long to empty.
const REST_MAX: Duration = Duration::from_secs(120);
/// How often it is looked whether they are.
const REST_TICK: Duration = Duration::from_millis(200);

/// Weights that are set at a time.
#[derive(Clone, Debug)]
pub(super) struct WeightsAt {
    /// Since the begin of the measured load; none is before all load.
    pub(super) after: Option<Nanos>,
    /// As they were written.
    pub(super) text: String,
    weights: Weights,
}

/// The measured part of a run.
pub(super) struct Measured {
    /// All of it; of a search its last step.
    pub(super) tick: DriveTick,
    /// CPU time of the driver's threads within it.
    pub(super) cpu_ns: u64,
    /// What was counted in each second or so of it; of a search nothing.
    pub(super) seconds: Vec<Second>,
    /// Of users who think: the transactions that were through when it began, where those were fewer than users.
    pub(super) early: Option<u64>,
    /// The database's own counts at its two ends, if it could be asked at both.
    pub(super) readings: Option<(Reading, Reading)>,
    /// The steps of a search, and what it came to.
    pub(super) search: Option<Search>,
}

/// What users saw within about a second.
pub(super) struct Second {
    /// Its end, since the begin of the measured load.
    pub(super) end: Nanos,
    /// What the headline counts.
    pub(super) headline_rate: f64,
    /// Their response times.
    pub(super) response_p99: Option<Nanos>,
    pub(super) errors: u64,
}

/// A search as it went.
pub(super) struct Search {
    pub(super) objective: Objective,
    pub(super) steps: Vec<StepTaken>,
    /// None when it was stopped.
    pub(super) found: Option<Found>,
    /// It was stopped because the database did not answer any more.
    pub(super) is_away: bool,
}

/// What became of a step of a search.
enum Offered {
    /// It was measured.
    Window {
        /// What became of sessions in the unmeasured time before.
        before: ConnectTick,
        /// The measured time.
        ticks: Vec<DriveTick>,
        /// CPU time of the driver within it.
        cpu_ns: u64,
    },
    /// The user stopped it.
    Stopped,
    /// The database does not answer any more.
    Away,
}

impl WeightsAt {
    pub(super) fn parse(
        after: Option<Nanos>,
        text: &str,
        shape: &'static Shape,
    ) -> Result<WeightsAt, String> {
        let weights = Weights::parse(text, shape).map_err(|error| error.to_string())?;
        Ok(WeightsAt { after, text: text.to_string(), weights })
    }

    /// The types that can be drawn.
    pub(super) fn types(&self, shape: &'static Shape) -> impl Iterator<Item = &'static str> {
        let drawn = shape.types.iter().zip(self.weights.values());
        drawn.filter_map(|(name, weight)| (weight > 0).then_some(*name))
    }
}

/// Sets weights.
pub(super) fn set<B: RunAccounting>(driver: &Driver<B>, change: &WeightsAt) -> Result<(), Stop> {
    driver
        .set_mix(Mix::Weighted(change.weights.clone()))
        .map_err(|error| Stop::bad_input(chain(&error)))
}

/// Warms up, then measures.
pub(super) fn measure<S: Subject>(
    arguments: &Arguments,
    changes: &[WeightsAt],
    subject: &S,
    driver: &Driver<S::Accounting>,
) -> Result<Measured, Stop> {
    driver.set_users(arguments.users());
    if !interrupt::sleep_until(Instant::now() + Duration::from(arguments.warm_up)) {
        return Err(Stop::interrupted("stopped by the user before anything was measured"));
    }
    // A server that is away now may be back later; what the users see of it is counted meanwhile.
    let first = ask(subject);
    let warm_up = driver.tick();
    let cpu_ns_before = warm_up.cpu_ns;
    let early = early(arguments, &warm_up);
    if let Some(through) = early {
        errln!("{}", too_early(through, arguments.users()));
    }
    let began = Instant::now();
    let end = began + Duration::from(arguments.duration);
    let mut pending = changes.iter().filter(|change| change.after.is_some()).peekable();
    let mut window = DriveTick::default();
    let mut seconds = Vec::new();
    loop {
        let mut next = end.min(Instant::now() + Duration::from_secs(1));
        let due = |change: &WeightsAt| began + Duration::from(change.after.unwrap_or(Nanos::ZERO));
        if let Some(change) = pending.peek() {
            next = next.min(due(change).max(Instant::now()));
        }
        let go_on = interrupt::sleep_until(next);
        while let Some(change) = pending.next_if(|change| due(change) <= Instant::now()) {
            set(driver, change)?;
            errln!("weights from now on: {}", change.text);
        }
        let tick = driver.tick();
        tell(&tick);
        append(&mut window, &tick);
        seconds.push(Second {
            end: tick.end.saturating_sub(window.begin),
            headline_rate: tick.headline_rate(),
            response_p99: tick.headline_response().quantile(0.99).map(Nanos),
            errors: tick.errors(),
        });
        // Each further attempt would be refused as well.
        let is_denied = super::denial(&window).is_some();
        if !go_on || is_denied || Instant::now() >= end {
            return Ok(Measured {
                cpu_ns: window.cpu_ns.saturating_sub(cpu_ns_before),
                tick: window,
                seconds,
                early,
                readings: first.zip(ask(subject)),
                search: None,
            });
        }
    }
}

/// The transactions of a warm-up in which not every user who thinks came to one: what follows is less than they will do.
fn early(arguments: &Arguments, warm_up: &DriveTick) -> Option<u64> {
    let through = warm_up.named().map(|(_, counts)| counts.ended()).sum();
    let thinks = !arguments.is_open()
        && arguments.key_think > 0.0
        && arguments.workload != Workload::Sysbench;
    (thinks && through < u64::from(arguments.users())).then_some(through)
}

/// That, for people.
pub(super) fn too_early(through: u64, users: u32) -> String {
    format!(
        "warning: {through} transactions of {users} users were through when the measured load began: users begin with \
         thinking and keying, so it shows less than they do later; make --warm-up longer"
    )
}

/// Searches for the highest rate that meets `objective`.
pub(super) fn search<B: RunAccounting>(
    arguments: &Arguments,
    objective: Objective,
    driver: &Driver<B>,
) -> Result<Measured, Stop> {
    let mut search = RateSearch::new(SearchSpec {
        objective,
        first_rate: arguments.first_rate(),
        resolution: RESOLUTION,
        settle: arguments.warm_up,
        measure: arguments.duration,
    });
    driver.set_users(arguments.users());
    let mut last = (DriveTick::default(), 0);
    let mut is_away = false;
    while let Some(step) = search.next() {
        let (before, ticks, cpu_ns) = match carry_out(driver, &step)? {
            Offered::Window { before, ticks, cpu_ns } => (before, ticks, cpu_ns),
            Offered::Stopped => break,
            Offered::Away => {
                is_away = true;
                break;
            }
        };
        let taken = search.observe(step, judge(&objective, &before, &ticks));
        errln!("{}", describe(&taken, &objective));
        let mut window = DriveTick::default();
        ticks.iter().for_each(|tick| append(&mut window, tick));
        last = (window, cpu_ns);
        if super::denial(&last.0).is_some() {
            break;
        }
    }
    let found = search.found();
    let steps = search.taken().to_vec();
    Ok(Measured {
        tick: last.0,
        cpu_ns: last.1,
        seconds: Vec::new(),
        early: None,
        readings: None,
        search: Some(Search { objective, steps, found, is_away }),
    })
}

/// One step.
fn carry_out<B: RunAccounting>(driver: &Driver<B>, step: &Step) -> Result<Offered, Stop> {
    let set_rate = |rate: f64| {
        driver.set_rate(rate, Nanos::ZERO).map_err(|error| Stop::bad_input(chain(&error)))
    };
    if step.rest_first {
        set_rate(RESTING_RATE)?;
        let limit = Instant::now() + REST_MAX;
        let mut answered = Instant::now();
        loop {
            let tick = driver.tick();
            // Users who wait for a lock get no errors: only attempts to connect tell that nobody is there.
            if tick.completed() > 0 || tick.connects.opened > 0 {
                answered = Instant::now();
            } else if answered.elapsed() >= RETURN_LIMIT && tick.connects.errors.total() > 0 {
                return Ok(Offered::Away);
            }
            let at_rest = tick.arrivals.queued == 0 && tick.users.in_transaction == 0;
            if at_rest || Instant::now() >= limit {
                break;
            }
            if !interrupt::sleep_until(Instant::now() + REST_TICK) {
                return Ok(Offered::Stopped);
            }
        }
    }
    set_rate(step.rate_per_second)?;
    if !interrupt::sleep_until(Instant::now() + Duration::from(step.settle)) {
        return Ok(Offered::Stopped);
    }
    let settled = driver.tick();
    let end = Instant::now() + Duration::from(step.measure);
    let mut ticks = Vec::new();
    // At least as many ticks as the judgement needs batches.
    let length = Duration::from(step.measure).min(Duration::from_secs(10)) / 10;
    while Instant::now() < end {
        if !interrupt::sleep_until(end.min(Instant::now() + length)) {
            return Ok(Offered::Stopped);
        }
        ticks.push(driver.tick());
    }
    let cpu_ns = ticks.last().map_or(0, |tick| tick.cpu_ns.saturating_sub(settled.cpu_ns));
    Ok(Offered::Window { before: settled.connects, ticks, cpu_ns })
}

/// The database's own counts, if it can be asked.
fn ask<S: Subject>(subject: &S) -> Option<Reading> {
    let reading = subject.reading();
    reading.inspect_err(|stop| errln!("{stop}")).ok()
}

fn tell(tick: &DriveTick) {
    let p99 = tick.headline_response().quantile(0.99);
    errln!(
        "{:>8.0} {}  p99 {:>8}  {} errors",
        tick.headline_rate(),
        tick.shape.headline.unit,
        p99.map_or("-".to_string(), |p99| Nanos(p99).to_string()),
        tick.errors()
    );
}

fn append(window: &mut DriveTick, tick: &DriveTick) {
    if window.types.is_empty() {
        window.begin = tick.begin;
    }
    window.append(tick);
}
