//! Whether a design or this host was measured: what the host may have changed, and its ceiling.

use serde::Serialize;

/// What may be read from the numbers of an emulated design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// The design: the host's share hardly widens an interval.
    Valid,
    /// The design, within the intervals with the host's share.
    Bounded,
    /// The record does not say: it has no excess of I/O times per class.
    Unknown,
    /// This host: the design cannot be told from it.
    HostLimited,
}

impl Validity {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Validity::Valid => "valid",
            Validity::Bounded => "bounded",
            Validity::Unknown => "unknown",
            Validity::HostLimited => "host-limited",
        }
    }
}

/// One emulated design at one number of users. There is none of a real datastore, whose host belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RungValidity {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// What may be read from its numbers.
    pub outcome: Validity,
    /// The same in words, with what it rests on.
    pub text: String,
    /// Whether no device of the design takes any time: then it shows the host's ceiling.
    pub no_device: bool,
    /// What I/O took beyond its model, per class; empty where the record does not say.
    pub excess: Vec<ClassExcess>,
    /// At most this share of the sessions' time was I/O that took too long because of the host.
    pub late_share: Option<f64>,
    /// And this, that took too short.
    pub early_share: Option<f64>,
    /// What throughput may have to be multiplied by to be the device's.
    pub throughput: Option<HostFactors>,
    /// The same of response times.
    pub response: Option<HostFactors>,
    /// The host's ceiling.
    pub ceiling: Option<Ceiling>,
}

/// Factors between which the device's own result lies; 1 is between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostFactors {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// What the I/O of one class took.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ClassExcess {
    /// `log`, `read` or `data-write`.
    pub class: String,
    /// Requests per second.
    pub ios_per_second: f64,
    /// Mean of what the model said, nanoseconds; `null` without requests.
    pub modelled_mean_ns: Option<f64>,
    /// Mean of what they took.
    pub actual_mean_ns: Option<f64>,
    /// Actual less modelled time of all requests, per transaction, nanoseconds; negative: answered too early.
    pub excess_per_transaction_ns: Option<f64>,
}

/// The same load on this host without the delays of the modelled storage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Ceiling {
    /// What it was found with: `null-twin`, a short run of the same design, or `design`, one of the study that has no device.
    pub source: String,
    /// What the headline counts there.
    pub headline: Option<f64>,
    /// How near the design comes to it, 0..: of throughput, or where that is given of the response time.
    pub reached: Option<f64>,
}
