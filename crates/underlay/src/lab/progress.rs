//! Progress on a terminal: one bar with the time left and the live rate, and a line per finished step.
//!
//! Everything goes to standard error. Without a terminal (or with `--no-progress`) only the lines are
//! written, so that a log stays readable.

use crate::lab::event::{Event, Observer};
use crate::output::safe;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_record::{CheckMoment, PhaseKind, RunStatus, Severity};

/// Whether a bar is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// Drawn when standard error is a terminal.
    Automatic,
    /// Never drawn.
    Never,
}

/// Draws events.
pub struct Progress {
    bar: ProgressBar,
    /// Expected time of the whole execution, and since when.
    expected: Nanos,
    began: Instant,
    run: String,
    phase: String,
    /// Whether the workload is a job: it has sessions, and its headline is known at its end alone.
    is_job: bool,
    /// Whether it is a block load: numbers of users are those of requests in flight per volume.
    is_block_load: bool,
    /// Whether each measured second is a line that stays.
    keeps_seconds: bool,
    is_measuring: bool,
    /// Findings that were printed.
    said: BTreeSet<String>,
}

/// `1 run`, `2 runs`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

impl Progress {
    /// A progress display; nothing is drawn before the first event.
    pub fn new(bar: Bar) -> Progress {
        let target = match bar {
            Bar::Automatic => ProgressDrawTarget::stderr(),
            Bar::Never => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        let style = ProgressStyle::with_template("{bar:24} {percent:>3}%  {prefix}  {msg}")
            .expect("the template is fixed and correct");
        bar.set_style(style);
        Progress {
            bar,
            expected: Nanos::ZERO,
            began: Instant::now(),
            run: String::new(),
            phase: String::new(),
            is_job: false,
            is_block_load: false,
            keeps_seconds: false,
            is_measuring: false,
            said: BTreeSet::new(),
        }
    }

    /// The same of one run outside of a study, which is expected to take so long (zero: unknown). Its measured seconds stay.
    pub fn of_one_run(name: &str, expected: Nanos, is_job: bool) -> Progress {
        let run = name.to_string();
        Progress { run, expected, is_job, keeps_seconds: true, ..Progress::new(Bar::Automatic) }
    }

    /// Who or what is at work at once: `16 users`, `32 requests in flight per volume`.
    fn at_work(&self, users: u32) -> String {
        match self.is_block_load {
            true => format!("{} in flight per volume", count(users as usize, "request")),
            false => count(users as usize, "user"),
        }
    }

    fn line(&self, text: &str) {
        if self.bar.is_hidden() {
            errln!("{text}");
        } else {
            self.bar.println(safe(text));
        }
    }

    fn tick(&self, detail: &str) {
        let elapsed = Nanos::from(self.began.elapsed());
        let share = if self.expected == Nanos::ZERO {
            0.0
        } else {
            // The estimate may be short: never claim to be done before the end.
            (elapsed.as_secs_f64() / self.expected.as_secs_f64()).min(0.99)
        };
        self.bar.set_position((share * 1000.0) as u64);
        let seconds = |time: Nanos| Nanos(time.0 / 1_000_000_000 * 1_000_000_000);
        let left = match self.expected.saturating_sub(elapsed) {
            Nanos::ZERO if self.expected == Nanos::ZERO => format!("{} so far", seconds(elapsed)),
            Nanos::ZERO => "finishing".to_string(),
            left => format!("{} left", seconds(left)),
        };
        self.bar.set_prefix(left);
        let message = format!("{}  {}  {detail}", self.run, self.phase);
        self.bar.set_message(safe(&message).into_owned());
    }
}

impl Observer for Progress {
    fn notice(&mut self, event: &Event<'_>) {
        match event {
            Event::Began { record, runs_done, runs, expected, dilation, is_job, is_block_load } => {
                self.is_block_load = *is_block_load;
                self.expected = *expected;
                self.is_job = *is_job;
                self.began = Instant::now();
                if *runs_done > 0 {
                    self.line(&format!(
                        "resuming {}: {runs_done} of {} done",
                        record.display(),
                        count(*runs, "run")
                    ));
                } else {
                    self.line(&format!("recording to {}", record.display()));
                }
                let left = count(runs - runs_done, "run");
                // The duration of a simulation is unknown.
                let about = match *expected {
                    Nanos::ZERO => String::new(),
                    expected => format!(", about {expected}"),
                };
                self.line(&format!("{left} to go{about}"));
                if dilation.is_dilated() {
                    self.line(&format!(
                        "time dilation {}: everything takes {0} times as long; results are in design time",
                        dilation.factor()
                    ));
                }
                self.bar.enable_steady_tick(Duration::from_millis(500));
            }
            Event::CleanedUp(what) => {
                self.line(&format!("removed what a killed run had left: {what}"))
            }
            Event::TemplateLoading { share, rows } => {
                self.phase = "loading".to_string();
                self.tick(&format!("{:.0} %, {rows} rows", share * 100.0));
            }
            Event::TemplateReady { reused, size, elapsed } => self.line(&if *reused {
                format!("database of {size} from an earlier run, verified in {elapsed}")
            } else {
                format!("database of {size} loaded and checked in {elapsed}")
            }),
            Event::RunBegan { position, runs, design, repeat } => {
                self.run = format!("run {position}/{runs} {design}");
                self.line(&format!("run {position} of {runs}: {design}, repeat {repeat}"));
            }
            Event::PhaseBegan { kind, users, .. } => {
                self.is_measuring = *kind == PhaseKind::Measure;
                self.phase = match users {
                    Some(users) if *kind == PhaseKind::Measure && self.is_job => {
                        format!("working with {}", count(*users as usize, "session"))
                    }
                    Some(_) if self.is_job || *kind == PhaseKind::CoolDown => kind.to_string(),
                    Some(users) if *kind == PhaseKind::Measure => {
                        format!("measuring {}", self.at_work(*users))
                    }
                    Some(users) if *kind == PhaseKind::CausalCheck => {
                        format!("causal check with {}", count(*users as usize, "user"))
                    }
                    Some(users) if self.is_block_load => {
                        format!("{kind} with {}", self.at_work(*users))
                    }
                    Some(users) => format!("{kind} to {}", count(*users as usize, "user")),
                    None => kind.to_string(),
                };
                self.tick("");
            }
            Event::Second { counted, counted_per_second, errors, .. } if self.is_job => {
                let errors = if *errors > 0 { format!(", {errors} errors") } else { String::new() };
                self.tick(&format!("{counted_per_second:.0} {counted} done per second{errors}"));
            }
            Event::Second { headline, unit, users, response_p99, errors, .. } => {
                let p99 = response_p99.map_or(String::new(), |p99| format!(", p99 {p99}"));
                let errors = if *errors > 0 { format!(", {errors} errors") } else { String::new() };
                let users = self.at_work(*users);
                if self.keeps_seconds && self.is_measuring {
                    self.line(&format!("{headline:>8.0} {unit} with {users}{p99}{errors}"));
                }
                self.tick(&format!("{headline:.0} {unit} with {users}{p99}{errors}"));
            }
            Event::Checked { moment, checks, failed } => {
                let when = match moment {
                    CheckMoment::Before => "before",
                    CheckMoment::After => "after",
                };
                if *failed > 0 {
                    self.line(&format!(
                        "  {failed} of {checks} consistency checks {when} the load FAILED"
                    ));
                }
            }
            Event::Happened { text } => self.line(&format!("  {text}")),
            Event::Found { severity, text } => {
                let word = match severity {
                    Severity::Information => "note",
                    Severity::Warning => "warning",
                    Severity::Invalid => "INVALID",
                };
                // What is so in every run is said once; what makes a run invalid, of each.
                let is_new = self.said.insert(text.to_string());
                if is_new || *severity == Severity::Invalid {
                    self.line(&format!("  {word}: {text}"));
                }
            }
            Event::RunEnded { status, unit, rungs, reason } => {
                let rungs: Vec<String> = rungs
                    .iter()
                    .map(|(users, headline)| match self.is_job {
                        true => format!("{headline:.0}"),
                        false => format!("{} {headline:.0}", self.at_work(*users)),
                    })
                    .collect();
                let rungs = if rungs.is_empty() {
                    String::new()
                } else {
                    format!("{unit}: {}", rungs.join(", "))
                };
                match (status, reason) {
                    (RunStatus::Finished, _) => self.line(&format!("  {rungs}")),
                    (status, Some(reason)) => self.line(&format!("  {status}: {reason}. {rungs}")),
                    (status, None) => self.line(&format!("  {status}. {rungs}")),
                }
            }
            Event::Ended => self.bar.finish_and_clear(),
        }
    }
}
