//! What the load generator itself cost in a measured window, and what lay between it and the server.
//!
//! Absent sources give `None`, never zero.

use underlay_record::StoredHistogram;
use underlay_record::conventions::{
    CONNECTION_WAIT, DISPATCH_LAG, client_network_series, driver_series, histogram_scope, source,
};

use super::cpu_facts::per_process;
use super::window::{MeasuredWindow, per};
use crate::plan_view::PlanView;

/// The load generator itself.
#[derive(Clone, Debug)]
pub(crate) struct DriverFacts {
    pub(crate) cores: Option<f64>,
    /// Open sessions: users that are not active yet keep theirs, idle.
    pub(crate) sessions: Option<f64>,
    /// Time in which its busiest thread ran or wanted to, as a share.
    pub(crate) busiest_share: Option<f64>,
    /// Sessions whose answers are held back, on average, because on the slower processors of a dilated design they would still
    /// be at work; `None` of records without.
    pub(crate) held_back: Option<f64>,
    /// Actual minus intended dispatch, nanoseconds.
    pub(crate) lag: StoredHistogram,
}

/// Where the load generator works, and what lies between it and the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFacts {
    /// Whether it works within the server's limits.
    pub(crate) is_local: bool,
    /// Connections that the users share, if they do.
    pub(crate) connections: Option<f64>,
    /// What a transaction waited for one of them on average, seconds; `None` where they are not shared.
    pub(crate) connection_wait_s: Option<f64>,
    /// Connections that the network of a remote client held up on average.
    pub(crate) network: Option<f64>,
    /// Answers that passed it per transaction.
    pub(crate) round_trips: Option<f64>,
}

/// The load generator in a window.
pub(super) fn driver(window: &MeasuredWindow<'_>) -> DriverFacts {
    let rate = |series| window.rate(source::DRIVER, series).map(|ns| ns / 1e9);
    DriverFacts {
        cores: rate(driver_series::CPU)
            .or_else(|| per_process(window, "on_cpu").get("driver").copied()),
        sessions: window.mean(source::DRIVER, driver_series::SESSIONS),
        busiest_share: rate(driver_series::BUSIEST_THREAD),
        held_back: rate(driver_series::HELD_BACK),
        lag: (&window.merged_histogram(histogram_scope::DRIVER, DISPATCH_LAG)).into(),
    }
}

/// The client in a window, in which so many transactions were completed per second.
pub(super) fn client(
    window: &MeasuredWindow<'_>,
    plan: &PlanView,
    completed_per_second: f64,
) -> ClientFacts {
    let design = window.run.run.design as usize;
    let network = |series| window.rate(source::CLIENT_NETWORK, series);
    let connections = plan.connections(design);
    let waits = window.merged_histogram(histogram_scope::DRIVER, CONNECTION_WAIT);
    // Those that did not have to wait are in no histogram, but count.
    let completed = completed_per_second * window.interval.seconds();
    ClientFacts {
        is_local: plan.has_local_client(design),
        connections,
        connection_wait_s: connections.and_then(|_| per(waits.sum() as f64 / 1e9, completed)),
        network: network(client_network_series::DELAY).map(|ns| ns / 1e9),
        round_trips: network(client_network_series::ROUND_TRIPS)
            .and_then(|rate| per(rate, completed_per_second)),
    }
}
