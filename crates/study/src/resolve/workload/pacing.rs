//! What makes a user start the next transaction: merging and checking, the same for every workload.

use crate::file::workload::Pacing as PacingSection;
use crate::plan::{Arrivals, Pacing, Setting};
use crate::resolve::chosen::{Chosen, Layer};
use crate::resolve::resolver::Resolver;

/// The decisions about the pacing.
#[derive(Clone, Debug)]
pub(super) enum PacingChoice {
    /// Nothing: a job.
    Job,
    Closed {
        key_think: Chosen<f64>,
    },
    Open {
        rate_per_second: Chosen<f64>,
        arrivals: Chosen<Arrivals>,
    },
}

impl PacingChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> Pacing {
        match self {
            PacingChoice::Job => Pacing::Job,
            PacingChoice::Closed { key_think } => Pacing::Closed { key_think: key_think.value },
            PacingChoice::Open { rate_per_second, arrivals } => {
                Pacing::Open { rate_per_second: rate_per_second.value, arrivals: arrivals.value }
            }
        }
    }

    /// Divides the rate, if there is one.
    pub fn scale(&mut self, divisor: u32) {
        if let PacingChoice::Open { rate_per_second, .. } = self {
            let rate = rate_per_second.value / f64::from(divisor);
            *rate_per_second = rate_per_second.scaled(rate, rate_per_second.value.to_string());
        }
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        match self {
            PacingChoice::Job => Vec::new(),
            PacingChoice::Closed { key_think } => {
                vec![key_think.setting(key_think.value.to_string())]
            }
            PacingChoice::Open { rate_per_second, arrivals } => vec![
                rate_per_second.setting(rate_per_second.value.to_string()),
                arrivals.setting(arrivals.value.as_str().to_string()),
            ],
        }
    }
}

/// Decides about `{path}.pacing`.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    path: &str,
    file: &PacingSection,
    default: &PacingSection,
) -> Option<PacingChoice> {
    let at = |key: &str| format!("{path}.pacing.{key}");
    if file.closed.refused || file.open.refused {
        return None;
    }
    if let (Some(_), Some(open)) = (&file.closed.span, &file.open.span) {
        resolver.report.at(
            open,
            "conflict",
            format!("`{path}.pacing` names both `closed` and `open`"),
            "users follow either the answers or a clock",
            "keep one of them",
        );
        return None;
    }
    if !file.open.is_present() {
        let key_think =
            [(Layer::File, &file.closed.key_think), (Layer::Default, &default.closed.key_think)];
        let key_think = resolver.pick(&at("closed.key-think"), &key_think).found()?;
        return Some(PacingChoice::Closed { key_think });
    }
    let rate = [(Layer::File, &file.open.rate_per_second)];
    let rate = resolver.pick(&at("open.rate-per-second"), &rate);
    if rate.is_absent() {
        resolver.report.add(
            file.open.span.clone(),
            "missing-key",
            "the open loop has no rate",
            "`rate-per-second` is missing",
            "add for example rate-per-second = 100.0",
        );
    }
    let arrivals = [(Layer::File, &file.open.arrivals), (Layer::Default, &default.open.arrivals)];
    let arrivals = resolver.pick(&at("open.arrivals"), &arrivals).found();
    Some(PacingChoice::Open { rate_per_second: rate.found()?, arrivals: arrivals? })
}
