//! `[[weights]]`: the mix of transactions, changed while the load runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use underlay_core::Nanos;

use crate::entry::{Entry, Section};
use crate::fault_plan::FaultPhase;
use crate::limits::WEIGHT;
use crate::reader::Keys;
use crate::section::*;

section! {
    /// Other weights of the transaction types, set while the load runs.
    pub(crate) struct Weights as "Weights" {
        /// The weights by type of transaction; types that are not named have none.
        "set" set: Section<NamedWeights> = table::<NamedWeights>();
        /// When they are set, since the beginning of the phase. At once, when left out.
        "at" at: Entry<Nanos> = One(time());
        /// The phase. `measure`, when left out.
        "phase" phase: Entry<FaultPhase> = One(word::<FaultPhase>());
        /// The rung of the ladder, by its number of users, for `ramp-up` and `measure`. The last
        /// one, when left out.
        "users" users: Entry<u32> = One(count(1..=100_000));
        /// After this time the workload's own mix returns. They stay for the rest of the run, when
        /// left out.
        "lasts" lasts: Entry<Nanos> = One(time());
        /// Names of the designs of this study that are concerned. All of them, when left out.
        "designs" designs: Entry<Vec<String>> = One(list("names of designs", text()));
    }
    written_for {
        "after" => "at", "rung" => "users", "for" => "lasts", "design" => "designs",
        "mix" => "set", "weights" => "set",
    }
    limits { "required": ["set"] }
}

/// Weights by the name of a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedWeights(pub BTreeMap<String, NamedWeight>);

/// One weight.
#[derive(Clone, Debug)]
pub(crate) struct NamedWeight {
    /// The bytes of its name in the file.
    pub name_span: Range<usize>,
    /// Its value; `None` when it was refused.
    pub weight: Option<u32>,
}

impl JsonSchema for NamedWeights {
    fn schema_name() -> Cow<'static, str> {
        "WeightsByType".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Weights by the name of a transaction type, such as new_order.",
            "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 1_000_000 },
        })
    }
}

impl Table for NamedWeights {
    fn read(keys: &mut Keys<'_, '_>) -> NamedWeights {
        let weights = keys.take_each(|name, name_span, item, report| {
            let weight = item.integer(report, WEIGHT).map(|weight| weight as u32);
            (name.to_string(), NamedWeight { name_span, weight })
        });
        NamedWeights(weights.into_iter().collect())
    }
}
