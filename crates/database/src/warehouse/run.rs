//! The power run and the throughput run: which queries were sent, and how long each answer took.
//!
//! A stream asks one query after the other, each as soon as the one before was answered: there is no rate to keep, so
//! the time of a query counts from when it is sent. Nothing is retried.

use std::time::{Duration, Instant};

use underlay_core::Histogram;
use underlay_workload::warehouse::{Population, order_of_stream};

use super::sql::queries;
use super::{WarehouseError, refresh, schema};
use crate::connection::Connection;
use crate::parallel::on_runtime;
use crate::schema_ownership::state::SchemaOwner;
use crate::stop::unless_stopped;
use crate::target::Target;

/// What was done at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A query, 1 to 22.
    Query(u8),
    /// The insertion of orders.
    Insert,
    /// The deletion of orders.
    Delete,
}

/// What a run took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// From the first statement to the last answer.
    pub duration: Duration,
    /// Every step of every stream: stream, step, time, rows of the answer.
    pub steps: Vec<(u32, Step, Duration, usize)>,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
}

impl Step {
    /// All steps, queries first.
    pub fn all() -> impl Iterator<Item = Step> {
        (1..=22).map(Step::Query).chain([Step::Insert, Step::Delete])
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Query(number) => write!(f, "Q{number}"),
            Step::Insert => write!(f, "RF1"),
            Step::Delete => write!(f, "RF2"),
        }
    }
}

impl Measured {
    /// Times of a step, in nanoseconds.
    pub fn latency_ns(&self, step: Step) -> Histogram {
        let mut histogram = Histogram::new();
        for (_, _, time, _) in self.steps.iter().filter(|(_, of, ..)| *of == step) {
            histogram.record(time.as_nanos() as u64);
        }
        histogram
    }

    /// How many queries were answered.
    pub fn queries(&self) -> usize {
        self.steps.iter().filter(|(_, step, ..)| matches!(step, Step::Query(_))).count()
    }

    /// Geometric mean of the times of all steps. As in the specification no time counts as less than a thousandth of
    /// the longest. `None` without steps.
    pub fn geometric_mean(&self) -> Option<Duration> {
        let longest =
            self.steps.iter().map(|(_, _, time, _)| time.as_secs_f64()).fold(0.0, f64::max);
        if self.steps.is_empty() || longest == 0.0 {
            return None;
        }
        let logs =
            self.steps.iter().map(|(_, _, time, _)| time.as_secs_f64().max(longest / 1000.0).ln());
        let mean = logs.sum::<f64>() / self.steps.len() as f64;
        Some(Duration::from_secs_f64(mean.exp()))
    }
}

/// Called for every step that ended, by the thread of its stream.
pub type Took<'a> = dyn Fn(Step, Duration) + Sync + 'a;

/// Carries out steps on a connection of its own.
struct Stream<'a, C> {
    connection: C,
    number: u32,
    population: &'a Population,
    stop: &'a (dyn Fn() -> bool + Sync),
    took: &'a Took<'a>,
    steps: Vec<(u32, Step, Duration, usize)>,
    is_stopped: bool,
}

impl<'a, C: SchemaOwner + Connection> Stream<'a, C> {
    async fn open(
        target: &Target,
        number: u32,
        population: &'a Population,
        (stop, took): Watched<'a>,
    ) -> Result<Stream<'a, C>, WarehouseError> {
        let connection = schema::open(target).await?;
        let (steps, is_stopped) = (Vec::new(), false);
        Ok(Stream { connection, number, population, stop, took, steps, is_stopped })
    }

    async fn step(&mut self, step: Step) -> Result<(), WarehouseError> {
        if (self.stop)() {
            self.is_stopped = true;
            return Ok(());
        }
        let (connection, population) = (&mut self.connection, self.population);
        let mut rows = 0;
        let began = match step {
            Step::Query(number) => {
                let query = population.query(self.number, number);
                let sql = queries::sql(&query, population.scale);
                let (doing, began) = (step.to_string(), Instant::now());
                let mut count = |_| rows += 1;
                let answer = connection.read(&sql, &mut count);
                // A query can take hours; the server gives it up with its connection.
                let Some(answer) = unless_stopped(self.stop, answer).await else {
                    self.is_stopped = true;
                    return Ok(());
                };
                answer.map_err(WarehouseError::during(&doing))?;
                began
            }
            Step::Insert => {
                let began = Instant::now();
                refresh::insert(connection, population).await?;
                began
            }
            Step::Delete => {
                let began = Instant::now();
                refresh::delete(connection, population).await?;
                began
            }
        };
        let time = began.elapsed();
        (self.took)(step, time);
        self.steps.push((self.number, step, time, rows));
        Ok(())
    }

    async fn queries(&mut self) -> Result<(), WarehouseError> {
        for number in order_of_stream(self.number) {
            self.step(Step::Query(*number)).await?;
        }
        Ok(())
    }
}

/// When to stop, and what is called for every step.
pub(super) type Watched<'a> = (&'a (dyn Fn() -> bool + Sync), &'a Took<'a>);

/// See [`super::power_run`].
pub(super) fn power_run<C: SchemaOwner + Connection>(
    target: &Target,
    population: &Population,
    watched: Watched<'_>,
) -> Result<Measured, WarehouseError> {
    let target = target.with_application_name("underlay-drive");
    on_runtime(async {
        let mut stream = Stream::<C>::open(&target, 0, population, watched).await?;
        let began = Instant::now();
        stream.step(Step::Insert).await?;
        stream.queries().await?;
        // What was inserted is made up for even when the run was stopped.
        stream.step(Step::Delete).await?;
        Ok(Measured {
            duration: began.elapsed(),
            steps: stream.steps,
            is_stopped: stream.is_stopped,
        })
    })
}

/// See [`super::throughput_run`].
pub(super) fn throughput_run<C: SchemaOwner + Connection>(
    target: &Target,
    population: &Population,
    streams: u32,
    watched: Watched<'_>,
) -> Result<Measured, WarehouseError> {
    let target = target.with_application_name("underlay-drive");
    let began = Instant::now();
    let one = |number: u32| {
        on_runtime(async {
            let mut stream = Stream::<C>::open(&target, number, population, watched).await?;
            if number > 0 {
                stream.queries().await?;
            } else {
                for _ in 0..streams {
                    stream.step(Step::Insert).await?;
                    stream.step(Step::Delete).await?;
                }
            }
            Ok::<_, WarehouseError>((stream.steps, stream.is_stopped))
        })
    };
    let ended = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..=streams)
            .map(|number| {
                let named = std::thread::Builder::new().name(format!("stream-{number}"));
                let one = &one;
                named.spawn_scoped(scope, move || one(number)).map_err(WarehouseError::Thread)
            })
            .collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(|handle| handle.and_then(join)).collect::<Vec<_>>()
    });
    let mut measured = Measured { duration: began.elapsed(), steps: Vec::new(), is_stopped: false };
    for stream in ended {
        let (steps, is_stopped) = stream?;
        measured.steps.extend(steps);
        measured.is_stopped |= is_stopped;
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::{Measured, Step};
    use std::time::Duration;

    #[test]
    fn the_mean_is_geometric_and_short_times_are_raised() {
        let step = |number, ms| (0, Step::Query(number), Duration::from_millis(ms), 0);
        let measured = |steps| Measured { duration: Duration::ZERO, steps, is_stopped: false };
        let mean = measured(vec![step(1, 100), step(2, 400)]).geometric_mean().unwrap();
        assert!((mean.as_secs_f64() - 0.2).abs() < 1e-9);
        // 1 ms counts as 10 ms beside 10 s.
        let mean = measured(vec![step(1, 1), step(2, 10_000)]).geometric_mean().unwrap();
        assert!((mean.as_secs_f64() - 0.1f64.sqrt()).abs() < 1e-9);
        assert_eq!(measured(Vec::new()).geometric_mean(), None);
        assert_eq!(Step::all().count(), 24);
    }
}
