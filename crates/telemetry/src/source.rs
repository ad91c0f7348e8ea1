//! A source of series: the contract of a sampler, and its description.
//!
//! A sampler does not know the clock, the record or other samplers. It fills a vector; the tier that
//! runs it stamps the acquisition window around the call.

use underlay_core::series::{Layer, SeriesSpec};

/// Whether a source works. The reason is stored in the record and shown in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything it declares is there.
    Available,
    /// Some series are missing; the text says which and why.
    Degraded(String),
    /// Nothing can be read; the text says why and what would help.
    Absent(String),
}

impl Status {
    /// The word used in records and pages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Status::Available => "available",
            Status::Degraded(_) => "degraded",
            Status::Absent(_) => "absent",
        }
    }

    /// The reason, when there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Status::Available => None,
            Status::Degraded(reason) | Status::Absent(reason) => Some(reason),
        }
    }

    /// Takes over why an absent source could not be read this time. That it is absent says nothing new.
    pub(crate) fn still_absent_because(&mut self, error: &SampleError) {
        if matches!(self, Status::Absent(_)) && !matches!(error, SampleError::Absent(_)) {
            *self = Status::Absent(error.to_string());
        }
    }
}

/// Why a sampler has no values for one tick.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A file that could be read before cannot be read now.
    #[error("could not read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The text of a file is not what its parser knows.
    #[error("could not parse {path}: {detail}")]
    Parse {
        /// The file.
        path: String,
        /// What was missing or wrong.
        detail: String,
    },
    /// The database cannot be reached now; the sampler tries again at a later tick.
    #[error("database does not answer: {0}")]
    Database(String),
    /// The source does not exist on this host; the status says why.
    #[error("source is absent: {0}")]
    Absent(String),
    /// A sampler from outside this crate has no values now.
    #[error("{0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// Something that can be read once per tick.
///
/// Called by one thread only, in order, never again after the collector stopped.
pub trait Sampler: Send {
    /// Name of the source, unique within a collector: `host_cpu`, `postgres`, `datastore`.
    fn name(&self) -> &str;

    /// Layer of its series.
    fn layer(&self) -> Layer;

    /// Whether it works; may change after a call of [`Sampler::sample`].
    fn status(&self) -> &Status;

    /// The series in the order of the values. May only grow at the end, except while the status is
    /// `Absent`; a change is announced by a new [`crate::Item::Source`].
    fn series(&self) -> &[SeriesSpec];

    /// Appends one value per series to `values`, which is empty on entry; `NAN` = missing now.
    ///
    /// On an error the tick is stored with all values missing, and the reason is noted once.
    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError>;

    /// Facts that do not change, recorded as notes: scheduler of a device, version of a
    /// server. Asked once, before the first sample, and again whenever the series change.
    fn facts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What the record keeps about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Name of the source.
    pub name: String,
    /// Layer of its series.
    pub layer: Layer,
    /// Whether it works.
    pub status: Status,
    /// The series in the order of the values of its ticks.
    pub series: Vec<SeriesSpec>,
}

impl SourceInfo {
    /// The present state of a sampler.
    pub fn of(sampler: &dyn Sampler) -> SourceInfo {
        SourceInfo {
            name: sampler.name().to_string(),
            layer: sampler.layer(),
            status: sampler.status().clone(),
            series: sampler.series().to_vec(),
        }
    }
}
