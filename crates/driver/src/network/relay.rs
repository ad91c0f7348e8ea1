//! The thread of the network: receives data from the sockets, and delivers it when it is due.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use super::connection::{CLIENT, Connection, Received, SERVER};
use super::link::Link;
use super::shared::Shared;
use super::spec::NetworkSpec;

/// Marks the events of what is no connection.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
const EVENTS: usize = 64;
/// One piece at most.
const PIECE_BYTES: usize = 64 << 10;
/// After a client that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(1);
/// Between two readings of the thread's CPU time, which is a system call.
const CPU_EVERY_NS: u64 = 10_000_000;

/// Names a connection; never names another one later, for as long as anything of it is on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    slot: u32,
    generation: u32,
}

/// A piece on a link.
struct Piece {
    due_ns: u64,
    of: Id,
    /// None is the end.
    bytes: Vec<u8>,
}

struct Slot {
    generation: u32,
    connection: Option<Connection>,
    /// What is watched of each side; `None` of one that the kernel reported as gone.
    watched: [Option<epoll::EventFlags>; 2],
}

/// The relay.
pub(super) struct Relay {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What it is set to.
    timer_ns: Option<u64>,
    listener: TcpListener,
    server: SocketAddr,
    shared: Arc<Shared>,
    origin: Instant,
    /// By the side that they begin at. Pieces of a link are in the order of their due times.
    links: [(Link, VecDeque<Piece>); 2],
    slots: Vec<Slot>,
    buffer: Vec<u8>,
    cpu_read_at_ns: u64,
}

impl Relay {
    pub(super) fn new(
        listener: TcpListener,
        server: SocketAddr,
        spec: NetworkSpec,
        shared: Arc<Shared>,
    ) -> io::Result<Relay> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let add = |source: rustix::fd::BorrowedFd<'_>, token, flags| {
            epoll::add(&epoll, source, epoll::EventData::new_u64(token), flags)
        };
        add(listener.as_fd(), LISTENER, epoll::EventFlags::IN)?;
        add(shared.wake.as_fd(), WAKE, epoll::EventFlags::IN)?;
        // Each expiry is an edge of its own, so that the timer need not be read.
        add(timer.as_fd(), TIMER, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let link = || (Link::new(&spec), VecDeque::new());
        Ok(Relay {
            epoll,
            timer,
            timer_ns: None,
            listener,
            server,
            shared,
            origin: Instant::now(),
            links: [link(), link()],
            slots: Vec::new(),
            buffer: vec![0; PIECE_BYTES],
            cpu_read_at_ns: 0,
        })
    }

    /// Relays until it is told to stop.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.shared.stop.load(Ordering::Acquire) {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    WAKE | TIMER => {}
                    token => {
                        let (id, side) = Id::from_token(token);
                        self.serve(id, side, event.flags);
                    }
                }
            }
            self.deliver_due();
            self.set_timer()?;
            self.note_cpu();
        }
        Ok(())
    }

    /// Says why it ended; all connections end with it.
    pub(super) fn report(&self, error: &io::Error) {
        tracing::warn!("the modelled network ended: {error}");
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn count(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }

    fn accept(&mut self) {
        loop {
            let joined = match self.listener.accept() {
                Ok((client, _)) => self.join(client),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Out of descriptors, most likely. The client waits on, and is reported again at once.
                    tracing::warn!("a client could not be accepted: {error}");
                    return std::thread::sleep(ACCEPT_PAUSE);
                }
            };
            // A server that is down refuses, and the client learns it from the end of its connection.
            if let Err(error) = joined {
                tracing::debug!("a client could not be connected with the server: {error}");
            }
        }
    }

    /// Connects a client with the server.
    fn join(&mut self, client: TcpStream) -> io::Result<()> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match self.server {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let server = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&server, true)?;
        match rustix::net::connect(&server, &self.server) {
            // Until it is connected it takes nothing and has nothing.
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let free = self.slots.iter().position(|slot| slot.connection.is_none());
        let index = free.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None, watched: [None; 2] });
            self.slots.len() - 1
        });
        let id = Id {
            slot: u32::try_from(index).map_err(io::Error::other)?,
            generation: self.slots[index].generation,
        };
        let connection = Connection::new(client, server.into());
        for side in [CLIENT, SERVER] {
            let data = epoll::EventData::new_u64(id.token(side));
            epoll::add(&self.epoll, connection.socket(side), data, epoll::EventFlags::IN)?;
        }
        let slot = &mut self.slots[index];
        slot.connection = Some(connection);
        slot.watched = [Some(epoll::EventFlags::IN); 2];
        Self::count(&self.shared.counters.connections, 1);
        Ok(())
    }

    fn get(&mut self, id: Id) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.connection.as_mut() } else { None }
    }

    /// Looks after one side of a connection of which the kernel reported something.
    fn serve(&mut self, id: Id, side: usize, flags: epoll::EventFlags) {
        let Some(connection) = self.get(id) else { return };
        if flags.contains(epoll::EventFlags::OUT) && connection.flush(side).is_err() {
            return self.close(id);
        }
        // A side that is gone is reported again and again, so what it left is taken at once.
        let is_gone = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        self.receive(id, side, is_gone);
        if is_gone {
            self.forget_side(id, side);
        }
        self.settle(id);
    }

    /// Sends on what a side has; one piece, or all of one that is gone.
    fn receive(&mut self, id: Id, side: usize, is_gone: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let now_ns = self.now_ns();
            let Some(connection) = self.get(id) else { break };
            if !(is_gone || connection.can_read(side)) {
                break;
            }
            let bytes = match connection.receive(side, &mut buffer) {
                Received::Nothing => break,
                Received::Bytes(bytes) => bytes,
                Received::End => Vec::new(),
            };
            let is_turn = !bytes.is_empty() && connection.turns_to(side);
            let (link, pieces) = &mut self.links[side];
            let due_ns = link.send(now_ns, bytes.len());
            let is_end = bytes.is_empty();
            let counters = &self.shared.counters;
            Self::count(&counters.bytes[side], bytes.len() as u64);
            pieces.push_back(Piece { due_ns, of: id, bytes });
            if is_turn {
                Self::count(&counters.delay_ns, due_ns - now_ns);
                Self::count(&counters.round_trips, u64::from(side == SERVER));
            }
            if is_end || !is_gone {
                break;
            }
        }
        self.buffer = buffer;
    }

    /// Delivers all pieces that have arrived.
    fn deliver_due(&mut self) {
        for from in [CLIENT, SERVER] {
            loop {
                let now_ns = self.now_ns();
                let pieces = &mut self.links[from].1;
                let Some(piece) = pieces.pop_front_if(|piece| piece.due_ns <= now_ns) else {
                    break;
                };
                let Piece { due_ns, of, bytes } = piece;
                Self::count(&self.shared.counters.late_ns, now_ns - due_ns);
                Self::count(&self.shared.counters.pieces, 1);
                let Some(connection) = self.get(of) else { continue };
                match connection.deliver(from, bytes) {
                    Ok(()) => self.settle(of),
                    Err(_) => self.close(of),
                }
            }
        }
    }

    /// Closes a connection through which nothing will pass any more, and watches the others for what they may do.
    fn settle(&mut self, id: Id) {
        let Some(connection) = self.get(id) else { return };
        if connection.is_over() {
            return self.close(id);
        }
        for side in [CLIENT, SERVER] {
            let slot = &mut self.slots[id.slot as usize];
            let (Some(connection), Some(watched)) = (&slot.connection, slot.watched[side]) else {
                continue;
            };
            let mut wanted = epoll::EventFlags::empty();
            wanted.set(epoll::EventFlags::IN, connection.can_read(side));
            wanted.set(epoll::EventFlags::OUT, connection.has_output(side));
            if wanted == watched {
                continue;
            }
            let data = epoll::EventData::new_u64(id.token(side));
            match epoll::modify(&self.epoll, connection.socket(side), data, wanted) {
                Ok(()) => slot.watched[side] = Some(wanted),
                Err(_) => return self.close(id),
            }
        }
    }

    /// No longer watches a side that is gone. What is delivered to it fails, and ends the connection.
    fn forget_side(&mut self, id: Id, side: usize) {
        if self.get(id).is_none() {
            return;
        }
        let slot = &mut self.slots[id.slot as usize];
        if let (Some(connection), Some(_)) = (&slot.connection, slot.watched[side].take()) {
            // It was watched, so there is nothing that could go wrong.
            let _ = epoll::delete(&self.epoll, connection.socket(side));
        }
    }

    fn close(&mut self, id: Id) {
        if self.get(id).is_some() {
            let slot = &mut self.slots[id.slot as usize];
            // Closing the only descriptors also ends their being watched.
            slot.connection = None;
            slot.generation = (slot.generation + 1) & Id::GENERATION_MAX;
            self.shared.counters.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sets the timer to when the next piece is due.
    fn set_timer(&mut self) -> io::Result<()> {
        let due_ns = self.links.iter().filter_map(|(_, pieces)| pieces.front()).map(|p| p.due_ns);
        let (due_ns, now_ns) = (due_ns.min(), self.now_ns());
        if due_ns == self.timer_ns && due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return Ok(());
        }
        self.timer_ns = due_ns;
        // Zero would disarm it.
        let wait_ns = due_ns.map(|due_ns| due_ns.saturating_sub(now_ns).max(1));
        let wait = Duration::from_nanos(wait_ns.unwrap_or(0));
        let value = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: wait.as_secs().cast_signed(),
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }

    fn note_cpu(&mut self) {
        let now_ns = self.now_ns();
        if now_ns.saturating_sub(self.cpu_read_at_ns) < CPU_EVERY_NS {
            return;
        }
        self.cpu_read_at_ns = now_ns;
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let (seconds, nanos) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
        self.shared.counters.cpu_ns.store(seconds * 1_000_000_000 + nanos, Ordering::Relaxed);
    }
}

impl Id {
    /// One bit of an event's number is the side.
    const GENERATION_MAX: u32 = u32::MAX >> 1;

    fn token(self, side: usize) -> u64 {
        u64::from(self.slot) << 32 | u64::from(self.generation) << 1 | side as u64
    }

    fn from_token(token: u64) -> (Id, usize) {
        let generation = token as u32 >> 1;
        (Id { slot: (token >> 32) as u32, generation }, (token & 1) as usize)
    }
}
