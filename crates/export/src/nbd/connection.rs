//! One client of the NBD server: its socket, received data that is not processed yet, and data that could not
//! be sent yet.
//!
//! Never blocks. Replies that a slow client does not read are kept up to a limit; above it no more requests are
//! read from the client.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::negotiation::{Negotiation, Status, greeting};
use super::protocol::ReplyForm;

/// Room for arriving bytes that every connection has; larger requests get more as long as they last.
const USUAL_INPUT_BYTES: usize = 256 << 10;
/// A client that lets more than this wait in its direction is not read from.
const OUTPUT_LIMIT_BYTES: usize = 1 << 20;
/// The same for requests under way.
const IN_FLIGHT_LIMIT: u32 = 1024;
/// And for the data that their replies will carry.
const IN_FLIGHT_LIMIT_BYTES: u64 = 32 << 20;

/// What a client is doing.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Negotiating(Negotiation),
    Serving {
        volume: usize,
        form: ReplyForm,
        status: Status,
    },
    /// It wants no more than the replies that are still due.
    Leaving,
}

/// One client.
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) phase: Phase,
    pub(crate) input: Input,
    output: Vec<u8>,
    /// Bytes at the beginning of `output` that are sent.
    sent: usize,
    in_flight: u32,
    in_flight_bytes: u64,
    /// Whether all clients together hold too much memory.
    is_squeezed: bool,
    connected: Instant,
    /// When what waits began to wait, or was last taken from.
    last_progress: Instant,
}

/// Bytes that have arrived.
#[derive(Debug, Default)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    needed: usize,
}

/// What reading from a socket brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Some,
    Nothing,
    Closed,
}

impl Connection {
    /// A client that has just connected on a non-blocking socket; it is greeted.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Connection> {
        let mut connection = Connection {
            socket,
            phase: Phase::Negotiating(Negotiation::new()),
            input: Input::default(),
            output: Vec::new(),
            sent: 0,
            in_flight: 0,
            in_flight_bytes: 0,
            is_squeezed: false,
            connected: Instant::now(),
            last_progress: Instant::now(),
        };
        connection.send(&[&greeting()])?;
        Ok(connection)
    }

    /// Takes what has arrived, as far as there is room.
    pub(crate) fn receive(&mut self) -> io::Result<Arrived> {
        let room = self.input.room();
        loop {
            return match rustix::io::read(&self.socket, &mut *room) {
                Ok(0) | Err(Errno::CONNRESET) => Ok(Arrived::Closed),
                Ok(length) => {
                    self.input.end += length;
                    debug_assert!(self.input.end <= self.input.buffer.len(), "read past the room");
                    Ok(Arrived::Some)
                }
                Err(Errno::AGAIN) => Ok(Arrived::Nothing),
                Err(Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Sends these bytes after everything that waits, or lets them wait.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut skip = 0;
        let waited = self.has_output();
        if self.output.is_empty() {
            let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            skip = match rustix::io::writev(&self.socket, &slices) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(error) => return Err(error.into()),
            };
        }
        for part in parts {
            let gone = skip.min(part.len());
            self.output.extend_from_slice(&part[gone..]);
            skip -= gone;
        }
        debug_assert_eq!(skip, 0, "the kernel took more than it was given");
        if !waited && self.has_output() {
            self.last_progress = Instant::now();
        }
        Ok(())
    }

    /// Sends what waits, as far as the client takes it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.has_output() {
            match rustix::io::write(&self.socket, &self.output[self.sent..]) {
                Ok(length) => {
                    self.sent += length;
                    self.last_progress = Instant::now();
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.output.clear();
        self.output.shrink_to(USUAL_INPUT_BYTES);
        self.sent = 0;
        Ok(())
    }

    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether nothing more may be read from it for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.output.len() - self.sent > OUTPUT_LIMIT_BYTES
            || self.in_flight >= IN_FLIGHT_LIMIT
            || self.in_flight_bytes > IN_FLIGHT_LIMIT_BYTES
            || (self.is_squeezed && (self.in_flight > 0 || self.has_output()))
    }

    /// While all clients together hold too much memory, each may have one request under way.
    pub(crate) fn squeeze(&mut self, is_squeezed: bool) {
        self.is_squeezed = is_squeezed;
    }

    /// Memory that its replies hold or will hold.
    pub(crate) fn reply_bytes(&self) -> u64 {
        (self.output.len() - self.sent) as u64 + self.in_flight_bytes
    }

    /// How long it has not taken what waits for it; nothing if nothing waits.
    pub(crate) fn stalled_for(&self, now: Instant) -> Option<Duration> {
        self.has_output().then(|| now.saturating_duration_since(self.last_progress))
    }

    /// How long it has not chosen a volume, or not left after saying that it would.
    pub(crate) fn unsettled_for(&self, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Negotiating(_) => Some(now.saturating_duration_since(self.connected)),
            Phase::Leaving => self.stalled_for(now),
            Phase::Serving { .. } => None,
        }
    }

    /// A request was accepted whose reply will carry so many bytes.
    pub(crate) fn accepted(&mut self, reply_bytes: u64) {
        self.in_flight += 1;
        self.in_flight_bytes += reply_bytes;
    }

    /// Its reply was handed to [`Connection::send`].
    pub(crate) fn replied(&mut self, reply_bytes: u64) {
        debug_assert!(self.in_flight > 0, "a request is replied to once");
        debug_assert!(self.in_flight_bytes >= reply_bytes, "a reply longer than its request said");
        self.in_flight -= 1;
        self.in_flight_bytes -= reply_bytes;
    }

    /// Whether it wanted to leave and has got everything.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.phase, Phase::Leaving) && self.in_flight == 0 && !self.has_output()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Input {
    /// What has arrived and is not used up.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// So many bytes at the beginning are used up.
    pub(crate) fn used(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > USUAL_INPUT_BYTES {
                // Freed, so that one large write does not hold its memory for the life of the connection.
                self.buffer = Vec::new();
            }
        }
    }

    /// Nothing can be said before so many bytes are there.
    pub(crate) fn needs(&mut self, bytes: usize) {
        self.needed = bytes;
    }

    /// Free space behind the bytes that are there, enough for what is needed.
    fn room(&mut self) -> &mut [u8] {
        let wanted = self.needed.max(USUAL_INPUT_BYTES);
        if self.start > 0 && self.buffer.len() - self.start < wanted {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end + USUAL_INPUT_BYTES, 0);
        }
        &mut self.buffer[self.end..]
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrived, Connection, USUAL_INPUT_BYTES};
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, Connection) {
        let (client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        (client, Connection::new(OwnedFd::from(server)).unwrap())
    }

    #[test]
    fn a_request_larger_than_the_usual_room_arrives_whole_and_gives_its_memory_back() {
        let (mut client, mut connection) = pair();
        let length = 3 * USUAL_INPUT_BYTES + 17;
        let sender = std::thread::spawn(move || {
            client.write_all(&vec![7; length]).unwrap();
            client
        });
        connection.input.needs(length);
        while connection.input.bytes().len() < length {
            assert_ne!(connection.receive().unwrap(), Arrived::Closed);
        }
        assert!(connection.input.bytes().iter().all(|byte| *byte == 7));
        connection.input.used(length);
        assert!(connection.input.buffer.is_empty());
        drop(sender.join().unwrap());
        while connection.receive().unwrap() == Arrived::Nothing {}
        assert_eq!(connection.receive().unwrap(), Arrived::Closed);
    }

    #[test]
    fn what_a_slow_client_does_not_take_is_kept_in_order_and_pauses_it() {
        let (mut client, mut connection) = pair();
        let piece: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
        for _ in 0..10 {
            connection.send(&[&piece[..100], &piece[100..]]).unwrap();
        }
        assert!(connection.is_paused());
        let receiver = std::thread::spawn(move || {
            let mut all = vec![0; 18 + (10 << 20)];
            client.read_exact(&mut all).unwrap();
            all
        });
        while connection.has_output() {
            connection.flush().unwrap();
        }
        assert!(!connection.is_paused());
        let all = receiver.join().unwrap();
        assert!(all[18..].chunks_exact(1 << 20).all(|found| found == piece));
    }
}
