//! The one thread that serves: answers that are due, requests, commands, in this order.
//!
//! A single thread because every hand-over to another costs as much as all other work on a 4 KiB request together,
//! and on a virtual machine, where it may have to wake a CPU, ten times as much. The thread sleeps until a
//! request or a command arrives or the next answer is due, and sees by how much it woke late.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use underlay_core::Nanos;

use super::clock::timespec;
use super::commands::Commands;
use super::fuse_device::Received;
use super::fuse_protocol::{WRITE_OVERHEAD_BYTES, parse};
use super::service::{MAX_REQUEST_BYTES, Service};

/// The kernel wants room for the largest write and a little more.
const REQUEST_BUFFER_BYTES: usize = MAX_REQUEST_BYTES as usize + WRITE_OVERHEAD_BYTES + 4096;
/// A wake-up for an answer this close would cost more than being early.
const SHORTEST_SLEEP: Nanos = Nanos(1_000);

/// Serves until the file system is unmounted.
pub(crate) fn run(service: &mut Service, commands: &Commands) -> io::Result<()> {
    let mut buffer = vec![1u8; REQUEST_BUFFER_BYTES].into_boxed_slice();
    loop {
        service.answer_due();
        commands.obey_waiting(service);
        match service.device.receive(&mut buffer)? {
            Received::Request(length) => match parse(&buffer[..length]) {
                Ok(request) => service.serve(&request),
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            },
            Received::Nothing => sleep(service, commands)?,
            Received::Unmounted => return Ok(()),
        }
    }
}

/// Sleeps until something is to be done.
fn sleep(service: &mut Service, commands: &Commands) -> io::Result<()> {
    let alarm = service.engine.next_answer();
    let timeout = match alarm.map(|alarm| alarm.saturating_sub(service.clock.now())) {
        Some(left) if left <= SHORTEST_SLEEP => return Ok(()),
        left => left.map(timespec),
    };
    let mut sources =
        [PollFd::new(&service.device, PollFlags::IN), PollFd::new(commands, PollFlags::IN)];
    match poll(&mut sources, timeout.as_ref()) {
        Ok(0) => {
            let alarm = alarm.expect("only a timeout ends the wait without an event");
            let late = service.clock.now().saturating_sub(alarm);
            service.engine.path.observe_wake(late);
        }
        Ok(_) if sources[1].revents().contains(PollFlags::IN) => commands.quiet_bell()?,
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
