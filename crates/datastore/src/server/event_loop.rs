//! The one thread that serves: answers that are due, commands, requests, in this order.
//!
//! A single thread because every hand-over to another costs as much as all other work on a 4 KiB request together,
//! and on a virtual machine, where it may have to wake a CPU, ten times as much. The thread sleeps until a
//! request or a command arrives or the next answer is due, and sees by how much it woke late.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use underlay_core::Nanos;

use super::alarm::Alarm;
use super::commands::Commands;
use super::fuse_device::Received;
use super::fuse_front::MAX_REQUEST_BYTES;
use super::fuse_protocol::{WRITE_OVERHEAD_BYTES, parse};
use super::service::Service;

/// The kernel wants room for the largest write and a little more.
const REQUEST_BUFFER_BYTES: usize = MAX_REQUEST_BYTES as usize + WRITE_OVERHEAD_BYTES + 4096;
/// Going to sleep and waking up costs the CPU about this long on a virtual machine (the switch, the timer,
/// the wake-up of a CPU), so staying awake for less is cheaper as well as more punctual.
const SHORTEST_SLEEP: Nanos = Nanos(10_000);

/// As long as there are no NBD clients, new ones are looked for once in so many turns: each look costs as much as a
/// request.
const TURNS_BETWEEN_LOOKS: u32 = 256;

/// Serves until the file system is unmounted, or until told to end.
pub(crate) fn run(service: &mut Service, commands: &Commands) -> io::Result<()> {
    let mut buffer = vec![1u8; REQUEST_BUFFER_BYTES].into_boxed_slice();
    let mut alarm = Alarm::new(service.clock)?;
    let mut arrivals = Arrivals::default();
    let mut turn = 0u32;
    loop {
        service.answer_due();
        commands.obey_waiting(service);
        if service.is_ending {
            break;
        }
        turn = turn.wrapping_add(1);
        if (service.nbd.has_clients() || turn.is_multiple_of(TURNS_BETWEEN_LOOKS))
            && service.serve_nbd()?
        {
            arrivals.note(service.clock.now());
        }
        if service.ublk.is_any() && service.serve_ublk() {
            arrivals.note(service.clock.now());
        }
        service.ublk.submit()?;
        let received = match &service.device {
            Some(device) => device.receive(&mut buffer)?,
            None => Received::Nothing,
        };
        match received {
            Received::Request(length) => match parse(&buffer[..length]) {
                Ok(request) => {
                    arrivals.note(service.clock.now());
                    service.serve(&request);
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            },
            Received::Nothing if is_worth_waiting(service, &arrivals) => std::hint::spin_loop(),
            Received::Nothing => {
                if sleep(service, commands, &mut alarm)? == Woken::ByClient {
                    turn = TURNS_BETWEEN_LOOKS - 1;
                }
            }
            Received::Unmounted => break,
        }
    }
    Ok(())
}

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// Somebody on an NBD socket.
    ByClient,
    Otherwise,
}

/// How closely requests follow each other.
#[derive(Debug, Default)]
struct Arrivals {
    last: Nanos,
    /// Running mean of the time between two, with weight 1/8 for the newest.
    gap_ns: u64,
}

impl Arrivals {
    /// Longer gaps all mean the same: seldom.
    const GAP_MAX: Nanos = Nanos(1_000_000);

    fn note(&mut self, now: Nanos) {
        let gap = now.saturating_sub(self.last).min(Arrivals::GAP_MAX);
        self.gap_ns = (7 * self.gap_ns + gap.0) / 8;
        self.last = now;
    }

    /// Whether the next may be expected before a sleep would pay off.
    fn is_next_close(&self, now: Nanos) -> bool {
        let usual = Nanos(self.gap_ns);
        usual < SHORTEST_SLEEP && now < self.last + SHORTEST_SLEEP
    }
}

/// Whether something will be to be done so soon that sleeping until then would cost more.
fn is_worth_waiting(service: &Service, arrivals: &Arrivals) -> bool {
    let now = service.clock.now();
    if service.nbd.has_resumable() {
        return true;
    }
    let lead = service.engine.path.lead().max(SHORTEST_SLEEP);
    let is_answer_close = service.engine.next_answer().is_some_and(|next| next <= now + lead);
    is_answer_close || arrivals.is_next_close(now)
}

/// Sleeps until something is to be done.
fn sleep(service: &mut Service, commands: &Commands, alarm: &mut Alarm) -> io::Result<Woken> {
    let began = service.clock.now();
    if let Some(next) = service.engine.next_answer() {
        // Timers of virtual machines come late by some 5 to 30 us: up early, the rest is waited out awake.
        alarm.by(next.saturating_sub(service.engine.path.lead()))?;
    }
    // What would be answered while this sleeps must be with the driver.
    service.ublk.submit()?;
    let mut sources = [
        PollFd::new(commands, PollFlags::IN),
        PollFd::new(alarm, PollFlags::IN),
        PollFd::new(&service.nbd, PollFlags::IN),
        // Without a file system, or without ublk, there is one source less; these are asked for nothing.
        PollFd::new(commands, PollFlags::empty()),
        PollFd::new(commands, PollFlags::empty()),
    ];
    if let Some(device) = &service.device {
        sources[3] = PollFd::new(device, PollFlags::IN);
    }
    let bell = service.ublk.bell();
    if let Some(bell) = &bell {
        sources[4] = PollFd::new(bell, PollFlags::IN);
    }
    match poll(&mut sources, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Woken::Otherwise),
        Err(error) => return Err(error.into()),
    }
    let [bell, expired, client, _, ublk] =
        sources.map(|source| source.revents().contains(PollFlags::IN));
    if bell {
        commands.quiet_bell()?;
    }
    if ublk {
        service.ublk.quiet_bell()?;
    }
    // An alarm that went off while the thread was busy says nothing about waking up.
    if expired && let Some(set_to) = alarm.expired()?.filter(|set_to| *set_to > began) {
        service.engine.path.observe_wake(service.clock.now().saturating_sub(set_to));
    }
    Ok(if client { Woken::ByClient } else { Woken::Otherwise })
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, SHORTEST_SLEEP};
    use underlay_core::Nanos;

    #[test]
    fn only_a_dense_stream_is_waited_for() {
        let mut arrivals = Arrivals::default();
        (0..100).for_each(|i| arrivals.note(Nanos(1_000_000 + i * 4_000)));
        let last = arrivals.last;
        assert!(arrivals.is_next_close(last + Nanos(9_000)));
        assert!(!arrivals.is_next_close(last + SHORTEST_SLEEP), "but not for ever");
        (0..100).for_each(|i| arrivals.note(last + Nanos(i * 50_000)));
        assert!(!arrivals.is_next_close(arrivals.last));
    }
}
