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
use super::fuse_protocol::{WRITE_OVERHEAD_BYTES, parse};
use super::service::{MAX_REQUEST_BYTES, Service};

/// The kernel wants room for the largest write and a little more.
const REQUEST_BUFFER_BYTES: usize = MAX_REQUEST_BYTES as usize + WRITE_OVERHEAD_BYTES + 4096;
/// Going to sleep and waking up costs the CPU at least this long, so for an answer that is due sooner
/// staying awake is cheaper.
const SHORTEST_SLEEP: Nanos = Nanos(5_000);

/// Serves until the file system is unmounted.
pub(crate) fn run(service: &mut Service, commands: &Commands) -> io::Result<()> {
    let mut buffer = vec![1u8; REQUEST_BUFFER_BYTES].into_boxed_slice();
    let mut alarm = Alarm::new(service.clock)?;
    loop {
        service.answer_due();
        commands.obey_waiting(service);
        match service.device.receive(&mut buffer)? {
            Received::Request(length) => match parse(&buffer[..length]) {
                Ok(request) => service.serve(&request),
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            },
            Received::Nothing => sleep(service, commands, &mut alarm)?,
            Received::Unmounted => return Ok(()),
        }
    }
}

/// Sleeps until something is to be done.
fn sleep(service: &mut Service, commands: &Commands, alarm: &mut Alarm) -> io::Result<()> {
    if let Some(next) = service.engine.next_answer() {
        if next <= service.clock.now() + SHORTEST_SLEEP {
            return Ok(());
        }
        alarm.by(next)?;
    }
    let mut sources = [
        PollFd::new(&service.device, PollFlags::IN),
        PollFd::new(commands, PollFlags::IN),
        PollFd::new(alarm, PollFlags::IN),
    ];
    match poll(&mut sources, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let [_, bell, expired] = sources.map(|source| source.revents().contains(PollFlags::IN));
    if bell {
        commands.quiet_bell()?;
    }
    if expired && let Some(set_to) = alarm.expired()? {
        service.engine.path.observe_wake(service.clock.now().saturating_sub(set_to));
    }
    Ok(())
}
