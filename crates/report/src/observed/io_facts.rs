//! What modelled I/O took in a measured window, by class.

use std::collections::BTreeMap;

use underlay_core::IoClass;
use underlay_record::conventions::{io_series, source};

use super::window::{MeasuredWindow, per};
use crate::volume_names::{is_data_volume, is_log_volume};

/// I/O of one class that a model was asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IoFacts {
    pub(crate) per_second: f64,
    /// What the model said, seconds of all requests per second.
    pub(crate) modelled: f64,
    /// What they took, in the same way.
    pub(crate) actual: f64,
}

/// Of every class, or of none.
pub(super) fn io(window: &MeasuredWindow<'_>) -> BTreeMap<IoClass, IoFacts> {
    let rate = |series: String| window.rate(source::DATASTORE, &series);
    let of = |class: IoClass| {
        let facts = IoFacts {
            per_second: rate(io_series::ios(class))?,
            modelled: rate(io_series::modelled(class))? / 1e9,
            actual: rate(io_series::actual(class))? / 1e9,
        };
        Some((class, facts))
    };
    IoClass::ALL.into_iter().map(of).collect::<Option<_>>().unwrap_or_default()
}

/// Share of the log's modelled time in which it waited for data writes, if log and data lie on one device.
pub(super) fn log_behind_data(window: &MeasuredWindow<'_>) -> Option<f64> {
    let rate = |name: &str| window.rate(source::DATASTORE, name);
    let log = rate(&io_series::modelled(IoClass::Log))? / 1e9;
    // Others' part of the bytes that the log's requests can have waited for: buffers drain in order.
    let ticks = window.run.sources.get(source::DATASTORE)?;
    let volumes: Vec<&str> = ticks
        .names()
        .filter_map(|name| name.strip_prefix("volume.")?.strip_suffix(".write.bytes"))
        .collect();
    let written = |is_one: fn(&str) -> bool| {
        let mut of = volumes.iter().filter(|volume| is_one(volume));
        let first = rate(&format!("volume.{}.write.bytes", of.next()?))?;
        of.try_fold(first, |sum, volume| Some(sum + rate(&format!("volume.{volume}.write.bytes"))?))
    };
    let (own, others) = (written(is_log_volume)?, written(is_data_volume)?);
    let logs = volumes.iter().filter(|volume| is_log_volume(volume));
    let queued: f64 = logs
        .flat_map(|log| {
            ["write", "flush"].map(|operation| format!("volume.{log}.{operation}.queue"))
        })
        .filter_map(|series| rate(&series))
        .sum();
    let part = per(others, own + others).unwrap_or(0.0);
    Some(per(queued / 1e9 * part, log).unwrap_or(0.0).min(1.0))
}
