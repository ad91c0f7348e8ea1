//! The way from the load generator to the server: its socket, or TCP through a network that is shaped in user space.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};
use underlay_core::{Dilation, Nanos};
use underlay_database::managed::Server;
use underlay_database::{Address, Target};
use underlay_driver::{ClientNetwork, NetworkSpec};
use underlay_record::Severity;
use underlay_record::conventions::{document, finding};
use underlay_study::{ClientPlan, NetworkPlan};

use crate::lab::abort::{Abort, During};
use crate::lab::event::Observer;
use crate::lab::run_log::RunLog;
use crate::lab::samplers::NetworkSampler;

/// The way of one run. The network, if there is one, is there until this is dropped.
pub struct ClientPath {
    /// What the load generator connects to.
    pub target: Target,
    network: Option<ClientNetwork>,
    dilation: Dilation,
}

impl ClientPath {
    /// The way to a server that is running. A dilated network is as many times slower as everything else.
    pub fn open(
        client: &ClientPlan,
        server: &Server,
        database: &str,
        dilation: Dilation,
    ) -> Result<ClientPath, Abort> {
        let Some(plan) = client.network else {
            let target = server.target().with_database(database);
            return Ok(ClientPath { target, network: None, dilation });
        };
        let target = server.tcp_target().and_then(|target| Some((address(&target)?, target)));
        let Some((server, target)) = target else {
            return Err(Abort::Failed(
                "the server does not listen on TCP, which a remote client needs".to_string(),
            ));
        };
        let network = ClientNetwork::start(server, in_host_time(&plan, dilation))
            .during("start the modelled network")?;
        let target = Target { port: network.address().port(), ..target.with_database(database) };
        Ok(ClientPath { target, network: Some(network), dilation })
    }

    /// Samples what passes the network.
    pub fn sampler(&self, log: RunLog<'_>) -> Option<NetworkSampler> {
        let network = self.network.as_ref()?;
        Some(NetworkSampler::new(network.gauge(), log))
    }

    /// Says what cannot be relied on.
    pub fn doubt(&self, log: RunLog<'_>, observer: &mut dyn Observer) -> Result<(), Abort> {
        if self.network.as_ref().is_none_or(ClientNetwork::is_prompt) {
            return Ok(());
        }
        let text = "the modelled network has no real-time priority on this host: when all processors are busy, it \
                    delays messages by more than the study says";
        log.find(Severity::Warning, finding::NETWORK_NOT_PROMPT, text, observer)
    }

    /// Keeps what passed, for the record.
    pub fn keep(&self, client: &ClientPlan, log: RunLog<'_>) -> Result<(), Abort> {
        if *client == ClientPlan::default() {
            return Ok(());
        }
        let mut content = describe(client);
        if let Some(network) = &self.network {
            let counts = network.counts();
            let design = |wall_ns| self.dilation.design(Nanos(wall_ns)).0;
            content["network"] = json!({
                "round_trips": counts.round_trips,
                "delay_ns": design(counts.delay_ns),
                "late_mean_ns": counts.late_ns.checked_div(counts.pieces),
                "bytes_to_server": counts.bytes_to_server,
                "bytes_to_client": counts.bytes_to_client,
                "cpu_ns": counts.cpu_ns,
                "has_priority": network.is_prompt(),
            });
        }
        log.document(document::CLIENT, &content)
    }
}

/// The client as the record has it.
fn describe(client: &ClientPlan) -> Value {
    json!({
        "place": client.place.as_str(),
        "round_trip_ns": client.network.map(|network| network.round_trip.0),
        "bytes_per_second": client.network.and_then(|network| network.bytes_per_second),
        "connections": client.connections,
    })
}

fn in_host_time(plan: &NetworkPlan, dilation: Dilation) -> NetworkSpec {
    let slower_by = u64::from(dilation.factor());
    NetworkSpec {
        round_trip: dilation.wall(plan.round_trip).into(),
        bytes_per_second: plan.bytes_per_second.map(|rate| (rate / slower_by).max(1)),
    }
}

/// Of a server of ours, which is reached by number.
fn address(target: &Target) -> Option<SocketAddr> {
    match &target.address {
        Address::Tcp(host) => {
            let host: IpAddr = host.parse().ok()?;
            Some(SocketAddr::new(host, target.port))
        }
        Address::UnixSocket(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::in_host_time;
    use std::time::Duration;
    use underlay_core::{Dilation, Nanos};
    use underlay_study::NetworkPlan;

    #[test]
    fn a_dilated_network_is_slower_in_everything() {
        let plan =
            NetworkPlan { round_trip: Nanos::from_millis(2), bytes_per_second: Some(1_000_000) };
        let spec = in_host_time(&plan, Dilation::new(4).unwrap());
        assert_eq!(spec.round_trip, Duration::from_millis(8));
        assert_eq!(spec.bytes_per_second, Some(250_000));
        assert_eq!(in_host_time(&plan, Dilation::NONE).round_trip, Duration::from_millis(2));
    }
}
