//! One connection through the network: two sockets, and the data in flight between them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

/// Bytes of one direction of a connection that are under way at most: what a sender may send before the first of it was
/// received. As large as the windows that hosts of today grow to.
pub const WINDOW_BYTES: usize = 4 << 20;

/// The side of the load generator, and the direction that begins there.
pub(super) const CLIENT: usize = 0;
/// The side of the server, and the direction that begins there.
pub(super) const SERVER: usize = 1;

/// What reading from a side gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Nothing now.
    Nothing,
    /// Bytes, to be sent on.
    Bytes(Vec<u8>),
    /// The end, once: the side sends nothing any more, or was reset.
    End,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    sockets: [TcpStream; 2],
    directions: [Direction; 2],
    /// The side that sent last.
    speaker: Option<usize>,
}

/// What goes from one side to the other.
#[derive(Debug, Default)]
struct Direction {
    /// On the link, or delivered and not taken by the socket.
    under_way_bytes: usize,
    /// Delivered and not taken: the first so many bytes of the first piece were.
    waiting: VecDeque<Vec<u8>>,
    taken_bytes: usize,
    /// The sender has ended.
    is_read: bool,
    /// Its end was delivered.
    is_ending: bool,
    /// The receiver knows.
    has_ended: bool,
}

impl Connection {
    /// Two sockets that do not block.
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Connection {
        Connection { sockets: [client, server], directions: Default::default(), speaker: None }
    }

    pub(super) fn socket(&self, side: usize) -> &TcpStream {
        &self.sockets[side]
    }

    /// Whether a side may send.
    pub(super) fn can_read(&self, side: usize) -> bool {
        let direction = &self.directions[side];
        !direction.is_read && direction.under_way_bytes < WINDOW_BYTES
    }

    /// Whether something waits for a side to take it.
    pub(super) fn has_output(&self, side: usize) -> bool {
        !self.directions[1 - side].waiting.is_empty()
    }

    /// Whether nothing will pass any more.
    pub(super) fn is_over(&self) -> bool {
        self.directions.iter().all(|direction| direction.has_ended)
    }

    /// Takes what a side has sent, at most as much as fits into `buffer`.
    pub(super) fn receive(&mut self, side: usize, buffer: &mut [u8]) -> Received {
        if self.directions[side].is_read {
            return Received::Nothing;
        }
        let bytes = loop {
            match self.sockets[side].read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
                // What was reset has ended for the other side as well.
                Ok(0) | Err(_) => {
                    self.directions[side].is_read = true;
                    return Received::End;
                }
                Ok(bytes) => break bytes,
            }
        };
        self.directions[side].under_way_bytes += bytes;
        Received::Bytes(buffer[..bytes].to_vec())
    }

    /// Notes that a side sends; whether the other one had sent before, or nobody.
    pub(super) fn turns_to(&mut self, side: usize) -> bool {
        self.speaker.replace(side) != Some(side)
    }

    /// Delivers what a side had sent; nothing is its end.
    ///
    /// # Errors
    /// If the other side takes nothing any more: the connection is broken.
    pub(super) fn deliver(&mut self, from: usize, bytes: Vec<u8>) -> io::Result<()> {
        let direction = &mut self.directions[from];
        if bytes.is_empty() {
            direction.is_ending = true;
        } else {
            direction.waiting.push_back(bytes);
        }
        self.flush(1 - from)
    }

    /// Hands to a side what waits for it, as much as it takes.
    ///
    /// # Errors
    /// As [`Connection::deliver`].
    pub(super) fn flush(&mut self, side: usize) -> io::Result<()> {
        let (socket, direction) = (&mut self.sockets[side], &mut self.directions[1 - side]);
        while let Some(piece) = direction.waiting.front() {
            match socket.write(&piece[direction.taken_bytes..]) {
                Ok(taken) => {
                    direction.taken_bytes += taken;
                    direction.under_way_bytes -= taken;
                    if direction.taken_bytes == piece.len() {
                        direction.waiting.pop_front();
                        direction.taken_bytes = 0;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if direction.is_ending && !direction.has_ended {
            direction.has_ended = true;
            // One that is closed already knows.
            let _ = socket.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}
