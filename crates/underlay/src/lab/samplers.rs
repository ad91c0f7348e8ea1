//! Samplers that only the lab can offer: of the datastore, of the client's network, of the load generator.

use std::sync::{Arc, Mutex, PoisonError};
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{Dilation, Nanos};
use underlay_datastore::Datastore;
use underlay_driver::{DriveTick, NetworkGauge, ServerCpu};
use underlay_record::conventions::{
    client_network_series as network_series, driver_series as series, source,
};
use underlay_telemetry::{SampleError, Sampler, Status};
use underlay_workload::transactional::Shape;

use crate::lab::run_log::RunLog;

/// A datastore shared between the lab and its sampler.
pub type SharedDatastore = Arc<Mutex<Box<dyn Datastore>>>;

/// Reads the datastore's counters.
pub struct DatastoreSampler {
    datastore: SharedDatastore,
    series: Vec<SeriesSpec>,
    status: Status,
}

impl DatastoreSampler {
    /// A sampler of a datastore that is open.
    pub fn new(datastore: SharedDatastore) -> DatastoreSampler {
        let series = datastore.lock().unwrap_or_else(PoisonError::into_inner).series();
        let status = if series.is_empty() {
            Status::Absent(
                "this kind of datastore has no counters of its own; see the block layer"
                    .to_string(),
            )
        } else {
            Status::Available
        };
        DatastoreSampler { datastore, series, status }
    }
}

impl Sampler for DatastoreSampler {
    fn name(&self) -> &str {
        source::DATASTORE
    }

    fn layer(&self) -> Layer {
        Layer::Datastore
    }

    fn status(&self) -> &Status {
        &self.status
    }

    fn series(&self) -> &[SeriesSpec] {
        &self.series
    }

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        if self.series.is_empty() {
            return Ok(());
        }
        let counters = self.datastore.lock().unwrap_or_else(PoisonError::into_inner).counters();
        values.extend(counters.map_err(|error| SampleError::Other(Box::new(error)))?);
        Ok(())
    }
}

/// Reads what passes the network of a remote client.
pub struct NetworkSampler {
    name: String,
    gauge: NetworkGauge,
    dilation: Dilation,
    series: Vec<SeriesSpec>,
}

impl NetworkSampler {
    /// A sampler of a network, whose times are in the host's time.
    pub fn new(gauge: NetworkGauge, log: RunLog<'_>) -> NetworkSampler {
        let series = vec![
            SeriesSpec::counter(network_series::ROUND_TRIPS, "round trips"),
            SeriesSpec::counter(network_series::DELAY, "ns"),
            SeriesSpec::counter(network_series::TO_SERVER, "bytes"),
            SeriesSpec::counter(network_series::TO_CLIENT, "bytes"),
            SeriesSpec::counter(network_series::CPU, "ns"),
        ];
        let name = log.recorded(source::CLIENT_NETWORK);
        NetworkSampler { name, gauge, dilation: log.dilation, series }
    }
}

impl Sampler for NetworkSampler {
    fn name(&self) -> &str {
        &self.name
    }

    fn layer(&self) -> Layer {
        Layer::Driver
    }

    fn status(&self) -> &Status {
        &Status::Available
    }

    fn series(&self) -> &[SeriesSpec] {
        &self.series
    }

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let counts = self.gauge.counts();
        values.extend([
            counts.round_trips as f64,
            self.dilation.design(Nanos(counts.delay_ns)).0 as f64,
            counts.bytes_to_server as f64,
            counts.bytes_to_client as f64,
            counts.cpu_ns as f64,
        ]);
        Ok(())
    }
}

/// What the load generator last said of itself, shared between the lab and its sampler.
#[derive(Clone, Default)]
pub struct DriverGauge(Arc<Mutex<Option<DriverState>>>);

#[derive(Clone)]
struct DriverState {
    users_active: u32,
    users_in_transaction: u32,
    users_stalled: u32,
    sessions: u32,
    arrivals_queued: u64,
    arrivals_due: u64,
    arrivals_overflowed: u64,
    cpu_ns: u64,
    busiest_thread_ns: u64,
    held_back_ns: u64,
    memory_bytes: u64,
    /// By type.
    server_cpu: Vec<ServerCpu>,
}

impl DriverGauge {
    /// Takes over what a tick says. Increments are summed, so that the series are counters.
    pub fn set(&self, tick: &DriveTick) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.as_ref();
        let (due, overflowed, busiest) = before.map_or((0, 0, 0), |state| {
            (state.arrivals_due, state.arrivals_overflowed, state.busiest_thread_ns)
        });
        let held_back_ns = before.map_or(0, |state| state.held_back_ns);
        let mut server_cpu = before.map_or_else(Vec::new, |state| state.server_cpu.clone());
        server_cpu.resize(tick.types.len(), ServerCpu::default());
        for (sum, kind) in server_cpu.iter_mut().zip(&tick.types) {
            sum.merge(kind.server_cpu);
        }
        *state = Some(DriverState {
            users_active: tick.users.active,
            users_in_transaction: tick.users.in_transaction,
            users_stalled: tick.users.stalled,
            sessions: tick.users.sessions,
            arrivals_queued: tick.arrivals.queued,
            arrivals_due: due + tick.arrivals.due,
            arrivals_overflowed: overflowed + tick.arrivals.overflowed,
            cpu_ns: tick.cpu_ns,
            busiest_thread_ns: busiest + tick.busiest.awake_ns(),
            held_back_ns: held_back_ns + tick.held_back_ns,
            memory_bytes: tick.memory.0,
            server_cpu,
        });
    }
}

/// Reads the load generator's gauge.
pub struct DriverSampler {
    name: String,
    gauge: DriverGauge,
    series: Vec<SeriesSpec>,
}

impl DriverSampler {
    /// A sampler of what loads one of several databases.
    pub fn named(log: RunLog<'_>, gauge: DriverGauge, shape: &Shape) -> DriverSampler {
        DriverSampler { name: log.recorded(source::DRIVER), ..DriverSampler::new(gauge, shape) }
    }

    /// A sampler of `gauge`, of transactions of this shape.
    pub fn new(gauge: DriverGauge, shape: &Shape) -> DriverSampler {
        let mut series = vec![
            SeriesSpec::gauge(series::USERS_ACTIVE, "users"),
            SeriesSpec::gauge(series::USERS_IN_TRANSACTION, "users"),
            SeriesSpec::gauge(series::USERS_STALLED, "users"),
            SeriesSpec::gauge(series::SESSIONS, "sessions"),
            SeriesSpec::gauge(series::ARRIVALS_QUEUED, "transactions"),
            SeriesSpec::counter(series::ARRIVALS_DUE, "transactions"),
            SeriesSpec::counter(series::ARRIVALS_OVERFLOWED, "transactions"),
            SeriesSpec::counter(series::CPU, "ns"),
            SeriesSpec::counter(series::BUSIEST_THREAD, "ns"),
            SeriesSpec::counter(series::HELD_BACK, "ns"),
            SeriesSpec::gauge(series::MEMORY, "bytes"),
        ];
        for kind in shape.types {
            series.push(SeriesSpec::counter(series::server_cpu_transactions(kind), "transactions"));
            series.push(SeriesSpec::counter(series::server_cpu(kind), "ns"));
        }
        DriverSampler { name: source::DRIVER.to_string(), gauge, series }
    }
}

impl Sampler for DriverSampler {
    fn name(&self) -> &str {
        &self.name
    }

    fn layer(&self) -> Layer {
        Layer::Driver
    }

    fn status(&self) -> &Status {
        &Status::Available
    }

    fn series(&self) -> &[SeriesSpec] {
        &self.series
    }

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let state = self.gauge.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match state {
            None => values.resize(self.series.len(), f64::NAN),
            Some(state) => {
                values.extend([
                    f64::from(state.users_active),
                    f64::from(state.users_in_transaction),
                    f64::from(state.users_stalled),
                    f64::from(state.sessions),
                    state.arrivals_queued as f64,
                    state.arrivals_due as f64,
                    state.arrivals_overflowed as f64,
                    state.cpu_ns as f64,
                    state.busiest_thread_ns as f64,
                    state.held_back_ns as f64,
                    state.memory_bytes as f64,
                ]);
                let of_types = state.server_cpu.iter();
                values.extend(of_types.flat_map(|it| [it.transactions as f64, it.ns as f64]));
            }
        }
        Ok(())
    }
}
