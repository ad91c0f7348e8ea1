//! The client: merging its layers, scaling it, and checking it against the ladder and the server.

use underlay_core::Nanos;

use super::chosen::{Chosen, Layer};
use super::engine::EngineChoice;
use super::procedure_choice::ProcedureChoice;
use super::resolver::Resolver;
use super::time_range::check_time;
use super::workload::WorkloadChoice;
use crate::exact;
use crate::file::Client;
use crate::finding::Severity;
use crate::limits::{NETWORK_BYTES_PER_SECOND, ROUND_TRIP, USERS};
use crate::plan::{ClientPlace, ClientPlan, NetworkPlan, Origin, Scale, Setting, WorkloadKind};
use crate::scale;
use underlay_core::Bytes;

/// The decisions about one client. Every part may be undecided.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientChoice {
    place: Option<Chosen<ClientPlace>>,
    round_trip: Option<Chosen<Nanos>>,
    bytes_per_second: Option<Chosen<u64>>,
    pub connections: Option<Chosen<u32>>,
}

impl ClientChoice {
    pub fn place(&self) -> ClientPlace {
        self.place.as_ref().map(|place| place.value).unwrap_or_default()
    }

    /// This choice where it is made, `base` elsewhere.
    pub fn over(&self, base: &ClientChoice) -> ClientChoice {
        ClientChoice {
            place: self.place.clone().or_else(|| base.place.clone()),
            round_trip: self.round_trip.clone().or_else(|| base.round_trip.clone()),
            bytes_per_second: self
                .bytes_per_second
                .clone()
                .or_else(|| base.bytes_per_second.clone()),
            connections: self.connections.clone().or_else(|| base.connections.clone()),
        }
    }

    /// The client as the plan holds it.
    pub fn plan(&self) -> ClientPlan {
        let place = self.place();
        let network = NetworkPlan {
            round_trip: self.round_trip.as_ref().map_or(Nanos::ZERO, |time| time.value),
            bytes_per_second: self.bytes_per_second.as_ref().map(|rate| rate.value),
        };
        ClientPlan {
            place,
            network: (place == ClientPlace::Remote).then_some(network),
            connections: self.connections.as_ref().map(|connections| connections.value),
        }
    }

    /// A part of the same client: fewer users behind a narrower network with the same latency.
    pub fn scaled(mut self, by: Scale) -> ClientChoice {
        if by == Scale::FULL {
            return self;
        }
        self.bytes_per_second = self.bytes_per_second.map(|rate| {
            let full = exact::size(Bytes(rate.value));
            rate.scaled((rate.value / u64::from(by.divisor)).max(1), full)
        });
        self.connections = self
            .connections
            .map(|full| full.scaled(scale::count(full.value, by), full.value.to_string()));
        self
    }

    /// Adds one line per value that the study decides to the provenance table.
    pub fn record(&self, provenance: &mut Vec<Setting>) {
        let is_said = |setting: &Setting| setting.origin != Origin::Default;
        let rows = [
            self.place.as_ref().map(|c| c.setting(c.value.as_str().to_string())),
            self.round_trip.as_ref().map(|c| c.setting(exact::time(c.value))),
            self.bytes_per_second.as_ref().map(|c| c.setting(exact::size(Bytes(c.value)))),
            self.connections.as_ref().map(|c| c.setting(c.value.to_string())),
        ];
        provenance.extend(rows.into_iter().flatten().filter(is_said));
    }

    /// What has a meaning behind a network alone.
    fn of_network(&self) -> impl Iterator<Item = Chosen<()>> {
        let parts = [
            self.round_trip.as_ref().map(|c| c.with(())),
            self.bytes_per_second.as_ref().map(|c| c.with(())),
        ];
        parts.into_iter().flatten()
    }
}

/// The study's client, scaled.
pub(super) fn of_study(resolver: &mut Resolver<'_>) -> ClientChoice {
    let layers = [
        (Layer::File, &resolver.file.client.content),
        (Layer::Default, &resolver.defaults.client.content),
    ];
    let client = resolve(resolver, "client", &layers);
    client.record(&mut resolver.provenance);
    client
}

/// Decides about a client from its layers, checking value by value; scaled.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    path: &str,
    layers: &[(Layer<'_>, &Client)],
) -> ClientChoice {
    macro_rules! decide {
        ($key:literal, $field:ident) => {{
            let candidates: Vec<_> =
                layers.iter().map(|(layer, client)| (*layer, &client.$field)).collect();
            resolver.pick(&format!("{path}.{}", $key), &candidates).found()
        }};
    }
    let mut choice = ClientChoice {
        place: decide!("place", place),
        round_trip: decide!("round-trip", round_trip),
        bytes_per_second: decide!("bytes-per-second", bytes_per_second),
        connections: decide!("connections", connections),
    };
    if let Some(time) = &choice.round_trip {
        check_time(resolver, time, &ROUND_TRIP);
    }
    if let Some(rate) = &choice.bytes_per_second
        && !NETWORK_BYTES_PER_SECOND.contains(&rate.value)
    {
        let low = Bytes(*NETWORK_BYTES_PER_SECOND.start());
        rate.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is out of range", rate.called()),
            format!("{} per second cannot carry the load of a database", Bytes(rate.value)),
            format!("write at least \"{}\"", exact::size(low)),
        );
    }
    if let Some(connections) = &choice.connections
        && !USERS.contains(&connections.value)
    {
        let (low, high) = (USERS.start(), USERS.end());
        connections.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is out of range", connections.called()),
            format!("{} is not from {low} to {high}", connections.value),
            "write how many connections the users share, or remove the key",
        );
        choice.connections = None;
    }
    choice.scaled(resolver.scale)
}

/// Reports what a design's client says to no effect. `own` is what the design decides of `client` itself.
pub(super) fn check_client(
    resolver: &mut Resolver<'_>,
    (client, own): (&ClientChoice, &ClientChoice),
    engine: &EngineChoice,
    workload: Option<&WorkloadChoice>,
    procedure: &ProcedureChoice,
) {
    // Where an axis moves the client, its network is for the points at which it is remote.
    if client.place() != ClientPlace::Remote && !resolver.varies("client.place") {
        for key in own.of_network() {
            network_of_nothing(resolver, &key, client.place());
        }
    }
    match workload.map(WorkloadChoice::kind) {
        Some(WorkloadKind::Backup(_)) => return refuse_client_of_backups(resolver, client),
        Some(kind) if kind.job_sessions().is_some() => {
            return check_client_of_job(resolver, client);
        }
        _ => {}
    }
    check_sharing(resolver, client, procedure);
    if client.place() == ClientPlace::Local
        && engine.cpus.is_none()
        && engine.memory_limit.is_none()
    {
        resolver.finding(
            Severity::Warning,
            "client-without-limits",
            "the client runs within the server's limits, and the server has none: it is a client on the host",
            "set engine.cpus or engine.memory-limit",
            client.place.as_ref().and_then(|place| place.line(resolver.text)),
        );
    }
}

/// Reports a network of the study that none of its clients is behind.
pub(super) fn check_study_client(
    resolver: &mut Resolver<'_>,
    study: &ClientChoice,
    clients: &[ClientPlan],
) {
    // Without a design in order nothing is known of the others.
    if resolver.varies("client.place")
        || clients.is_empty()
        || clients.iter().any(|client| client.network.is_some())
    {
        return;
    }
    for key in study.of_network() {
        network_of_nothing(resolver, &key, study.place());
    }
}

fn network_of_nothing(resolver: &mut Resolver<'_>, key: &Chosen<()>, place: ClientPlace) {
    key.problem(
        &mut resolver.report,
        "conflict",
        format!("{} has no meaning for a client with place `{place}`", key.called()),
        "only a remote client is behind a network",
        "write place = \"remote\", or remove this key",
    );
}

fn refuse_client_of_backups(resolver: &mut Resolver<'_>, client: &ClientChoice) {
    let place = client.place.as_ref().filter(|place| place.value != ClientPlace::Host);
    let parts = [
        place.map(|place| place.with(())),
        client.connections.as_ref().map(|connections| connections.with(())),
    ];
    for part in parts.into_iter().flatten() {
        part.problem(
            &mut resolver.report,
            "conflict",
            format!("{} has no meaning for backups", part.called()),
            "the engine's own programs take them on the same host, within the server's limits",
            "remove it",
        );
    }
}

fn check_client_of_job(resolver: &mut Resolver<'_>, client: &ClientChoice) {
    const LABEL: &str = "the sessions of a job are its own, and work within the lab";
    if let Some(connections) = &client.connections {
        connections.problem(
            &mut resolver.report,
            "conflict",
            format!("{} has no meaning for a job", connections.called()),
            LABEL,
            "remove it; `sessions` or `streams` of the workload say how much goes on at once",
        );
    }
    if let Some(place) = client.place.as_ref().filter(|c| c.value == ClientPlace::Local) {
        place.problem(
            &mut resolver.report,
            "conflict",
            format!("{} cannot be `local` for a job", place.called()),
            LABEL,
            "write \"host\" or \"remote\"",
        );
    }
}

/// Connections that nobody needs to share are a mistake in a study; at another size or with other users they are not.
fn check_sharing(resolver: &mut Resolver<'_>, client: &ClientChoice, procedure: &ProcedureChoice) {
    let (Some(connections), Some(most)) = (&client.connections, procedure.users_at_once()) else {
        return;
    };
    if connections.value < most.value {
        return;
    }
    let is_as_written = resolver.scale == Scale::FULL
        && !matches!(most.origin, Origin::CommandLine { .. })
        && !resolver.varies("client.connections");
    let text = format!(
        "{} connections are not shared: there are at most {} users",
        connections.value, most.value
    );
    if is_as_written {
        connections.problem(
            &mut resolver.report,
            "conflict",
            text,
            "each user has a connection of its own without this key",
            "write fewer connections than users, or remove the key",
        );
    } else {
        resolver.finding(
            Severity::Warning,
            "connections-not-shared",
            text,
            "choose a larger scale or more users where the sharing matters",
            connections.line(resolver.text),
        );
    }
}
