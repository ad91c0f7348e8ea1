//! Progress lines on standard error.

use std::io::IsTerminal;
use std::time::Duration;
use underlay_core::Nanos;

use crate::lab::block::Second;

pub(super) fn line(second: &Second) -> String {
    let per_second = 1e9 / (second.end.0 - second.begin.0).max(1) as f64;
    let rate = |count: u64| count as f64 * per_second;
    let time = |ns: Option<u64>| ns.map_or("-".to_string(), |ns| Nanos(ns).to_string());
    let waiting = match second.backlog {
        0 => String::new(),
        count => format!(", {count} waiting"),
    };
    format!(
        "{:>4.0} s  {:>9.0} /s  {:>8.1} MB/s  p50 {}  p99 {}  max {}{waiting}",
        second.end.as_secs_f64(),
        rate(second.reads + second.writes),
        rate(second.bytes) / 1e6,
        time(second.p50),
        time(second.p99),
        time(second.max)
    )
}

/// Lines on standard error while something goes on, for people who watch: at most two a second.
pub(super) struct Progress {
    pub(super) what: Option<String>,
    pub(super) shown: bool,
    pub(super) last: Option<std::time::Instant>,
}

impl Progress {
    pub(super) fn new(what: String) -> Progress {
        Progress { what: Some(what), shown: std::io::stderr().is_terminal(), last: None }
    }

    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        let recent = self.last.is_some_and(|last| last.elapsed() < Duration::from_millis(400));
        if !self.shown || recent {
            return;
        }
        if let Some(what) = self.what.take() {
            errln!("{what}");
        }
        self.last = Some(std::time::Instant::now());
        errln!("  {}", text());
    }
}
