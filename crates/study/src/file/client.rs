//! `[client]`: where the load generator runs, and how it reaches the server.

use underlay_core::Nanos;

use crate::entry::Entry;
use crate::limits::USERS;
use crate::plan::ClientPlace;
use crate::section::*;

section! {
    /// The client: the load generator and its way to the server. Inside a design: what differs from
    /// the study's client.
    pub(crate) struct Client as "Client" {
        /// `host` = on this host, outside the server's limits, over its Unix socket; `local` = within
        /// the server's CPU and memory limits, over its Unix socket; `remote` = outside the limits,
        /// over TCP, behind a network.
        "place" place: Entry<ClientPlace> = One(word::<ClientPlace>());
        /// Time that the network of a remote client adds to a round trip, half of it each way. None, when left out.
        "round-trip" round_trip: Entry<Nanos> = One(time());
        /// Each direction of that network per second, written as a size: 10 Gbit/s = "1250MB". Unlimited, when left
        /// out.
        "bytes-per-second" bytes_per_second: Entry<u64> = One(rate());
        /// Connections with the server at most, shared by the users; the time that a user waits for one is part of its
        /// response time. Each user has its own, when left out.
        "connections" connections: Entry<u32> = One(count(USERS));
    }
    written_for {
        "latency" => "round-trip", "rtt" => "round-trip", "bandwidth" => "bytes-per-second",
        "pool" => "connections", "location" => "place",
    }
}
