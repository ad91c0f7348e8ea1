//! Requests of the kernel's ublk driver.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::reply::Client;
use super::service::{Force, Service};
use super::ublk::protocol::{Kind, UblkRequest};
use super::ublk::queue::UblkQueue;
use super::volume::Zeroing;

/// The devices that this server serves.
pub(crate) struct UblkQueues {
    /// By number; the place of a device that has gone stays empty.
    queues: Vec<Option<UblkQueue>>,
    /// Rung by the kernel when a request arrives; made with the first device.
    bell: Option<OwnedFd>,
    /// Requests that have arrived; empty in between, kept for its memory.
    arrived: Vec<(u16, UblkRequest)>,
}

impl UblkQueues {
    pub(crate) fn new() -> UblkQueues {
        UblkQueues { queues: Vec::new(), bell: None, arrived: Vec::new() }
    }

    /// Whether there are any.
    pub(crate) fn is_any(&self) -> bool {
        self.queues.iter().any(Option::is_some)
    }

    /// Begins to serve a volume through a device that was added with this depth and largest request.
    pub(crate) fn serve(
        &mut self,
        device: &Path,
        volume: usize,
        depth: u16,
        request_bytes_max: u32,
    ) -> io::Result<()> {
        if self.bell.is_none() {
            self.bell = Some(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        }
        let Some(bell) = &self.bell else { return Err(io::Error::other("no bell")) };
        let queue = UblkQueue::open(device, volume, depth, request_bytes_max, bell)?;
        self.queues.push(Some(queue));
        Ok(())
    }

    /// What becomes readable when a request arrives.
    pub(crate) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(AsFd::as_fd)
    }

    /// Lets the bell be rung again.
    pub(crate) fn quiet_bell(&self) -> io::Result<()> {
        let Some(bell) = &self.bell else { return Ok(()) };
        match rustix::io::read(bell, &mut [0u8; 8]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands all answers to the driver.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        self.queues.iter_mut().flatten().try_for_each(UblkQueue::submit)
    }

    fn get(&mut self, device: usize) -> Option<&mut UblkQueue> {
        self.queues.get_mut(device)?.as_mut()
    }
}

impl Service {
    /// Serves what has arrived from the driver. Returns whether there was anything.
    pub(crate) fn serve_ublk(&mut self) -> bool {
        let mut was_any = false;
        for device in 0..self.ublk.queues.len() {
            let mut arrived = std::mem::take(&mut self.ublk.arrived);
            let mut volume = 0;
            if let Some(queue) = self.ublk.get(device) {
                queue.arrived(&mut arrived);
                volume = queue.volume;
                if queue.has_ended() {
                    self.ublk.queues[device] = None;
                }
            }
            was_any |= !arrived.is_empty();
            for (tag, request) in arrived.drain(..) {
                self.serve_tag(device, volume, tag, &request);
            }
            self.ublk.arrived = arrived;
        }
        was_any
    }

    fn serve_tag(&mut self, device: usize, volume: usize, tag: u16, request: &UblkRequest) {
        let UblkRequest { kind, offset_bytes, length_bytes, force_unit_access } = *request;
        // A block layer that was told of our largest request sends none that is longer.
        let length = u32::try_from(length_bytes).unwrap_or(u32::MAX);
        let bytes = match kind {
            Kind::Read | Kind::Write => length,
            _ => 0,
        };
        let client = Client::Ublk { device, tag, bytes };
        let force = if force_unit_access { Force::UnitAccess } else { Force::Nothing };
        let outcome = match kind {
            Kind::Read => self.read(client, volume, offset_bytes, length),
            Kind::Write => {
                let Some(buffers) = self.ublk.get(device).map(|queue| queue.buffers()) else {
                    return;
                };
                match buffers.written(tag, length as usize) {
                    Some(data) => self.write(client, volume, offset_bytes, data, force),
                    None => Err(Errno::INVAL),
                }
            }
            Kind::Flush => self.flush(client, volume),
            Kind::Discard | Kind::WriteZeroes => {
                self.discard(client, volume, offset_bytes, length_bytes, Zeroing::FreesSpace)
            }
            Kind::WriteZeroesInPlace => {
                self.discard(client, volume, offset_bytes, length_bytes, Zeroing::KeepsSpace)
            }
            Kind::Unsupported => Err(Errno::OPNOTSUPP),
        };
        if let Err(errno) = outcome {
            self.refuse(client, errno);
        }
    }

    pub(super) fn ublk_data(&mut self, device: usize, tag: u16, data: &[u8]) {
        let Some(queue) = self.ublk.get(device) else { return };
        let result = match queue.buffers().fill(tag, data) {
            true => data.len() as i32,
            false => -libc::EIO,
        };
        queue.answer(tag, result);
    }

    /// Ends a request with so many bytes done, or a negative errno.
    pub(super) fn ublk_done(&mut self, device: usize, tag: u16, result: i32) {
        if let Some(queue) = self.ublk.get(device) {
            queue.answer(tag, result);
        }
    }
}
