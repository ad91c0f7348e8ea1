//! A network between the load generator and a server, shaped in user space: a relay of TCP connections on the loopback
//! interface that holds back what passes by the latency and the rate of the network that it stands for.
//!
//! It is one link with two directions, shared by all connections. Bytes are delivered in order and none is lost. A
//! connection that is opened, closed or reset at one end is so at the other, later by the latency; only the handshake of
//! TCP itself is as fast as the host's. There are no packets: no headers, no loss, no congestion. A sender has to wait
//! once [`WINDOW_BYTES`] of its connection are in flight.
//!
//! Nothing of it outlives the process: one thread and its sockets.

mod connection;
mod link;
mod relay;
mod shared;
mod spec;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

pub use connection::WINDOW_BYTES;
use relay::Relay;
use shared::{Counters, Shared};
pub use spec::NetworkSpec;

/// Real-time priority of the relay's thread, where the host allows it: the lowest one. A network needs no processor of
/// the server's, so what passes it must not wait for one.
const PRIORITY: i32 = 1;

/// What passed since the start, all counters but the last two. Times are the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounts {
    /// Answers to requests: changes of the direction of a connection towards the client.
    pub round_trips: u64,
    /// Time that connections were held up, both ways: of each message, however many pieces it came in, the first piece's.
    pub delay_ns: u64,
    /// Delivery after the time that the network says, summed over pieces.
    pub late_ns: u64,
    /// Pieces that were delivered.
    pub pieces: u64,
    /// Bytes from the client.
    pub bytes_to_server: u64,
    /// Bytes from the server.
    pub bytes_to_client: u64,
    /// CPU time of the relay, as of the last tenth of a second in which it had work.
    pub cpu_ns: u64,
    /// Open connections.
    pub connections: u64,
}

/// A running network. Dropping it ends it with all its connections.
#[derive(Debug)]
pub struct ClientNetwork {
    address: SocketAddr,
    is_prompt: bool,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Reads the counters of a network, also after its end.
#[derive(Clone, Debug)]
pub struct NetworkGauge(Arc<Shared>);

impl ClientNetwork {
    /// Starts a network before the server at `server`, which must listen on this host.
    ///
    /// # Errors
    /// If the host gives no socket or no thread.
    pub fn start(server: SocketAddr, spec: NetworkSpec) -> io::Result<ClientNetwork> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared =
            Arc::new(Shared { wake, stop: AtomicBool::new(false), counters: Counters::default() });
        let mut relay = Relay::new(listener, server, spec, Arc::clone(&shared))?;
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name("network".to_string()).spawn(move || {
            // The starter of the thread waits for this.
            let _ = tell.send(prioritise(PRIORITY).is_ok());
            drop(tell);
            if let Err(error) = relay.run() {
                // Its sockets are closed with it, which is what users will see.
                relay.report(&error);
            }
        })?;
        let is_prompt = told.recv().unwrap_or(false);
        Ok(ClientNetwork { address, is_prompt, shared, thread: Some(thread) })
    }

    /// Where clients connect to instead of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether its thread has a real-time priority, so that it is late by microseconds also where all processors are busy.
    pub fn is_prompt(&self) -> bool {
        self.is_prompt
    }

    /// What passed so far.
    pub fn counts(&self) -> NetworkCounts {
        self.gauge().counts()
    }

    /// Its counters, to be read elsewhere.
    pub fn gauge(&self) -> NetworkGauge {
        NetworkGauge(Arc::clone(&self.shared))
    }
}

impl NetworkGauge {
    /// What passed so far.
    pub fn counts(&self) -> NetworkCounts {
        let Counters { round_trips, delay_ns, late_ns, pieces, bytes, cpu_ns, connections } =
            &self.0.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NetworkCounts {
            round_trips: read(round_trips),
            delay_ns: read(delay_ns),
            late_ns: read(late_ns),
            pieces: read(pieces),
            bytes_to_server: read(&bytes[connection::CLIENT]),
            bytes_to_client: read(&bytes[connection::SERVER]),
            cpu_ns: read(cpu_ns),
            connections: read(connections),
        }
    }
}

impl Drop for ClientNetwork {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // A relay that has ended needs no waking.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the panic hook; there is no receiver for it.
            let _ = thread.join();
        }
    }
}

/// Gives the calling thread a real-time priority.
fn prioritise(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a valid sched_param that outlives the call; thread 0 is the caller.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
