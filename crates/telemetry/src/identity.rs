//! The four answers every sampler of this crate gives in the same way.

use crate::declare::SamplerDoc;
use crate::source::{SampleError, Status};
use underlay_core::series::SeriesSpec;

/// Declaration, status and series of a sampler.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) doc: &'static SamplerDoc,
    pub(crate) status: Status,
    pub(crate) series: Vec<SeriesSpec>,
}

impl Identity {
    /// A source that works with these series.
    pub(crate) fn available(doc: &'static SamplerDoc, series: Vec<SeriesSpec>) -> Identity {
        Identity { doc, status: Status::Available, series }
    }

    /// A source of which only these series are there; without gaps it is fully available.
    pub(crate) fn with_gaps(
        doc: &'static SamplerDoc,
        series: Vec<SeriesSpec>,
        gaps: &[String],
    ) -> Identity {
        let status = match (series.is_empty(), gaps.is_empty()) {
            (_, true) => Status::Available,
            (true, false) => Status::Absent(gaps.join("; ")),
            (false, false) => Status::Degraded(gaps.join("; ")),
        };
        Identity { doc, status, series }
    }

    /// The error of a sampler that has nothing to read.
    pub(crate) fn absence(&self) -> SampleError {
        SampleError::Absent(self.status.reason().unwrap_or("no reason was recorded").to_string())
    }
}

/// Implements the answers from the field `identity`.
macro_rules! identify {
    () => {
        fn name(&self) -> &str {
            self.identity.doc.name
        }

        fn layer(&self) -> underlay_core::series::Layer {
            self.identity.doc.layer
        }

        fn status(&self) -> &$crate::source::Status {
            &self.identity.status
        }

        fn series(&self) -> &[underlay_core::series::SeriesSpec] {
            &self.identity.series
        }
    };
}
pub(crate) use identify;
