//! Counts what background work does, once per tick like everything else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use underlay_blockio::IoGauge;
use underlay_core::series::{Layer, SeriesSpec};
use underlay_record::conventions::source;
use underlay_telemetry::{SampleError, Sampler, Status};

/// Counts what background work does.
pub struct BackgroundSampler {
    gauges: Vec<Arc<IoGauge>>,
    series: Vec<SeriesSpec>,
}

impl BackgroundSampler {
    /// A sampler of works by their names.
    pub fn new<'a>(works: impl Iterator<Item = (&'a str, Arc<IoGauge>)>) -> BackgroundSampler {
        let (mut series, mut gauges) = (Vec::new(), Vec::new());
        for (name, gauge) in works {
            series.extend([
                SeriesSpec::counter(format!("{name}.reads"), "requests"),
                SeriesSpec::counter(format!("{name}.writes"), "requests"),
                SeriesSpec::counter(format!("{name}.read_bytes"), "bytes"),
                SeriesSpec::counter(format!("{name}.write_bytes"), "bytes"),
                SeriesSpec::counter(format!("{name}.errors"), "requests"),
            ]);
            gauges.push(gauge);
        }
        BackgroundSampler { gauges, series }
    }
}

impl Sampler for BackgroundSampler {
    fn name(&self) -> &str {
        source::BACKGROUND
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
        for gauge in &self.gauges {
            let IoGauge { reads, writes, read_bytes, write_bytes, errors } = &**gauge;
            for count in [reads, writes, read_bytes, write_bytes, errors] {
                values.push(count.load(Ordering::Relaxed) as f64);
            }
        }
        Ok(())
    }
}
