//! The one thread that serves: answers that are due, tasks, requests, in this order.
//!
//! A single thread because every hand-over to another costs as much as all other work on a 4 KiB request together,
//! and on a virtual machine, where it may have to wake a CPU, ten times as much. The thread sleeps until a
//! request or a task arrives or the next answer is due, and sees by how much it woke late.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use underlay_core::Nanos;

use crate::alarm::Alarm;
use crate::back_end::BackEnd;
use crate::client::Client;
use crate::fuse::device::Received;
use crate::fuse::front::MAX_REQUEST_BYTES;
use crate::fuse::protocol::{WRITE_OVERHEAD_BYTES, parse};
use crate::server::Server;
use crate::task_queue::TaskQueue;

/// The kernel wants room for the largest write and a little more.
const REQUEST_BUFFER_BYTES: usize = MAX_REQUEST_BYTES as usize + WRITE_OVERHEAD_BYTES + 4096;
/// Going to sleep and waking up costs the CPU about this long on a virtual machine (the switch, the timer,
/// the wake-up of a CPU), so staying awake for less is cheaper as well as more punctual.
const SHORTEST_SLEEP: Nanos = Nanos(10_000);

/// As long as there are no NBD clients, new ones are looked for once in so many turns: each look costs as much as a
/// request.
const TURNS_BETWEEN_LOOKS: u32 = 256;

impl<B: BackEnd<Client>> Server<B> {
    /// Serves until the file system is unmounted, or [`Server::end`] was called by a task.
    ///
    /// # Errors
    /// When the system refuses what serving needs, or the kernel asks for something that is no request.
    pub fn run(&mut self, tasks: &TaskQueue<Server<B>>) -> io::Result<()> {
        let mut buffer = vec![1u8; REQUEST_BUFFER_BYTES].into_boxed_slice();
        let mut alarm = Alarm::new(self.exchange.clock)?;
        let mut arrivals = Arrivals::default();
        let mut turn = 0u32;
        loop {
            self.answer_due();
            tasks.run_waiting(self);
            if self.is_ending {
                break;
            }
            // A task may have switched modelled times on, and dense requests leave no sleep in which that would be seen.
            if self.precedence.gives_way() && self.keeps_time() {
                self.precedence.give_way(false);
            }
            turn = turn.wrapping_add(1);
            if (self.nbd.has_clients() || turn.is_multiple_of(TURNS_BETWEEN_LOOKS))
                && self.serve_nbd()?
            {
                arrivals.note(self.exchange.clock.host_now());
            }
            let served = serve_device(self, &mut buffer, &mut arrivals)?;
            let gives_way = self.precedence.gives_way();
            if gives_way {
                self.completions.carry_out_some();
            }
            match served {
                Served::Some => {}
                // The clients that get these replies may already have sent more requests.
                Served::Nothing if gives_way && self.completions.carry_out() => {}
                Served::Nothing if is_worth_waiting(self, &arrivals) => std::hint::spin_loop(),
                Served::Nothing => {
                    self.precedence.give_way(arrivals.are_dense && !self.keeps_time());
                    if sleep(self, tasks, &mut alarm)? == Woken::ByClient {
                        turn = TURNS_BETWEEN_LOOKS - 1;
                    }
                }
                Served::Unmounted => break,
            }
        }
        Ok(())
    }
}

/// What looking for requests of the kernel's FUSE came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Some,
    Nothing,
    Unmounted,
}

/// Serves the next request that comes through `/dev/fuse`.
fn serve_device<B: BackEnd<Client>>(
    server: &mut Server<B>,
    buffer: &mut [u8],
    arrivals: &mut Arrivals,
) -> io::Result<Served> {
    let received = match &server.device {
        Some(device) => device.receive(buffer)?,
        None => Received::Nothing,
    };
    match received {
        Received::Request(length) => match parse(&buffer[..length]) {
            Ok(request) => {
                arrivals.note(server.exchange.clock.host_now());
                server.serve(&request);
                Ok(Served::Some)
            }
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        },
        Received::Nothing => Ok(Served::Nothing),
        Received::Unmounted => Ok(Served::Unmounted),
    }
}

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    /// A client on an NBD socket.
    ByClient,
    Otherwise,
}

/// How closely requests follow each other, in the host's time: it is about what the host can do meanwhile.
#[derive(Debug, Default)]
struct Arrivals {
    last: Nanos,
    /// Running mean of the time between two, with weight 1/8 for the newest.
    gap_ns: u64,
    /// Whether they form a dense stream; it takes a clear change to say otherwise.
    are_dense: bool,
}

impl Arrivals {
    /// Longer gaps all mean the same: seldom.
    const GAP_MAX: Nanos = Nanos(1_000_000);
    /// Requests that are further apart form no dense stream.
    const GAP_SPARSE: Nanos = Nanos(40_000);

    fn note(&mut self, now: Nanos) {
        let gap = now.saturating_sub(self.last).min(Arrivals::GAP_MAX);
        self.gap_ns = (7 * self.gap_ns + gap.0) / 8;
        self.last = now;
        match Nanos(self.gap_ns) {
            usual if usual < SHORTEST_SLEEP => self.are_dense = true,
            usual if usual > Arrivals::GAP_SPARSE => self.are_dense = false,
            _ => {}
        }
    }

    /// Whether the next may be expected before a sleep would pay off.
    fn is_next_close(&self, now: Nanos) -> bool {
        let usual = Nanos(self.gap_ns);
        usual < SHORTEST_SLEEP && now < self.last + SHORTEST_SLEEP
    }
}

/// Whether something will be to be done so soon that sleeping until then would cost more.
fn is_worth_waiting<B: BackEnd<Client>>(server: &Server<B>, arrivals: &Arrivals) -> bool {
    let now = server.exchange.clock.now();
    if server.nbd.has_resumable() {
        return true;
    }
    let lead =
        server.exchange.clock.dilation().design(server.exchange.path.lead().max(SHORTEST_SLEEP));
    let is_answer_close = server.next_answer().is_some_and(|next| next <= now + lead);
    // Who gives way does not keep a CPU from those who bring the next request.
    is_answer_close
        || (!server.precedence.gives_way()
            && arrivals.is_next_close(server.exchange.clock.host_now()))
}

// What can end a sleep, by number.
const TASKS: usize = 0;
const ALARM: usize = 1;
const CLIENTS: usize = 2;
const DEVICE: usize = 3;

/// Sleeps until something is to be done.
fn sleep<B: BackEnd<Client>>(
    server: &mut Server<B>,
    tasks: &TaskQueue<Server<B>>,
    alarm: &mut Alarm,
) -> io::Result<Woken> {
    let began = server.exchange.clock.now();
    if let Some(next) = server.next_answer() {
        // Timers of virtual machines come late by some 5 to 30 us: up early, the rest is waited out awake.
        let lead = server.exchange.clock.dilation().design(server.exchange.path.lead());
        alarm.by(next.saturating_sub(lead))?;
    }
    // Without a file system there is one source less.
    let mut sources = [None; 4];
    sources[TASKS] = Some(tasks.as_fd());
    sources[ALARM] = Some(alarm.as_fd());
    sources[CLIENTS] = Some(server.nbd.as_fd());
    sources[DEVICE] = server.device.as_ref().map(AsFd::as_fd);
    let fired = wait_for_any(&sources)?;
    attend(server, tasks, alarm, fired, began)
}

/// Sleeps until one of the sources is readable; which ones are, one bit each.
fn wait_for_any(sources: &[Option<BorrowedFd<'_>>; 4]) -> io::Result<u64> {
    // Those that there are not are asked for nothing, at a descriptor that there is.
    let anything = sources[TASKS].expect("always there");
    let mut polled = sources.map(|source| {
        let events = if source.is_some() { PollFlags::IN } else { PollFlags::empty() };
        PollFd::from_borrowed_fd(source.unwrap_or(anything), events)
    });
    match poll(&mut polled, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(0),
        Err(error) => return Err(error.into()),
    }
    let readable = |(number, source): (usize, &PollFd<'_>)| {
        u64::from(source.revents().contains(PollFlags::IN)) << number
    };
    Ok(polled.iter().enumerate().map(readable).sum())
}

/// Sees to what wants attention. `began` is when the sleep began that it may have ended.
fn attend<B: BackEnd<Client>>(
    server: &mut Server<B>,
    tasks: &TaskQueue<Server<B>>,
    alarm: &mut Alarm,
    fired: u64,
    began: Nanos,
) -> io::Result<Woken> {
    let has = |source: usize| fired & 1 << source != 0;
    if has(TASKS) {
        tasks.clear_event()?;
    }
    // An alarm that went off while the thread was busy says nothing about waking up.
    if has(ALARM)
        && let Some(set_to) = alarm.expired()?.filter(|set_to| *set_to > began)
    {
        let late = server.exchange.clock.now().saturating_sub(set_to);
        server.exchange.path.observe_wake(server.exchange.clock.dilation().wall(late));
    }
    Ok(if has(CLIENTS) { Woken::ByClient } else { Woken::Otherwise })
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

    #[test]
    fn it_takes_a_clear_change_to_end_a_dense_stream() {
        let mut arrivals = Arrivals { gap_ns: Arrivals::GAP_MAX.0, ..Arrivals::default() };
        let mut come = |gap_ns: u64| {
            (0..100).for_each(|_| arrivals.note(arrivals.last + Nanos(gap_ns)));
            arrivals.are_dense
        };
        assert!(!come(60_000));
        assert!(!come(20_000), "not dense enough to begin");
        assert!(come(5_000));
        assert!(come(20_000), "dense enough to go on");
        assert!(!come(60_000));
    }
}
