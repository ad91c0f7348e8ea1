//! Values that are one of a few words, for the reader and for the schema.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use underlay_model::cluster::{Checksum, Method};
use underlay_model::{Basis, Duplex};
use underlay_workload::batch::Mode as BatchMode;
use underlay_workload::block::{Provenance, Runs};
use underlay_workload::sysbench::{Distribution, Script};

use crate::fault_plan::{FaultKind, FaultPhase};
use crate::file::io_profile::WriteMode;
use crate::plan::{
    Arrivals, Durability, EngineKind, FileSystem, Mode, Order, Profile, ReductionKind, ResyncKind,
};

/// A closed set of words.
pub(crate) trait Words: Copy + 'static {
    /// What the words are, for the schema and for messages: `order`.
    const NAME: &'static str;

    /// All of them.
    fn all() -> &'static [Self];

    /// The word in the file.
    fn word(self) -> &'static str;

    /// What a file means by `text`.
    fn meant(text: &str) -> Option<Self> {
        Self::all().iter().copied().find(|value| value.word() == text)
    }
}

macro_rules! words {
    ($($kind:ty, $name:literal, $all:expr;)*) => {$(
        impl Words for $kind {
            const NAME: &'static str = $name;
            fn all() -> &'static [Self] {
                const ALL: &[$kind] = &$all;
                ALL
            }
            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )*};
}

words! {
    EngineKind, "engine", EngineKind::ALL;
    Durability, "durability", Durability::ALL;
    FileSystem, "file system", FileSystem::ALL;
    Mode, "mode", Mode::ALL;
    Profile, "profile", Profile::ALL;
    BatchMode, "mode", BatchMode::ALL;
    Distribution, "distribution", Distribution::ALL;
    Arrivals, "arrival process", Arrivals::ALL;
    Order, "order", Order::ALL;
    ReductionKind, "data reduction", ReductionKind::ALL;
    ResyncKind, "resync policy", ResyncKind::ALL;
    FaultKind, "kind of fault", FaultKind::ALL;
    FaultPhase, "phase", FaultPhase::ALL;
    Basis, "basis", [Basis::Datasheet, Basis::Fitted, Basis::Assumed];
    Duplex, "duplex", [Duplex::Half, Duplex::Full];
    Provenance, "kind of profile", Provenance::ALL;
    WriteMode, "durability", WriteMode::ALL;
}

/// In every spelling that `underlay drive` takes: hyphens or underscores, with or without sysbench's `oltp_`.
impl Words for Script {
    const NAME: &'static str = "script";

    fn all() -> &'static [Script] {
        const ALL: &[Script] = &Script::ALL;
        ALL
    }

    fn word(self) -> &'static str {
        self.as_str()
    }

    fn meant(text: &str) -> Option<Script> {
        text.parse().ok()
    }
}

impl Words for Method {
    const NAME: &'static str = "method";

    fn all() -> &'static [Method] {
        &[Method::Mirror, Method::ErasureCoding]
    }

    fn word(self) -> &'static str {
        match self {
            Method::Mirror => "mirror",
            Method::ErasureCoding => "erasure-coding",
        }
    }
}

impl Words for Runs {
    const NAME: &'static str = "arrangement of runs";

    fn all() -> &'static [Runs] {
        &[Runs::PerThread, Runs::Interleaved]
    }

    fn word(self) -> &'static str {
        match self {
            Runs::PerThread => "per-thread",
            Runs::Interleaved => "interleaved",
        }
    }
}

impl Words for Checksum {
    const NAME: &'static str = "checksum";

    fn all() -> &'static [Checksum] {
        &[Checksum::On, Checksum::Off]
    }

    fn word(self) -> &'static str {
        match self {
            Checksum::On => "on",
            Checksum::Off => "off",
        }
    }
}

/// Stands for one of the words of `T` in a schema.
pub(crate) struct Word<T>(PhantomData<T>);

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::all().iter().map(|value| value.word()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
