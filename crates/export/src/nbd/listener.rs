//! All sockets of the NBD server behind one descriptor.
//!
//! The serving thread asks now and then which clients have something to say. New clients are accepted on the way.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use tracing::{debug, warn};

use super::connection::{Connection, Phase};
use crate::error::ExportError;

/// More clients than this are turned away; each costs a quarter of a megabyte and more.
const CONNECTIONS_MAX: usize = 128;
/// A client on this host needs milliseconds for its handshake. One that takes longer gives up its place.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// Replies of all clients together may hold so much memory; above it, each client may have one request under way.
const REPLIES_LIMIT_BYTES: u64 = 256 << 20;
/// Above that limit, a client that takes none of its replies for so long is disconnected.
const STALL_LIMIT: Duration = Duration::from_secs(5);
/// Marks the events of the listening sockets.
const UNIX_LISTENER: u64 = u64::MAX;
const TCP_LISTENER: u64 = u64::MAX - 1;
const EVENTS: usize = 64;

/// Names a connection; never names another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId {
    slot: u32,
    generation: u32,
}

/// Listening sockets and clients.
pub struct NbdListener {
    epoll: OwnedFd,
    unix: Option<UnixListener>,
    tcp: Option<TcpListener>,
    slots: Vec<Slot>,
    connected: usize,
    /// Clients that may have complete requests in their buffers.
    resumable: Vec<ConnectionId>,
    /// Whether replies of all clients together hold too much memory.
    is_squeezed: bool,
    events: Vec<epoll::Event>,
}

struct Slot {
    generation: u32,
    connection: Option<Connection>,
    /// Whether the kernel reports when it can be sent to.
    watches_output: bool,
}

impl NbdListener {
    /// Listens on a unix socket, on a loopback address, on both or on neither.
    ///
    /// # Errors
    /// When an address cannot be used, or others could reach it.
    pub fn bind(unix: Option<&Path>, tcp: Option<SocketAddr>) -> Result<NbdListener, ExportError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(ExportError::system("create an event queue"))?;
        let watch = |source: BorrowedFd<'_>, token| {
            let data = epoll::EventData::new_u64(token);
            epoll::add(&epoll, source, data, epoll::EventFlags::IN)
                .map_err(ExportError::system("watch a socket"))
        };
        let unix = unix
            .map(|path| {
                let listener = UnixListener::bind(path)
                    .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                    .map_err(ExportError::file("listen on", path))?;
                watch(listener.as_fd(), UNIX_LISTENER)?;
                Ok::<_, ExportError>(listener)
            })
            .transpose()?;
        let tcp = tcp
            .map(|address| {
                if !address.ip().is_loopback() {
                    return Err(ExportError::NotLoopback(address));
                }
                let listener = TcpListener::bind(address)
                    .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                    .map_err(|source| ExportError::Listen { address, source })?;
                watch(listener.as_fd(), TCP_LISTENER)?;
                Ok(listener)
            })
            .transpose()?;
        Ok(NbdListener {
            epoll,
            unix,
            tcp,
            slots: Vec::new(),
            connected: 0,
            resumable: Vec::new(),
            is_squeezed: false,
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// The address on which TCP clients are accepted, with the port that the system chose.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Connections that chose a volume.
    pub(crate) fn clients_of(&self, wanted: usize) -> u64 {
        let connected = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        let uses = |client: &&Connection| match client.phase {
            Phase::Serving { volume, .. } => volume == wanted,
            Phase::Negotiating(_) | Phase::Leaving => false,
        };
        connected.filter(uses).count() as u64
    }

    /// Whether there are clients.
    pub(crate) fn has_clients(&self) -> bool {
        self.connected > 0
    }

    /// Appends the clients that have something to say, or can be sent to, or were resumed; accepts new ones.
    pub(crate) fn ready(&mut self, ready: &mut Vec<ConnectionId>) -> io::Result<()> {
        self.limit_memory();
        ready.append(&mut self.resumable);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let outcome =
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&at_once));
        match outcome {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                UNIX_LISTENER => self.accept_unix(),
                TCP_LISTENER => self.accept_tcp(),
                token => {
                    let id = ConnectionId::from_token(token);
                    if !ready.contains(&id) {
                        ready.push(id);
                    }
                }
            }
        }
        self.events = events;
        Ok(())
    }

    /// A client, unless it is gone.
    pub(crate) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.connection.as_mut() } else { None }
    }

    /// All clients.
    pub(crate) fn clients(&self) -> Vec<ConnectionId> {
        let present = self.slots.iter().zip(0u32..).filter(|(slot, _)| slot.connection.is_some());
        present
            .map(|(slot, index)| ConnectionId { slot: index, generation: slot.generation })
            .collect()
    }

    /// Has the client looked at again soon, even if nothing arrives from it.
    pub(crate) fn resume(&mut self, id: ConnectionId) {
        if !self.resumable.contains(&id) {
            self.resumable.push(id);
        }
    }

    /// Whether some client waits to be looked at again.
    pub(crate) fn has_resumable(&self) -> bool {
        !self.resumable.is_empty()
    }

    /// Closes a client's connection.
    pub(crate) fn close(&mut self, id: ConnectionId) {
        if self.get(id).is_some() {
            let slot = &mut self.slots[id.slot as usize];
            // Closing the only descriptor also ends its being watched.
            slot.connection = None;
            slot.generation = slot.generation.wrapping_add(1);
            debug_assert!(self.connected > 0, "a connection is closed once");
            self.connected -= 1;
        }
    }

    /// Watches for the client being ready to take more, if something waits for it; stops reading from one that
    /// is paused.
    pub(crate) fn update_watch(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        let wanted = connection.has_output();
        let (paused, slot) = (connection.is_paused(), id.slot as usize);
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, !paused);
        flags.set(epoll::EventFlags::OUT, wanted);
        // The usual case, reading and nothing to send, is what was set at the beginning.
        let unusual = wanted || paused;
        if !unusual && !self.slots[slot].watches_output {
            return;
        }
        self.slots[slot].watches_output = unusual;
        let data = epoll::EventData::new_u64(id.token());
        let epoll = &self.epoll;
        if let Some(connection) = &self.slots[slot].connection
            && let Err(error) = epoll::modify(epoll, connection, data, flags)
        {
            warn!("an NBD client is not watched any more: {error}");
        }
    }

    /// Squeezes all clients while their replies hold too much memory, and disconnects the one that has stalled longest.
    fn limit_memory(&mut self) {
        let connected = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
        let is_above = connected.map(Connection::reply_bytes).sum::<u64>() > REPLIES_LIMIT_BYTES;
        if is_above
            && let Some((id, stalled)) = self.longest(Connection::stalled_for)
            && stalled >= STALL_LIMIT
        {
            warn!("an NBD client was disconnected: it has not read its replies for {stalled:?}");
            self.close(id);
        }
        if is_above != self.is_squeezed {
            self.is_squeezed = is_above;
            for id in self.clients() {
                if let Some(client) = self.get(id) {
                    client.squeeze(is_above);
                }
                // No event announces that it may be read from again.
                if !is_above {
                    self.resume(id);
                }
            }
        }
    }

    /// The client for which a time is longest.
    fn longest(
        &mut self,
        time: impl Fn(&Connection, Instant) -> Option<Duration>,
    ) -> Option<(ConnectionId, Duration)> {
        let now = Instant::now();
        let timed = self.clients().into_iter().filter_map(|id| {
            let time = time(self.get(id)?, now)?;
            Some((id, time))
        });
        timed.max_by_key(|(_, time)| *time)
    }

    fn accept_unix(&mut self) {
        while let Some(Ok((stream, _))) = self.unix.as_ref().map(UnixListener::accept) {
            match stream.set_nonblocking(true) {
                Ok(()) => self.welcome(stream.into()),
                Err(error) => warn!("an NBD client could not be served: {error}"),
            }
        }
    }

    fn accept_tcp(&mut self) {
        while let Some(Ok((stream, _))) = self.tcp.as_ref().map(TcpListener::accept) {
            // Without delay: replies are small, and a client waits for each.
            match stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)) {
                Ok(()) => self.welcome(stream.into()),
                Err(error) => warn!("an NBD client could not be served: {error}"),
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd) {
        if self.connected >= CONNECTIONS_MAX
            && let Some((id, waited)) = self.longest(Connection::unsettled_for)
            && waited >= HANDSHAKE_LIMIT
        {
            warn!("an NBD client was disconnected: no handshake within {HANDSHAKE_LIMIT:?}");
            self.close(id);
        }
        if self.connected >= CONNECTIONS_MAX {
            warn!("an NBD client was turned away: {CONNECTIONS_MAX} are connected already");
            return;
        }
        let mut connection = match Connection::new(socket) {
            Ok(connection) => connection,
            Err(error) => {
                debug!("an NBD client left at once: {error}");
                return;
            }
        };
        let free = self.slots.iter().position(|slot| slot.connection.is_none());
        let slot = free.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None, watches_output: false });
            self.slots.len() - 1
        });
        let id = ConnectionId { slot: slot as u32, generation: self.slots[slot].generation };
        let data = epoll::EventData::new_u64(id.token());
        match epoll::add(&self.epoll, &connection, data, epoll::EventFlags::IN) {
            Ok(()) => {
                connection.squeeze(self.is_squeezed);
                self.slots[slot].connection = Some(connection);
                self.slots[slot].watches_output = false;
                self.connected += 1;
                debug_assert!(self.connected <= self.slots.len(), "more clients than places");
            }
            Err(error) => warn!("an NBD client could not be served: {error}"),
        }
    }
}

impl AsFd for NbdListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl ConnectionId {
    fn token(self) -> u64 {
        u64::from(self.slot) << 32 | u64::from(self.generation)
    }

    fn from_token(token: u64) -> ConnectionId {
        ConnectionId { slot: (token >> 32) as u32, generation: token as u32 }
    }
}
