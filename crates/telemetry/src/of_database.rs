//! Samplers of one of several databases, whose sources bear its name before their own: `oltp-1/postgres`.

use underlay_core::series::{Layer, SeriesSpec};
use underlay_database::{Engine, Target};

use crate::samplers;
use crate::source::{SampleError, Sampler, Status};
use crate::targets::CgroupTarget;

/// The statistics of a database's server, and the control group that it runs in.
pub(crate) fn of_database(
    name: &str,
    target: &Target,
    cgroup: Option<&CgroupTarget>,
) -> Vec<Box<dyn Sampler>> {
    let statistics = match target.engine {
        Engine::Postgresql => samplers::postgres::statistics(Some(target)),
        Engine::Mariadb => samplers::mariadb::status_counters(target),
    };
    [statistics, samplers::cgroup::sampler(cgroup)]
        .into_iter()
        .map(|inner| -> Box<dyn Sampler> {
            Box::new(Named { name: format!("{name}/{}", inner.name()), inner })
        })
        .collect()
}

/// A sampler under another name.
struct Named {
    name: String,
    inner: Box<dyn Sampler>,
}

impl Sampler for Named {
    fn name(&self) -> &str {
        &self.name
    }

    fn layer(&self) -> Layer {
        self.inner.layer()
    }

    fn status(&self) -> &Status {
        self.inner.status()
    }

    fn series(&self) -> &[SeriesSpec] {
        self.inner.series()
    }

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        self.inner.sample(values)
    }

    fn facts(&self) -> Vec<String> {
        self.inner.facts()
    }
}
