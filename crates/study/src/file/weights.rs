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
use crate::schema::Time;
use crate::words::Word;

/// Other weights of the transaction types, set while the load runs.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["set"]))]
pub(crate) struct Weights {
    /// The weights by type of transaction; types that are not named have none.
    pub set: Section<NamedWeights>,
    /// When they are set, since the beginning of the phase. At once, when left out.
    #[schemars(with = "Time")]
    pub at: Entry<Nanos>,
    /// The phase. `measure`, when left out.
    #[schemars(with = "Word<FaultPhase>")]
    pub phase: Entry<FaultPhase>,
    /// The rung of the ladder, by its number of users, for `ramp-up` and `measure`. The last one, when left out.
    #[schemars(range(min = 1, max = 100_000))]
    pub users: Entry<u32>,
    /// After this time the workload's own mix returns. They stay for the rest of the run, when left out.
    #[schemars(with = "Time")]
    pub lasts: Entry<Nanos>,
    /// Names of the designs of this study that are concerned. All of them, when left out.
    pub designs: Entry<Vec<String>>,
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
        "Weights".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Weights by the name of a transaction type, such as new_order.",
            "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 1_000_000 },
        })
    }
}

/// Reads one of them.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Weights {
    keys.alias("after", "at");
    keys.alias("rung", "users");
    keys.alias("for", "lasts");
    keys.alias("design", "designs");
    keys.alias("mix", "set");
    keys.alias("weights", "set");
    Weights {
        set: keys.section("set", |keys| {
            let weights = keys.take_each(|name, name_span, item, report| {
                let weight = item.integer(report, WEIGHT).map(|weight| weight as u32);
                (name.to_string(), NamedWeight { name_span, weight })
            });
            NamedWeights(weights.into_iter().collect())
        }),
        at: keys.take("at", |item, report| item.time(report)),
        phase: keys.take("phase", |item, report| item.word(report)),
        users: keys.take("users", |item, report| item.count(report)),
        lasts: keys.take("lasts", |item, report| item.time(report)),
        designs: keys.take("designs", |item, report| {
            item.list(report, "names of designs", |item, report| item.text(report))
        }),
    }
}
