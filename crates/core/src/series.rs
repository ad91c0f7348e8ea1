//! The declaration of measured series: what a sampler promises to emit.
//!
//! A series is a name, a unit and a kind. Values are stored raw: counters cumulative as read, gauges
//! as read. Rates, percentiles and averages are computed on reading, never before storing.

/// The layer of the system that a series belongs to, from the user down to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The load generator.
    Driver,
    /// The database server.
    Database,
    /// The operating system of the host: CPU, memory, network.
    Host,
    /// Block devices and file systems.
    Block,
    /// The datastore, emulated or real.
    Datastore,
    /// Underlay itself.
    Underlay,
}

impl Layer {
    /// All layers, from the user down.
    pub const ALL: [Layer; 6] = [
        Layer::Driver,
        Layer::Database,
        Layer::Host,
        Layer::Block,
        Layer::Datastore,
        Layer::Underlay,
    ];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Layer::Driver => "driver",
            Layer::Database => "database",
            Layer::Host => "host",
            Layer::Block => "block",
            Layer::Datastore => "datastore",
            Layer::Underlay => "underlay",
        }
    }

    /// The layer named by [`Layer::as_str`], if any.
    pub fn from_word(word: &str) -> Option<Layer> {
        Layer::ALL.into_iter().find(|layer| layer.as_str() == word)
    }
}

/// How the values of a series are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesKind {
    /// Cumulative since some start; only differences mean something. A decrease is a reset.
    Counter,
    /// A value at an instant.
    Gauge,
}

impl SeriesKind {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            SeriesKind::Counter => "counter",
            SeriesKind::Gauge => "gauge",
        }
    }

    /// The kind named by [`SeriesKind::as_str`], if any.
    pub fn from_word(word: &str) -> Option<SeriesKind> {
        [SeriesKind::Counter, SeriesKind::Gauge].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One declared series of a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesSpec {
    /// Dotted name, most significant word first: `cpu.user`, `volume.data.read.ios`.
    pub name: String,
    /// Unit of the raw value: `ns`, `bytes`, `ios`, `percent`, `sessions`, ...
    pub unit: String,
    /// Counter or gauge.
    pub kind: SeriesKind,
}

impl SeriesSpec {
    /// A cumulative counter.
    pub fn counter(name: impl Into<String>, unit: impl Into<String>) -> SeriesSpec {
        SeriesSpec { name: name.into(), unit: unit.into(), kind: SeriesKind::Counter }
    }

    /// An instantaneous value.
    pub fn gauge(name: impl Into<String>, unit: impl Into<String>) -> SeriesSpec {
        SeriesSpec { name: name.into(), unit: unit.into(), kind: SeriesKind::Gauge }
    }
}
