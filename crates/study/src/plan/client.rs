//! The client of a plan: where the load generator runs, and what lies between it and the server.

use serde_json::{Value, json};
use underlay_core::{Nanos, words};

use crate::json_value::ToJson;

/// The client of a design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientPlan {
    /// Where it runs.
    pub place: ClientPlace,
    /// The network that lies before it; of a remote client alone.
    pub network: Option<NetworkPlan>,
    /// Connections with the server at most, shared by the users; `None` = each user has its own.
    pub connections: Option<u32>,
}

/// The network between a remote client and the server. One for all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkPlan {
    /// What it adds to a round trip, half of it each way.
    pub round_trip: Nanos,
    /// What each direction carries, scaled; `None` = any amount.
    pub bytes_per_second: Option<u64>,
}

words! {
    /// Where the load generator runs.
    #[derive(Default)]
    pub enum ClientPlace: "place of the client" {
        /// On this host, outside the server's limits, over its Unix socket.
        #[default]
        Host = "host",
        /// Within the server's CPU and memory limits, over its Unix socket.
        Local = "local",
        /// Outside of the limits, over TCP, behind a network.
        Remote = "remote",
    }
}

impl ClientPlan {
    /// Connections that so many users open.
    pub fn connections_of(&self, users: u32) -> u32 {
        self.connections.map_or(users, |connections| connections.min(users))
    }

    /// For people: `remote, 2 ms round trip, 125 MB/s each way, 32 connections`; `None` of a client as it is without a word
    /// about it.
    pub fn described(&self) -> Option<String> {
        if *self == ClientPlan::default() {
            return None;
        }
        let mut parts = vec![self.place.as_str().to_string()];
        if let Some(network) = &self.network {
            parts.push(format!("round trip {}", network.round_trip));
            parts.extend(
                network
                    .bytes_per_second
                    .map(|rate| format!("{} per second each way", underlay_core::Bytes(rate))),
            );
        }
        parts.extend(self.connections.map(|connections| {
            let plural = if connections == 1 { "" } else { "s" };
            format!("{connections} connection{plural} shared by the users")
        }));
        Some(parts.join(", "))
    }
}

/// Without what does not apply.
impl ToJson for ClientPlan {
    fn to_json(&self) -> Value {
        let mut client = json!({ "place": self.place.as_str() });
        if let Some(network) = &self.network {
            client["round_trip_ns"] = network.round_trip.0.into();
            client["bytes_per_second"] = network.bytes_per_second.into();
        }
        if let Some(connections) = self.connections {
            client["connections"] = connections.into();
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientPlace, ClientPlan, NetworkPlan};
    use underlay_core::Nanos;

    #[test]
    fn a_client_is_described_where_something_is_said_of_it() {
        assert_eq!(ClientPlan::default().described(), None);
        let network =
            NetworkPlan { round_trip: Nanos::from_millis(2), bytes_per_second: Some(125_000_000) };
        let client = ClientPlan {
            place: ClientPlace::Remote,
            network: Some(network),
            connections: Some(32),
        };
        let text = client.described().unwrap();
        assert!(text.starts_with("remote, round trip 2 ms, "), "{text}");
        assert!(text.ends_with("32 connections shared by the users"), "{text}");
        assert_eq!((client.connections_of(8), client.connections_of(100)), (8, 32));
    }
}
