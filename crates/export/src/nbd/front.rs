//! Requests of NBD clients.

use std::io;

use rustix::io::Errno;
use tracing::debug;

use super::connection::{Arrived, Input, Phase};
use super::listener::ConnectionId;
use super::negotiation::{Export, Status, Step};
use super::protocol::{
    Extents, Holes, Kind, MAX_EXTENTS, MAX_PAYLOAD_BYTES, NbdError, NbdRequest, Parsed,
    ProtocolError, ReplyForm, block_status, data_header, done, failed, parse,
};
use crate::back_end::{BackEnd, Force, Zeroing};
use crate::client::{Asker, Client};
use crate::server::Server;

/// Requests of one client before the others, the deadlines and the kernel have their turn.
const REQUESTS_PER_TURN: usize = 64;

/// Why a client's turn is over.
enum Turn {
    /// Everything that has arrived is served.
    Caught,
    /// More is there.
    More,
    /// The client must take replies first.
    Paused,
    /// It is gone, or has said what ends the connection.
    Over,
}

impl<B: BackEnd<Client>> Server<B> {
    /// Serves what has arrived from NBD clients. Returns whether there was anything.
    pub(crate) fn serve_nbd(&mut self) -> io::Result<bool> {
        let mut ready = std::mem::take(&mut self.ready);
        self.nbd.ready(&mut ready)?;
        let was_any = !ready.is_empty();
        for id in ready.drain(..) {
            match self.serve_client(id) {
                Ok(Turn::More) => self.nbd.resume(id),
                Ok(Turn::Caught | Turn::Paused) => self.nbd.update_watch(id),
                Ok(Turn::Over) => self.nbd.close(id),
                Err(error) => {
                    debug!("an NBD connection ended: {error}");
                    self.nbd.close(id);
                }
            }
        }
        self.ready = ready;
        Ok(was_any)
    }

    fn serve_client(&mut self, id: ConnectionId) -> io::Result<Turn> {
        let Some(client) = self.nbd.get(id) else { return Ok(Turn::Over) };
        client.flush()?;
        if client.has_left() {
            return Ok(Turn::Over);
        }
        if matches!(client.phase, Phase::Leaving) || client.is_paused() {
            return Ok(Turn::Paused);
        }
        let arrived = client.receive()?;
        if arrived == Arrived::Closed {
            return Ok(Turn::Over);
        }
        // Taken out for the time, because requests are served from where they arrived.
        let mut input = std::mem::take(&mut client.input);
        let turn = self.serve_input(id, &mut input);
        let Some(client) = self.nbd.get(id) else { return Ok(Turn::Over) };
        client.input = input;
        let turn = turn.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if client.has_left() {
            return Ok(Turn::Over);
        }
        Ok(match turn {
            // Perhaps not all that has arrived was read; the event queue will say.
            Turn::Caught => Turn::Caught,
            other => other,
        })
    }

    fn serve_input(&mut self, id: ConnectionId, input: &mut Input) -> Result<Turn, ProtocolError> {
        for _ in 0..REQUESTS_PER_TURN {
            let Some(client) = self.nbd.get(id) else { return Ok(Turn::Over) };
            if client.is_paused() {
                return Ok(Turn::Paused);
            }
            match client.phase {
                Phase::Leaving => return Ok(Turn::Paused),
                Phase::Negotiating(_) => {
                    if let Some(turn) = self.negotiate(id, input)? {
                        return Ok(turn);
                    }
                }
                Phase::Serving { volume, form, status } => match parse(input.bytes())? {
                    Parsed::Incomplete(needed) => {
                        input.needs(needed);
                        return Ok(Turn::Caught);
                    }
                    Parsed::Request(request, used) => {
                        self.serve_request(id, volume, (form, status), &request);
                        input.used(used);
                        input.needs(0);
                    }
                },
            }
        }
        Ok(Turn::More)
    }

    /// One step of the handshake; says when the turn is over.
    fn negotiate(
        &mut self,
        id: ConnectionId,
        input: &mut Input,
    ) -> Result<Option<Turn>, ProtocolError> {
        let (numbers, exports): (Vec<usize>, Vec<Export>) = self
            .present()
            .map(|(number, volume)| {
                let size_bytes = volume.capacity_bytes;
                (number, Export { name: volume.name.clone(), size_bytes })
            })
            .unzip();
        let Some(client) = self.nbd.get(id) else { return Ok(Some(Turn::Over)) };
        let Phase::Negotiating(negotiation) = &mut client.phase else { return Ok(None) };
        let step = negotiation.step(input.bytes(), &exports)?;
        let (used, reply) = match step {
            Step::Incomplete(needed) => {
                input.needs(needed);
                return Ok(Some(Turn::Caught));
            }
            Step::Reply(used, reply) => (used, reply),
            Step::Chosen { used, reply, export, form, status } => {
                client.phase = Phase::Serving { volume: numbers[export], form, status };
                (used, reply)
            }
            Step::Ended(reply) => {
                client.phase = Phase::Leaving;
                (input.bytes().len(), reply)
            }
        };
        input.used(used);
        let is_sent = reply.is_empty() || client.send(&[&reply]).is_ok();
        Ok(if is_sent { None } else { Some(Turn::Over) })
    }

    fn serve_request(
        &mut self,
        connection: ConnectionId,
        volume: usize,
        (form, status): (ReplyForm, Status),
        request: &NbdRequest<'_>,
    ) {
        let NbdRequest { kind, cookie, offset, length, data, .. } = *request;
        if kind == Kind::Disconnect {
            if let Some(client) = self.nbd.get(connection) {
                client.phase = Phase::Leaving;
            }
            return;
        }
        let reply_bytes = if kind == Kind::Read { length } else { 0 };
        if let Some(client) = self.nbd.get(connection) {
            client.accepted(u64::from(reply_bytes));
        }
        let client = Client(Asker::Nbd { connection, cookie, form, offset, reply_bytes });
        let force = match request.force_unit_access {
            true => Force::UnitAccess,
            false => Force::Nothing,
        };
        let outcome = match kind {
            Kind::Read if length > MAX_PAYLOAD_BYTES => Err(Errno::OVERFLOW),
            Kind::Read | Kind::Write if length == 0 => Err(Errno::INVAL),
            Kind::Read => self.read(client, volume, offset, length),
            // Beyond the end there is no space.
            Kind::Write => self
                .write(client, volume, offset, data, force)
                .map_err(|errno| if errno == Errno::INVAL { Errno::NOSPC } else { errno }),
            Kind::Flush => self.flush(client, volume),
            Kind::Trim | Kind::WriteZeroes(Holes::Allowed) => {
                self.discard(client, volume, offset, u64::from(length), Zeroing::FreesSpace)
            }
            Kind::WriteZeroes(Holes::Forbidden) => {
                self.discard(client, volume, offset, u64::from(length), Zeroing::KeepsSpace)
            }
            Kind::BlockStatus(extents) if status == Status::Negotiated && length > 0 => {
                self.block_status(client, volume, (offset, length), extents)
            }
            Kind::Disconnect | Kind::Unsupported | Kind::BlockStatus(_) => Err(Errno::INVAL),
        };
        if let Err(errno) = outcome {
            self.refuse(client, errno);
        }
    }

    /// Answered at once: no device is asked where data is.
    fn block_status(
        &mut self,
        client: Client,
        volume: usize,
        (offset, length): (u64, u32),
        wanted: Extents,
    ) -> Result<(), Errno> {
        let Asker::Nbd { cookie, .. } = client.0 else { return Err(Errno::INVAL) };
        let limit = match wanted {
            Extents::One => 1,
            Extents::Several => MAX_EXTENTS,
        };
        let mut extents = self.extents(volume, offset, length)?;
        extents.truncate(limit);
        self.nbd_send(client.0, &[&block_status(cookie, &extents)]);
        Ok(())
    }

    pub(crate) fn nbd_data(&mut self, asker: Asker, data: &[u8]) {
        if let Asker::Nbd { cookie, form, offset, .. } = asker {
            let header = data_header(form, cookie, offset, data.len() as u32);
            self.nbd_send(asker, &[&header, data]);
        }
    }

    pub(crate) fn nbd_done(&mut self, asker: Asker) {
        if let Asker::Nbd { cookie, .. } = asker {
            self.nbd_send(asker, &[&done(cookie)]);
        }
    }

    pub(crate) fn nbd_refuse(&mut self, asker: Asker, errno: Errno) {
        let error = match errno {
            Errno::INVAL | Errno::OPNOTSUPP => NbdError::Invalid,
            Errno::NOSPC => NbdError::NoSpace,
            Errno::OVERFLOW => NbdError::Overflow,
            Errno::NOENT => NbdError::Shutdown,
            _ => NbdError::Io,
        };
        if let Asker::Nbd { cookie, form, .. } = asker {
            self.nbd_send(asker, &[&failed(form, cookie, error)]);
        }
    }

    /// A client that is gone needs no reply.
    fn nbd_send(&mut self, asker: Asker, parts: &[&[u8]]) {
        let Asker::Nbd { connection, reply_bytes, .. } = asker else { return };
        let Some(found) = self.nbd.get(connection) else { return };
        let was_paused = found.is_paused();
        let outcome = found.send(parts);
        found.replied(u64::from(reply_bytes));
        let needs_look = found.has_left() || found.has_output() || was_paused;
        match outcome {
            Err(error) => {
                debug!("an NBD client is gone: {error}");
                self.nbd.close(connection);
            }
            // Its buffer may hold requests that no event will announce, or its end may have come.
            Ok(()) if needs_look => self.nbd.resume(connection),
            Ok(()) => {}
        }
    }
}
