//! What to drive, with whom, and how fast. Values only.

use std::time::Duration;

use underlay_core::{Dilation, Nanos, RootSeed};

use crate::arrivals::Arrivals;
use crate::error::DriveError;

/// When a user starts its next transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// When its previous one is completed, after keying and think times.
    Closed {
        /// Factor on the workload's keying and think times; 0 = none, 1 = as specified.
        key_think: f64,
    },
    /// When an arrival of a schedule is due, whatever became of the previous ones.
    Open {
        /// Arrivals of all types per second, over all users.
        rate_per_second: f64,
        /// Distribution of the gaps.
        arrivals: Arrivals,
        /// From the first `set_users` on, the rate rises in a straight line over this time.
        ramp: Nanos,
        /// Arrivals that may wait for a user, over all threads, before the load counts as not delivered.
        queue_limit: u32,
    },
}

/// Slows down the load generator's part of each transaction, to see whether that part limits throughput.
/// 1 changes nothing; less than 1 has the same effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// Factor on the processor time of each transaction: it is used up, as a slower processor or a more expensive client would.
    pub cpu: f64,
    /// Factor on the time for which a transaction keeps the connection that it shares with other users.
    pub connections: f64,
}

impl Slowdown {
    /// No slowdown.
    pub const NONE: Slowdown = Slowdown { cpu: 1.0, connections: 1.0 };
}

/// One driver: a fixed set of users, of which a changing number is active.
#[derive(Clone, Debug)]
pub struct DriveSpec {
    /// Root of what the users draw. The seed of the workload, unless a repeat shall not replay the
    /// transactions of another one.
    pub inputs: RootSeed,
    /// Users that can be made active.
    pub max_users: u32,
    /// Sessions at most. None, or not fewer than the users: each user has its own. Otherwise the users of a thread
    /// share a pool, and what they wait for it is measured.
    pub connections: Option<u32>,
    /// Worker threads. None: one per core, but not more than users.
    pub threads: Option<usize>,
    /// When transactions start.
    pub pacing: Pacing,
    /// The server cancels a statement that takes longer; its answer says that nothing was
    /// committed. An attempt that takes a second more without any answer is cut off by the client, and its
    /// session given up.
    pub statement_timeout: Duration,
    /// How long transactions may take to finish after `stop` before they are cut off.
    pub stop_grace: Duration,
    /// How many times slower than the host's clock all of this is. Every time above and every time that the driver
    /// reports is design time; time on processors is real.
    pub dilation: Dilation,
    /// Whether the driver runs within the server's CPU limit. Under a dilation its own work is then slowed as the server's is.
    pub shares_server_cpu: bool,
    /// Whether the server runs on this host, so that the processor time of its processes or threads can be measured by type of
    /// transaction.
    pub server_is_here: bool,
}

impl DriveSpec {
    /// A closed loop without keying and think times, one session per user, a thread per core, statements
    /// cancelled after 60 s, 10 s to finish.
    pub fn new(inputs: RootSeed, max_users: u32) -> DriveSpec {
        DriveSpec {
            inputs,
            max_users,
            connections: None,
            threads: None,
            pacing: Pacing::Closed { key_think: 0.0 },
            statement_timeout: Duration::from_secs(60),
            stop_grace: Duration::from_secs(10),
            dilation: Dilation::NONE,
            shares_server_cpu: false,
            server_is_here: false,
        }
    }

    /// Refuses what cannot be driven.
    pub(crate) fn check(&self) -> Result<(), DriveError> {
        if self.max_users == 0 {
            return Err(DriveError::NoUsers);
        }
        if self.connections == Some(0) {
            return Err(DriveError::NoConnections);
        }
        if self.threads == Some(0) {
            return Err(DriveError::NoThreads);
        }
        match self.pacing {
            Pacing::Closed { key_think } if !(key_think.is_finite() && key_think >= 0.0) => {
                Err(DriveError::KeyThink(key_think))
            }
            Pacing::Open { rate_per_second, .. } => check_rate(rate_per_second),
            Pacing::Closed { .. } => Ok(()),
        }
    }

    /// Worker threads: as asked, but never more than users or connections.
    pub(crate) fn thread_count(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = self.threads.unwrap_or_else(cores);
        let most = self.max_users.min(self.connections.unwrap_or(u32::MAX));
        u32::try_from(wanted).unwrap_or(u32::MAX).min(most)
    }
}

impl Pacing {
    /// An open loop from the start at full rate, with a queue for ten seconds of arrivals.
    pub fn open(rate_per_second: f64, arrivals: Arrivals) -> Pacing {
        let queue_limit = (rate_per_second * 10.0).clamp(1_000.0, 1_000_000.0) as u32;
        Pacing::Open { rate_per_second, arrivals, ramp: Nanos::ZERO, queue_limit }
    }
}

pub(crate) fn check_rate(rate_per_second: f64) -> Result<(), DriveError> {
    if rate_per_second.is_finite() && rate_per_second > 0.0 {
        Ok(())
    } else {
        Err(DriveError::Rate(rate_per_second))
    }
}

#[cfg(test)]
mod tests {
    use underlay_core::RootSeed;

    use super::DriveSpec;

    #[test]
    fn no_thread_is_without_a_session() {
        let spec = |users, connections, threads| DriveSpec {
            connections,
            threads,
            ..DriveSpec::new(RootSeed(1), users)
        };
        assert_eq!(spec(3, None, Some(5)).thread_count(), 3);
        assert_eq!(spec(30, Some(2), Some(5)).thread_count(), 2);
        assert_eq!(spec(30, Some(2), Some(1)).thread_count(), 1);
        assert_eq!(spec(1, None, None).thread_count(), 1);
    }
}
