//! What is measured of a device, real or modelled, as values.

use std::fmt;
use underlay_core::{Histogram, Nanos};

/// Everything measured of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurements {
    /// Bytes per random request.
    pub block_bytes: u32,
    /// Random reads, one entry per queue depth, ascending.
    pub reads: Vec<DepthPoint>,
    /// Large sequential reads; none when not measured.
    pub sequential_read_bytes_per_second: Option<f64>,
    /// Writes; none when only reads were allowed.
    pub writes: Option<WriteMeasurements>,
}

/// Random reads at one queue depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthPoint {
    /// Requests in flight.
    pub queue_depth: u32,
    /// What they showed.
    pub figures: Figures,
}

/// What a number of requests showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Requests per second.
    pub iops: f64,
    /// Mean latency, ns.
    pub mean_ns: f64,
    /// Median latency, ns.
    pub p50_ns: f64,
    /// Latency that 99 % of the requests stay below, ns.
    pub p99_ns: f64,
}

impl Figures {
    /// The figures of a distribution of latencies in ns, collected over `duration`; none when it is empty.
    pub fn of(latencies: &Histogram, duration: Nanos) -> Option<Figures> {
        Some(Figures {
            iops: latencies.count() as f64 / duration.as_secs_f64(),
            mean_ns: latencies.mean()?,
            p50_ns: latencies.quantile(0.5)? as f64,
            p99_ns: latencies.quantile(0.99)? as f64,
        })
    }
}

/// Everything measured by writing.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteMeasurements {
    /// Random writes, one at a time, each followed by a flush; the writes alone.
    pub single: Figures,
    /// The flushes after them.
    pub flush: Figures,
    /// Bytes written before each flush of `burst_flush_ns`.
    pub burst_bytes: u64,
    /// Median time of a flush after that many bytes at once.
    pub burst_flush_ns: f64,
    /// Random writes for as long as it takes until the rate is steady.
    pub sustained: Sustained,
    /// Large sequential writes.
    pub sequential_bytes_per_second: f64,
    /// Random reads and writes at once; none when not measured.
    pub mixed: Option<MixedPoint>,
}

/// Bytes written in equal intervals of a long run of random writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sustained {
    /// Requests in flight.
    pub queue_depth: u32,
    /// Length of an interval.
    pub interval: Nanos,
    /// Bytes completed in each.
    pub bytes: Vec<u64>,
}

impl Sustained {
    /// Bytes per second of each interval.
    pub fn rates(&self) -> impl Iterator<Item = f64> + '_ {
        self.bytes.iter().map(|bytes| *bytes as f64 / self.interval.as_secs_f64())
    }

    /// The steady rate: the median of the last half, so that neither the start nor a stall decides.
    pub fn steady_bytes_per_second(&self) -> f64 {
        let mut rates: Vec<f64> = self.rates().skip(self.bytes.len() / 2).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    }

    /// Bytes taken at the beginning beyond the steady rate: what a buffer held.
    pub fn absorbed_bytes(&self) -> f64 {
        let steady = self.steady_bytes_per_second();
        let seconds = self.interval.as_secs_f64();
        self.rates()
            .take_while(|rate| *rate > 1.25 * steady)
            .map(|rate| (rate - steady) * seconds)
            .sum()
    }
}

/// Random reads and writes at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixedPoint {
    /// Share of reads, 0..1.
    pub read_share: f64,
    /// Requests in flight.
    pub queue_depth: u32,
    /// What the reads showed.
    pub read: Figures,
}

/// Names one measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// Random reads per second at a queue depth.
    ReadIops(u32),
    /// Their mean latency.
    ReadMean(u32),
    /// Their median.
    ReadP50(u32),
    /// Their 99th percentile.
    ReadP99(u32),
    /// Sequential reads, bytes per second.
    SequentialRead,
    /// Mean latency of a single write.
    WriteMean,
    /// Its median.
    WriteP50,
    /// Its 99th percentile.
    WriteP99,
    /// Median of a flush after one write.
    FlushP50,
    /// Median of a flush after a burst.
    BurstFlush,
    /// Steady random writes, bytes per second.
    SteadyWrite,
    /// Sequential writes, bytes per second.
    SequentialWrite,
    /// Reads per second during writes.
    MixedReadIops,
    /// Median of reads during writes.
    MixedReadP50,
    /// 99th percentile of reads during writes.
    MixedReadP99,
}

impl PointKind {
    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            PointKind::ReadIops(_) | PointKind::MixedReadIops => "1/s",
            PointKind::SequentialRead | PointKind::SequentialWrite | PointKind::SteadyWrite => {
                "B/s"
            }
            _ => "ns",
        }
    }
}

impl fmt::Display for PointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PointKind::ReadIops(depth) => write!(f, "random reads, queue depth {depth}"),
            PointKind::ReadMean(depth) => write!(f, "random read, queue depth {depth}, mean"),
            PointKind::ReadP50(depth) => write!(f, "random read, queue depth {depth}, p50"),
            PointKind::ReadP99(depth) => write!(f, "random read, queue depth {depth}, p99"),
            PointKind::SequentialRead => f.write_str("sequential reads"),
            PointKind::WriteMean => f.write_str("single write, mean"),
            PointKind::WriteP50 => f.write_str("single write, p50"),
            PointKind::WriteP99 => f.write_str("single write, p99"),
            PointKind::FlushP50 => f.write_str("flush after a write, p50"),
            PointKind::BurstFlush => f.write_str("flush after a burst, p50"),
            PointKind::SteadyWrite => f.write_str("steady random writes"),
            PointKind::SequentialWrite => f.write_str("sequential writes"),
            PointKind::MixedReadIops => f.write_str("reads during writes"),
            PointKind::MixedReadP50 => f.write_str("read during writes, p50"),
            PointKind::MixedReadP99 => f.write_str("read during writes, p99"),
        }
    }
}

/// One measured figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// Which.
    pub kind: PointKind,
    /// Its value, in its kind's unit.
    pub value: f64,
}

impl Measurements {
    /// All figures in a fixed order.
    pub fn points(&self) -> Vec<MeasuredPoint> {
        let mut points = Vec::new();
        let mut add = |kind, value| points.push(MeasuredPoint { kind, value });
        for DepthPoint { queue_depth, figures } in &self.reads {
            add(PointKind::ReadIops(*queue_depth), figures.iops);
            add(PointKind::ReadMean(*queue_depth), figures.mean_ns);
            add(PointKind::ReadP50(*queue_depth), figures.p50_ns);
            add(PointKind::ReadP99(*queue_depth), figures.p99_ns);
        }
        if let Some(rate) = self.sequential_read_bytes_per_second {
            add(PointKind::SequentialRead, rate);
        }
        if let Some(writes) = &self.writes {
            add(PointKind::WriteMean, writes.single.mean_ns);
            add(PointKind::WriteP50, writes.single.p50_ns);
            add(PointKind::WriteP99, writes.single.p99_ns);
            add(PointKind::FlushP50, writes.flush.p50_ns);
            add(PointKind::BurstFlush, writes.burst_flush_ns);
            add(PointKind::SteadyWrite, writes.sustained.steady_bytes_per_second());
            add(PointKind::SequentialWrite, writes.sequential_bytes_per_second);
            if let Some(mixed) = &writes.mixed {
                add(PointKind::MixedReadIops, mixed.read.iops);
                add(PointKind::MixedReadP50, mixed.read.p50_ns);
                add(PointKind::MixedReadP99, mixed.read.p99_ns);
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::Sustained;
    use underlay_core::Nanos;

    #[test]
    fn the_steady_rate_ignores_the_start_and_a_stall() {
        let sustained = Sustained {
            queue_depth: 32,
            interval: Nanos::from_millis(100),
            bytes: vec![500, 500, 300, 100, 100, 100, 100, 0, 100, 100],
        };
        assert_eq!(sustained.steady_bytes_per_second(), 1000.0);
        assert!((sustained.absorbed_bytes() - 1000.0).abs() < 1e-9);
    }
}
