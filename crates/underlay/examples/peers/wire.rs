//! A relay between a generator and its server that counts how often the word is passed: a round trip begins
//! whenever the client speaks after the server has.
//!
//! It sees neither statements nor transactions, so it is the same for all engines and generators; statements that
//! are sent together count once. It costs time, so nothing else is measured through it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Failure;

const BUFFER_BYTES: usize = 64 << 10;

/// A relay; it ends with the process.
pub struct Wire {
    port: u16,
    connections: Arc<Mutex<Vec<Arc<Mutex<Conversation>>>>>,
}

/// One connection.
#[derive(Debug, Default)]
struct Conversation {
    client_spoke_last: bool,
    turns: u64,
}

impl Wire {
    /// Relays connections to a port of its own on to the server.
    pub fn start(host: &str, port: u16) -> Result<Wire, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let wire = Wire {
            port: listener.local_addr()?.port(),
            connections: Arc::new(Mutex::new(Vec::new())),
        };
        let (connections, host) = (Arc::clone(&wire.connections), host.to_string());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let conversation = Arc::new(Mutex::new(Conversation::default()));
                connections
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Arc::clone(&conversation));
                // A generator whose connection fails says so itself.
                let _ = relay(client, (&host, port), conversation);
            }
        });
        Ok(wire)
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The round trips of the connection that had most.
    pub fn turns_of_the_busiest(&self) -> u64 {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = |one: &Arc<Mutex<Conversation>>| {
            one.lock().unwrap_or_else(PoisonError::into_inner).turns
        };
        connections.iter().map(turns).max().unwrap_or(0)
    }
}

fn relay(
    client: TcpStream,
    server: (&str, u16),
    conversation: Arc<Mutex<Conversation>>,
) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (to_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let heard = Arc::clone(&conversation);
    std::thread::spawn(move || pass_on(client, to_server, &conversation, true));
    std::thread::spawn(move || pass_on(server, to_client, &heard, false));
    Ok(())
}

fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    conversation: &Mutex<Conversation>,
    from_client: bool,
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        conversation.lock().unwrap_or_else(PoisonError::into_inner).heard(from_client);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl Conversation {
    fn heard(&mut self, from_client: bool) {
        self.turns += u64::from(from_client && !self.client_spoke_last);
        self.client_spoke_last = from_client;
    }
}
