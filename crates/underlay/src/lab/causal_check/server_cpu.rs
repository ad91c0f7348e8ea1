//! The processors of the database server as something that can be slowed: by the limit of its control group.
//!
//! A server without a limit, or with one that it does not reach, has what it uses and what the host leaves idle. That is
//! what is divided: a limit derived from the number of processors would not be felt where the load generator or the
//! emulator take the rest.

use std::fs;
use std::num::NonZero;
use std::time::{Duration, Instant};

use underlay_core::{Dilation, Resource};
use underlay_host::{Cgroup, HostError};

use super::changeable::Changeable;

/// Least processors that a server is left with.
const LEAST: f64 = 0.05;

/// The processors of a server in a control group.
pub struct ServerCpu<'a> {
    cgroup: Option<&'a Cgroup>,
    /// A session of a dilated run has this part of a processor.
    dilation: Dilation,
    /// The limit of the study, which is in force when nothing is changed.
    usual: Option<f64>,
    before: Option<Reading>,
    /// Processors that the server used or that were idle, in the last measured window.
    available: Option<f64>,
    /// Whether others used most of the host then: what the server could have had is not known.
    is_crowded: bool,
}

/// Part of the host that server and idle time together must have had.
const SHARE_MIN: f64 = 0.5;

/// What had been used at a moment.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    server: Duration,
    idle: Duration,
}

impl<'a> ServerCpu<'a> {
    /// Of a server that is running in its group, if it has one.
    pub fn new(cgroup: Option<&'a Cgroup>, dilation: Dilation) -> ServerCpu<'a> {
        let usual = cgroup.and_then(Cgroup::cpus);
        ServerCpu { cgroup, dilation, usual, before: None, available: None, is_crowded: false }
    }

    /// A measured window begins.
    pub fn window_began(&mut self) {
        self.before = self.read();
    }

    /// A measured window of so many users has ended.
    pub fn window_ended(&mut self, users: u32) {
        let (Some(before), Some(after)) = (self.before.take(), self.read()) else { return };
        let seconds = (after.at - before.at).as_secs_f64();
        let used =
            after.server.saturating_sub(before.server) + after.idle.saturating_sub(before.idle);
        if seconds > 0.0 {
            let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
            let share = used.as_secs_f64() / seconds / processors as f64;
            self.is_crowded = share < SHARE_MIN;
            // A session has one processor of the design at most, whatever is idle.
            let most = f64::from(users) / f64::from(self.dilation.factor());
            self.available = Some((used.as_secs_f64() / seconds).min(most));
        }
    }

    /// Whether and how it can be changed.
    pub fn changeable(&self) -> Changeable {
        let has_controller = self.cgroup.is_some_and(|cgroup| cgroup.paths().cpu.is_some());
        match (has_controller, self.limit(), self.usual) {
            (false, ..) => Changeable::fixed(
                Resource::Cpu,
                "the server has no control group with a CPU limit on this host",
            ),
            (true, None, _) => {
                Changeable::fixed(Resource::Cpu, "the host does not report the server's CPU time")
            }
            (true, Some(_), None) if self.is_crowded => Changeable::fixed(
                Resource::Cpu,
                "other processes used most of this host's processors",
            ),
            // More than everything cannot be given.
            (true, Some(_), None) => Changeable::slower(Resource::Cpu),
            (true, Some(_), Some(_)) => Changeable::both(Resource::Cpu),
        }
    }

    /// Gives the server `1 / factor` of what it could have; 1 restores the study's limit.
    pub fn set_factor(&self, factor: f64) -> Result<(), HostError> {
        let Some(cgroup) = self.cgroup else { return Ok(()) };
        if factor == 1.0 {
            return match cgroup.cpus() == self.usual {
                true => Ok(()),
                false => cgroup.set_cpus(self.usual),
            };
        }
        let limit = match (self.usual, self.limit()) {
            // Faster: the study's own limit is what is raised.
            (Some(usual), _) if factor < 1.0 => usual,
            (_, Some(limit)) => limit,
            (_, None) => return Ok(()),
        };
        cgroup.set_cpus(Some((limit / factor).max(LEAST)))
    }

    fn limit(&self) -> Option<f64> {
        match (self.usual, self.available) {
            (Some(usual), Some(available)) => Some(usual.min(available)),
            (usual, available) => usual.or(available),
        }
    }

    fn read(&self) -> Option<Reading> {
        let server = self.cgroup?.cpu_time()?;
        Some(Reading { at: Instant::now(), server, idle: idle_time()? })
    }
}

/// Time that processors of this host were idle, those that waited for I/O included, since the host started.
fn idle_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().next()?;
    idle_of(line, rustix::param::clock_ticks_per_second())
}

fn idle_of(line: &str, ticks_per_second: u64) -> Option<Duration> {
    let mut fields = line.split_whitespace().skip(4);
    let idle: u64 = fields.next()?.parse().ok()?;
    let iowait: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((idle + iowait) as f64 / ticks_per_second as f64))
}

#[cfg(test)]
mod tests {
    use super::{ServerCpu, idle_of};
    use std::time::Duration;
    use underlay_core::Dilation;

    #[test]
    fn idle_time_is_what_the_kernel_counts() {
        let line = "cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0";
        assert_eq!(idle_of(line, 100), Some(Duration::from_millis(468_451_660)));
        assert_eq!(idle_of("cpu 1 2 3", 100), None);
    }

    #[test]
    fn a_server_without_a_group_cannot_be_slowed_and_need_not_be_restored() {
        let mut cpu = ServerCpu::new(None, Dilation::NONE);
        cpu.window_began();
        cpu.window_ended(4);
        assert!(cpu.changeable().obstacle.is_some());
        cpu.set_factor(1.0).unwrap();
    }
}
